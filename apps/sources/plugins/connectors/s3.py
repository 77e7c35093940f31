"""A bucket of S3 or of any store that speaks its protocol. Requests are signed by botocore and sent over our checked connections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.utils.translation import gettext_lazy as _

from apps.common.http import Fetched
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, SourceError, connectors
from apps.sources.plugins.renames import MAX_FILES, identities, known_of, remembered
from apps.sources.plugins.support import (
    EXTENSIONS_INPUT,
    Plugin,
    bad,
    batches,
    extensions_of,
    has_extension,
    local_name,
    moment,
    readable_text,
    taken,
    web_address,
    xml_root,
)

FILE_LIMIT = 200 << 20
MAX_LISTED = 500_000
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_CODES = {
    "InvalidAccessKeyId": "auth",
    "SignatureDoesNotMatch": "auth",
    "ExpiredToken": "auth",
    "InvalidToken": "auth",
    "AccessDenied": "forbidden",
    "AllAccessDisabled": "forbidden",
    "NoSuchBucket": "not_found",
    "NoSuchKey": "not_found",
    "PermanentRedirect": "bad_settings",
    "AuthorizationHeaderMalformed": "bad_settings",
    "SlowDown": "rate_limited",
    "RequestTimeTooSkewed": "bad_answer",
}


@dataclass(frozen=True, slots=True)
class Stored:
    key: str
    etag: str
    size: int
    changed: str


@connectors.register("s3")
class Bucket(Plugin):
    meta = ConnectorMeta(
        "s3",
        _("S3 bucket"),
        _("Documents in a bucket of Amazon S3, MinIO, Ceph, OSS or COS."),
        "database",
        13,
        "api_key",
        ("incremental", "deletion_sync", "hierarchical"),
        (
            Input("endpoint_url", _("Address of the service"), "text", "settings", hint=_("Empty: Amazon S3. Otherwise like https://minio.example.com")),
            Input("region", _("Region"), "text", "settings", default="us-east-1"),
            Input("bucket", _("Bucket"), "text", "settings", required=True),
            Input("prefix", _("Only keys that begin with"), "text", "settings", hint=_("For example handbook/. Empty: the whole bucket.")),
            EXTENSIONS_INPUT,
            Input("access_key_id", _("Access key ID"), "text", "credentials"),
            Input("secret_access_key", _("Secret access key"), "secret", "credentials"),
            Input("session_token", _("Session token"), "secret", "credentials", hint=_("Only for temporary credentials.")),
        ),
    )  # fmt: skip

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = super().clean(settings)
        if found.get("endpoint_url"):
            web_address("endpoint_url", found["endpoint_url"])
        if not _BUCKET.fullmatch(found["bucket"]):
            raise bad("bucket", _("This is not the name of a bucket."))
        if not _REGION.fullmatch(found.get("region", "us-east-1")):
            raise bad("region", _("This is not the name of a region."))
        extensions_of(found)
        return found

    def check(self, link: Link) -> None:
        _list(link, "", 1)

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        wanted, prefix = extensions_of(link.settings), str(link.settings.get("prefix") or "")
        found: dict[str, Stored] = {}
        for number, stored in enumerate(_all(link)):
            if number >= MAX_LISTED:
                raise SourceError("too_many", f"more than {MAX_LISTED} objects", params={"limit": MAX_LISTED})
            if stored.size and has_extension(stored.key, wanted) and stored.key.startswith(prefix) and readable_text(stored.key):
                found[stored.key] = stored
                if len(found) > MAX_FILES:
                    raise SourceError("too_many", f"more than {MAX_FILES} files", params={"limit": MAX_FILES})
        scope = f"{_endpoint(link)}/{link.settings['bucket']}"
        marks = {key: f"{stored.etag}|{stored.size}" for key, stored in found.items()}
        ids = identities(marks, known_of(cursor, scope))
        pages = [Page(batch) for batch in batches(_item(found[key], ids[key], prefix) for key in sorted(found))]
        last = pages.pop()
        yield from pages
        yield Page(last.items, {"scope": scope, "files": remembered(marks, ids)}, whole=True)

    def fetch(self, link: Link, item: Item) -> Content | None:
        key = str(item.handle["key"])
        return taken(_send(link, "/" + quote(key, safe="/~-._"), {}, FILE_LIMIT), key.rpartition("/")[2])


def _endpoint(link: Link) -> str:
    own = str(link.settings.get("endpoint_url") or "").rstrip("/")
    return own or f"https://s3.{link.settings.get('region') or 'us-east-1'}.amazonaws.com"


def _send(link: Link, path: str, query: Mapping[str, str], max_bytes: int) -> Fetched:
    url = f"{_endpoint(link)}/{quote(str(link.settings['bucket']))}{path}"
    if query:
        url += "?" + urlencode(query, quote_via=quote, safe="~-._")
    found: Fetched = link.web.request("GET", url, headers=_signed(link, url), max_bytes=max_bytes, explain=_explain, large=not query)
    return found


def _signed(link: Link, url: str) -> dict[str, str]:
    """The headers of a signature of version 4; none without credentials (a public bucket)."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    key, secret = str(link.credentials.get("access_key_id") or ""), str(link.credentials.get("secret_access_key") or "")
    if not key or not secret:
        return {}
    asked = AWSRequest("GET", url, headers={"Host": urlsplit(url).netloc})
    token = str(link.credentials.get("session_token") or "") or None
    S3SigV4Auth(Credentials(key, secret, token), "s3", str(link.settings.get("region") or "us-east-1")).add_auth(asked)
    return {name: str(value) for name, value in asked.headers.items() if name.lower() != "host"}


def _explain(answer: Fetched) -> SourceError | None:
    if answer.status == 200:
        return None
    try:
        root = xml_root(answer.read())
    except SourceError:
        return None
    said = next(((node.text or "").strip() for node in root.iter() if local_name(node) == "code"), "")
    code = _CODES.get(said)
    if code is None:
        return None
    return SourceError(code, f"the store answered {said}", field="region" if code == "bad_settings" else "", passing=code == "rate_limited")


def _list(link: Link, token: str, limit: int = 1000) -> tuple[list[Stored], str]:
    """One page of the bucket and what asks for the next ("" after the last)."""
    query = {"list-type": "2", "max-keys": str(limit), "encoding-type": "url"}
    if prefix := str(link.settings.get("prefix") or ""):
        query["prefix"] = prefix
    if token:
        query["continuation-token"] = token
    with _send(link, "/", query, 16 << 20) as answer:
        root = xml_root(answer.read())
    if local_name(root) != "listbucketresult":
        raise SourceError("bad_answer", "the answer is not one of an S3 store")
    encoded = _text(root, "encodingtype") == "url"
    found = [_stored(node, encoded) for node in root if local_name(node) == "contents"]
    return found, _text(root, "nextcontinuationtoken") if _text(root, "istruncated") == "true" else ""


def _all(link: Link) -> Iterator[Stored]:
    token, seen = "", set()
    while True:
        found, token = _list(link, token)
        yield from found
        if not token:
            return
        if token in seen:
            raise SourceError("bad_answer", "the store repeats the same page")
        seen.add(token)


def _text(node: Any, name: str) -> str:
    return next(((child.text or "").strip() for child in node if local_name(child) == name), "")


def _stored(node: Any, encoded: bool) -> Stored:
    from urllib.parse import unquote_plus

    raw = next((child.text or "" for child in node if local_name(child) == "key"), "")
    size = _text(node, "size")
    return Stored(
        unquote_plus(raw) if encoded else raw,
        _text(node, "etag").strip('"'),
        int(size) if size.isdigit() else 0,
        _text(node, "lastmodified"),
    )


def _item(stored: Stored, external_id: str, prefix: str) -> Item:
    inner = stored.key[len(prefix.rpartition("/")[0]) :].lstrip("/") if prefix else stored.key
    folder, _slash, name = inner.rpartition("/")
    return Item(
        external_id,
        title=name,
        fingerprint=f"{stored.etag}-{stored.size}",
        folder=folder,
        modified_at=moment(stored.changed),
        metadata={"key": stored.key},
        handle={"key": stored.key},
    )
