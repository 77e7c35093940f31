"""Which addresses may be reached: names are resolved once, every address is checked, and what was checked is what is connected to."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput

MAX_URL = 2048

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_url(url: str) -> str:
    """The address in the form it is fetched in: no fragment, host in ASCII, path escaped.

    Raises: InvalidInput(bad_url, refused_address) for other schemes, credentials in the address, hosts that may not be reached.
    """
    parts = parts_of(url)
    addresses_of(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    return urlunsplit(parts)


def parts_of(url: str) -> Any:
    bad = InvalidInput(_("This is not a web address. Write one like https://example.com/page."), code="bad_url", field="url")
    url = url.strip()
    if len(url) > MAX_URL or any(ord(sign) < 33 for sign in url):
        raise bad
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if ":" in host else host.encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        raise bad from None
    if parts.scheme not in ("http", "https") or not host:
        raise bad
    if parts.username or parts.password:
        raise InvalidInput(_("Leave user name and password out of the address."), code="bad_url", field="url")
    netloc = f"[{host}]" if ":" in host else host
    netloc = f"{netloc}:{port}" if port else netloc
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return parts._replace(netloc=netloc, path=path, query=quote(parts.query, safe="/%:@!$&'()*+,;=~-._?"), fragment="")


def allowed(host: str, address: Address, allow: Sequence[str] | None = None) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None and not allowed(host, inner, allow):
            return False
        if address in ipaddress.ip_network("64:ff9b::/96") and not allowed(host, ipaddress.IPv4Address(int(address) & 0xFFFFFFFF), allow):
            return False
    if address.is_global and not address.is_multicast:
        return True
    for entry in settings.FETCH_ALLOW if allow is None else allow:
        if entry.lower() == host.lower():
            return True
        with contextlib.suppress(ValueError):
            if address in ipaddress.ip_network(entry, strict=False):
                return True
    return False


def addresses_of(host: str, port: int) -> list[tuple[int, Any]]:
    """(family, socket address) of every address of a host. Raises: InvalidInput when one of them may not be reached."""
    refused = _("This address is in a private network, which imports may not reach. Ask an administrator to allow it (KB_FETCH_ALLOW).")
    return checked_places(host, port, allow=settings.FETCH_ALLOW, refused=refused)


def checked_places(host: str, port: int, *, allow: Sequence[str], refused: Any, field: str = "url") -> list[tuple[int, Any]]:
    """(family, socket address) of every address of a host: connect to these and the check holds.

    `allow`: hosts and ranges that may be reached although they are private; `refused`: what is said of an address that may not.

    Raises: InvalidInput (unknown_host, refused_address) when the name is unknown or one of its addresses may not be reached.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidInput(_("No server of this name was found. Check the address."), code="unknown_host", field=field) from None
    addresses: list[tuple[int, Any]] = []
    for family, _type, _proto, _name, place in found:
        address = ipaddress.ip_address(str(place[0]).split("%")[0])
        if not allowed(host, address, allow):
            raise InvalidInput(refused, code="refused_address", field=field)
        addresses.append((family, place))
    return addresses
