"""Outbound HTTP: what may be reached, how long it may take, how much it may send. Model endpoints share the check of addresses.

SECURITY: a host is resolved once, every address it has is checked, and the connection goes to the address that was checked (so a name
that changes its mind between check and connect gains nothing). Redirects are followed here, one checked hop at a time.
"""

from __future__ import annotations

from apps.common.http.addresses import MAX_URL, check_url, checked_places
from apps.common.http.client import MAX_REDIRECTS, Fetched, connect, fetch, request

__all__ = ["MAX_REDIRECTS", "MAX_URL", "Fetched", "check_url", "checked_places", "connect", "fetch", "request"]
