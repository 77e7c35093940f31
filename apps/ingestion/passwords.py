"""One-off passwords of locked files, on their way from the request that brought them to the worker that opens the file.

SECURITY: web and worker are separate processes and a run may wait, be killed or go on to OCR, so the password has to lie somewhere between
them. It lies in a row of its own, sealed with the deployment's keys (`apps.common.crypto`), and the row goes in the same transaction that
ends its run, at the latest after MAX_AGE. Run rows, broker messages, logs, traces and activity never see it: tasks carry ids only, and the
sandbox gets it through a pipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.utils import timezone

from apps.common.crypto import decrypt, encrypt
from apps.common.errors import Unavailable
from apps.common.jobs.models import LIVE
from apps.common.scope import unscoped
from apps.ingestion.models import FilePassword, IngestionRun

#: A run that waits longer than this starts without the password, ends as locked, and the password is asked for again.
MAX_AGE = timedelta(hours=24)


def keep(run: IngestionRun, password: str) -> None:
    """Seal the password for this run; nothing happens when there is none."""
    if password:
        FilePassword.objects.update_or_create(run=run, defaults={"space_id": run.space_id, "sealed": encrypt(password)})


def password_of(run: IngestionRun) -> str:
    """The password sealed for this run; "" when there is none, it is too old, or it was sealed with another key."""
    row = FilePassword.objects.filter(run=run, created_at__gt=timezone.now() - MAX_AGE).first()
    if row is None:
        return ""
    try:
        return decrypt(row.sealed)
    except Unavailable:
        return ""


def forget(document_id: int) -> None:
    """Drop what is kept for runs of this document; call it where a run ends, in the same transaction."""
    FilePassword.objects.filter(run__document_id=document_id).delete()


def forget_all(document_ids: Sequence[int]) -> None:
    """The same for many documents."""
    FilePassword.objects.filter(run__document_id__in=document_ids).delete()


def forget_stale() -> int:
    """Drop what outlived its run or its time, whatever happened; how many rows."""
    with unscoped("passwords that outlived their run"):
        ended = FilePassword.objects.exclude(run__state__in=LIVE) | FilePassword.objects.filter(created_at__lte=timezone.now() - MAX_AGE)
        return int(FilePassword.objects.filter(pk__in=list(ended.values_list("pk", flat=True))).delete()[0])
