"""From a storage URL to Django's settings for the file store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

FOLDER = "apps.common.stores.folder.FolderStore"
OBJECTS = "apps.common.stores.objects.ObjectStore"
ADDRESSING = ("auto", "path", "virtual")
OPTIONS = ("endpoint_url", "region", "addressing_style", "verify", "timeout_s")
_BUCKET = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$")
_SEGMENT = re.compile(r"^[A-Za-z0-9!_.*'()=-]+$")


def folder(location: Path) -> dict[str, Any]:
    """Files in a folder of this machine (or of a disk several machines share)."""
    return {"BACKEND": FOLDER, "OPTIONS": {"location": location, "base_url": None, "file_permissions_mode": 0o600}}


def objects(url: str, *, access_key: str = "", secret_key: str = "") -> dict[str, Any]:
    """`s3://bucket/prefix?endpoint_url=https://minio:9000&region=eu-1&addressing_style=path&verify=/ca.pem&timeout_s=20`.

    Without keys boto3 looks where it always does: AWS_* variables, ~/.aws, the role of the machine.

    Raises: ValueError saying what is wrong with the URL.
    """
    parts = urlsplit(url)
    if parts.scheme != "s3":
        raise ValueError("the URL must start with s3://")
    if parts.username or parts.password:
        raise ValueError("keys do not belong in the URL; use KB_S3_ACCESS_KEY and KB_S3_SECRET_KEY")
    if not _BUCKET.match(parts.netloc):
        raise ValueError("the URL must name a bucket: s3://bucket/prefix")
    if bool(access_key) != bool(secret_key):
        raise ValueError("KB_S3_ACCESS_KEY and KB_S3_SECRET_KEY belong together; set both or neither")
    prefix = unquote(parts.path).strip("/")
    if any(segment in (".", "..") or not _SEGMENT.match(segment) for segment in prefix.split("/") if prefix):
        raise ValueError("the prefix may hold letters, digits, - _ . and /")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(query) - set(OPTIONS)):
        raise ValueError(f"{', '.join(unknown)} is no option; known are {', '.join(OPTIONS)}")
    options: dict[str, Any] = {
        "bucket_name": parts.netloc,
        "location": prefix,
        "endpoint_url": _endpoint(query.get("endpoint_url", "")),
        "region_name": query.get("region") or None,
        "addressing_style": _addressing(query.get("addressing_style", "auto")),
        "timeout_s": _seconds(query.get("timeout_s", "20")),
    }
    if "verify" in query:
        options["verify"] = query["verify"]
    if access_key:
        options |= {"access_key": access_key, "secret_key": secret_key}
    return {"BACKEND": OBJECTS, "OPTIONS": options}


def _endpoint(raw: str) -> str | None:
    if raw and not raw.startswith(("http://", "https://")):
        raise ValueError("endpoint_url must start with http:// or https://")
    return raw or None


def _addressing(raw: str) -> str:
    if raw not in ADDRESSING:
        raise ValueError(f"addressing_style is one of {', '.join(ADDRESSING)}")
    return raw


def _seconds(raw: str) -> float:
    try:
        seconds = float(raw)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 600:
        raise ValueError("timeout_s is a number of seconds from 1 to 600")
    return seconds
