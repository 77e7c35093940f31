"""What can go wrong, in the words of the domain.

The domain never names an HTTP status: `apps.common.api.errors` holds the one table class -> status -> envelope, and the same
table feeds pages and task rows. `message` is English for logs and API clients; `user_message` is translated where a person reads it.
"""

from __future__ import annotations

from typing import Any


class DomainError(Exception):
    """Base of every expected failure; `code` is stable and machine-readable, `field` names the input at fault."""

    code = "error"

    def __init__(self, message: Any = "", *, code: str | None = None, field: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message  # str or lazy translation
        if code is not None:
            self.code = code
        self.field = field
        self.details = details

    def __str__(self) -> str:
        return str(self.message) or self.code


class InvalidInput(DomainError):
    code = "invalid_input"


class Unauthenticated(DomainError):
    code = "unauthenticated"


class Forbidden(DomainError):
    code = "forbidden"


class NotFound(DomainError):
    code = "not_found"


class Gone(DomainError):
    """A link or token that was valid once and is not any more (expired, revoked, used up)."""

    code = "gone"


class Conflict(DomainError):
    code = "conflict"


class PayloadTooLarge(InvalidInput):
    code = "too_large"


class QuotaExceeded(DomainError):
    code = "quota_exceeded"


class RateLimited(DomainError):
    code = "rate_limited"


class Unavailable(DomainError):
    code = "unavailable"


class TransientError(Exception):
    """A failure that a retry may cure; the only exception on which background work is tried again.

    `attempts`: how often at least, where that is more than the kind of work says.
    """

    attempts = 0

    def __init__(self, message: str, *, code: str = "transient", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s


class NotYet(TransientError):
    """What the work needs is known to be away: it is put back with the reason shown, and the try does not count."""


class StoreUnavailable(Unavailable, TransientError):
    """The file store cannot be used now: a request is refused with a sentence, background work is tried again later.

    `why` is stable: unreachable, timeout, bucket_missing, access_denied, no_credentials, disk_full, refused.
    """

    code = "storage_unavailable"
    attempts = 9  # about nine minutes

    def __init__(self, message: Any = "", *, why: str = "", code: str | None = None, field: str | None = None, **details: Any) -> None:
        told = {"why": why, "retry_after_s": 30} if why else {}
        super().__init__(message, code=code or type(self).code, field=field, **told, **details)
        self.why = why
