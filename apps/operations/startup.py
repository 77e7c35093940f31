"""What the operator is told before the portal starts: a restore that was cut off in the middle of the change-over."""

from __future__ import annotations

from collections.abc import Sequence

from apps.common.supervisor import StartupError, before_start
from apps.operations.restore import interrupted


def refuse_half_restored(_parts: Sequence[str]) -> None:
    """Raises: StartupError naming the archive to restore again."""
    if archive := interrupted():
        raise StartupError(f"a restore was interrupted; run it again first: python manage.py restore {archive} --force")


before_start.insert(0, refuse_half_restored)
