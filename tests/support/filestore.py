"""File stores for tests: a real S3-compatible server (moto) on a loopback port, and an empty store for each test that wants one."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

KEYS = {"KB_S3_ACCESS_KEY": "testing", "KB_S3_SECRET_KEY": "testing-secret"}
BUCKET = "kbportal"
_taken = itertools.count(1)


class ObjectServer:
    """A running S3-compatible server with one bucket; `url(prefix)` is what KB_STORAGE_URL takes."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def url(self, prefix: str = "", *, bucket: str = BUCKET, **options: str) -> str:
        prefix = prefix or f"store-{uuid.uuid4().hex[:12]}"
        query = urlencode({"endpoint_url": self.endpoint, "region": "us-east-1", "addressing_style": "path", **options})
        return f"s3://{bucket}/{prefix}?{query}"

    def environ(self, prefix: str = "", **options: str) -> dict[str, str]:
        return {"KB_STORAGE_URL": self.url(prefix, **options), **KEYS}

    def client(self) -> Any:
        """boto3's own client, to look at what the portal left there."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS["KB_S3_ACCESS_KEY"],
            aws_secret_access_key=KEYS["KB_S3_SECRET_KEY"],
        )

    def keys(self, prefix: str) -> list[str]:
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
        return sorted(found["Key"][len(prefix) + 1 :] for page in pages for found in page.get("Contents", ()))


@contextmanager
def running_objects() -> Iterator[ObjectServer]:
    """An S3-compatible server in a thread of this process; FileNotFoundError when moto is not installed."""
    try:
        from moto.server import ThreadedMotoServer
    except ImportError:
        raise FileNotFoundError("moto") from None
    import logging

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        made = ObjectServer(f"http://{host}:{port}")
        made.client().create_bucket(Bucket=BUCKET)
        yield made
    finally:
        server.stop()


def with_prefix(url: str, prefix: str) -> str:
    """The same bucket under another prefix."""
    return urlsplit(url)._replace(path=f"/{prefix}").geturl()


def fresh_prefix() -> str:
    return f"test-{os.getpid()}-{next(_taken)}-{uuid.uuid4().hex[:6]}"


def use_fresh_store(settings: Any, tmp_path: Path) -> None:
    """Give a test an empty file store of the kind the run is about: a folder, or a prefix of its own in the bucket."""
    default = settings.STORAGES["default"]
    place = fresh_prefix() if default["BACKEND"].endswith("ObjectStore") else tmp_path / "files"
    options = {**default["OPTIONS"], "location": place}
    settings.STORAGES = {**settings.STORAGES, "default": {**default, "OPTIONS": options}}
    settings.TEMP_DIR = tmp_path / "tmp"
