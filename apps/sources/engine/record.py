"""What a run has done so far, in memory and in its row: counts, samples of errors, where to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Now

from apps.common.jobs.claims import LEASE, Claim, Stop

SAMPLES = 100
KEY_BYTES = 8
COUNTS = ("created", "updated", "renamed", "deleted", "held", "skipped", "failed", "deletion_failed")


class Record:
    """Counts of `COUNTS` are written in the transaction that makes them true, so they are exact after a crash.

    `listed` and `unchanged` are of items that write nothing; they are written at checkpoints, with the keys they are the number of.
    """

    def __init__(self, claim: Claim) -> None:
        run: Any = claim.run
        self.claim, self.run = claim, run
        self.counts: dict[str, int] = {name: getattr(run, name) for name in COUNTS}
        self.listed, self.unchanged = run.listed, run.unchanged
        self.errors: list[dict[str, Any]] = list(run.errors)
        self.warnings: list[dict[str, Any]] = list(run.warnings)
        self.named: set[bytes] = _unpacked(bytes(run.seen or b""))
        self.worked = 0  # items written since this worker took the run

    def write(self, **more: int) -> None:
        """Inside a transaction: raise counts with what else it writes, and make sure the run is still ours. Raises: Stop."""
        for name, count in more.items():
            self.counts[name] += count
        self.worked += 1
        self._update(**{name: self.counts[name] for name in more}, errors=self.errors)

    def sample(self, title: str, code: str, message: str = "", params: Mapping[str, Any] | None = None) -> None:
        """One more example of what went wrong; the first hundred are kept. Written with the next `write`."""
        if len(self.errors) < SAMPLES:
            entry = {"title": title[:300], "code": code, "message": message[:500]}
            self.errors.append(entry | ({"params": dict(params)} if params else {}))

    def warn(self, code: str, /, **params: Any) -> None:
        """Something about the whole run; the same thing is said once."""
        entry = {"code": code, "params": params}
        if entry not in self.warnings and len(self.warnings) < SAMPLES:
            self.warnings.append(entry)

    def checkpoint(self, values: dict[str, Any]) -> None:
        """After an interruption the run goes on from here. Raises: Stop."""
        self._update(
            checkpoint=values, seen=b"".join(self.named), listed=self.listed, unchanged=self.unchanged, warnings=self.warnings
        )  # fmt: skip

    def progress(self) -> None:
        """What pages show while it runs."""
        done = len(self.named)
        self.claim.progress(done, done + 1, "items", failed=self.counts["failed"])

    def closing(self) -> dict[str, Any]:
        """What the row says when it has ended."""
        return {
            **self.counts,
            "listed": self.listed,
            "unchanged": self.unchanged,
            "errors": self.errors,
            "warnings": self.warnings,
            "checkpoint": None,
            "seen": None,
            "progress_done": self.listed,
            "progress_total": self.listed,
            "progress_failed": self.counts["failed"],
        }

    def _update(self, **values: Any) -> None:
        if not self.claim.rows().update(lease_until=Now() + LEASE, **values):
            raise Stop("lost")


def short(key: str) -> bytes:
    """What stands for an item's key in the set of those named."""
    return bytes.fromhex(key[: KEY_BYTES * 2])


def _unpacked(packed: bytes) -> set[bytes]:
    return {packed[at : at + KEY_BYTES] for at in range(0, len(packed), KEY_BYTES)}
