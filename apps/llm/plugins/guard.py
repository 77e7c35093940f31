"""Which addresses a model endpoint may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from apps.common.http import checked_places

REFUSED = _("This address is in a private network, which model endpoints may not reach. Ask the operator to allow it (KB_MODEL_ALLOW).")


@dataclass(frozen=True, slots=True)
class Guard:
    """`trusted`: the operator wrote the address, it may be anywhere. `allow`: hosts and ranges that may be private all the same."""

    trusted: bool = False
    allow: tuple[str, ...] = ()

    def places(self, host: str, port: int) -> Sequence[str]:
        """The addresses to connect to. Raises: InvalidInput (refused_address, unknown_host)."""
        if self.trusted:
            return [host]
        found = checked_places(host, port, allow=self.allow, refused=REFUSED, field="base_url")
        return list(dict.fromkeys(str(place[0]) for _family, place in found))
