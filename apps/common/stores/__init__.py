"""What the portal asks of a file store, beyond what Django asks of a storage; one class for a folder, one for S3-compatible servers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Protocol

from django.core.files import File
from django.utils.translation import gettext_lazy as _

from apps.common.errors import StoreUnavailable

log = logging.getLogger(__name__)

REASONS = {
    "unreachable": _("it cannot be reached"),
    "timeout": _("it does not answer in time"),
    "bucket_missing": _("its bucket does not exist"),
    "access_denied": _("it refuses the portal's access key"),
    "no_credentials": _("no access key is configured"),
    "disk_full": _("its disk is full"),
    "refused": _("it answers with an error"),
}

HINTS = {
    "unreachable": "check that the server runs and that endpoint_url in KB_STORAGE_URL is right",
    "timeout": "the server or the network is slow; timeout_s in KB_STORAGE_URL says how long the portal waits",
    "bucket_missing": "create the bucket or correct KB_STORAGE_URL",
    "access_denied": "check KB_S3_ACCESS_KEY, KB_S3_SECRET_KEY, the region, and that the key may list, read, write and delete",
    "no_credentials": "set KB_S3_ACCESS_KEY and KB_S3_SECRET_KEY",
    "disk_full": "free some space",
    "refused": "the server's own log says more",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored file. `changed_at`: seconds since the epoch."""

    key: str
    size_bytes: int
    changed_at: float


class FileStore(Protocol):
    """Where originals and what was made of them are kept, by key. Both implementations pass one contract suite.

    Every method raises StoreUnavailable when the store cannot be used, and nothing else of its own. A file is there whole or not at all.
    """

    def save(self, name: str, content: File[Any]) -> str:
        """Store the content from its beginning; the key it is under, which is another one where `name` was taken."""

    def reader(self, name: str) -> IO[bytes]:
        """The bytes, seekable, fetched as they are read. Raises: FileNotFoundError."""

    def size(self, name: str) -> int:
        """Length in bytes. Raises: FileNotFoundError."""

    def exists(self, name: str) -> bool: ...

    def delete(self, name: str) -> None:
        """Remove one key; one that is not there is as good as removed."""

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        """What is stored under a folder of keys, in no order that matters."""

    def probe(self) -> None:
        """Use the store once; returns when it answers."""

    def sweep(self, older_than_s: float) -> int:
        """Remove what interrupted uploads left behind, which is no file yet; how many pieces."""

    @property
    def place(self) -> str:
        """Where the files are, for people who run the portal."""


def unusable(why: str, place: str, error: BaseException) -> StoreUnavailable:
    """The error to raise; the log gets what only the operator should read."""
    log.error("the file store %s cannot be used (%s): %s; %s", place, why, error, HINTS[why])
    text = _(
        "The file store cannot be used: %(why)s. Nothing was lost. Try again in a few minutes, and tell the administrator if it stays so."
    )
    return StoreUnavailable(text % {"why": REASONS[why]}, why=why)
