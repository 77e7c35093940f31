"""Files on an S3-compatible server, through django-storages and boto3.

An object appears when its upload is complete, so nothing half-written is ever visible. Bytes are read in windows: no connection stays
open while a browser takes its time, and a range of a large file costs that range.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import IO, Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    ConnectTimeoutError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
)
from django.utils.deconstruct import deconstructible
from storages.backends.s3 import S3Storage
from urllib3.exceptions import HTTPError

from apps.common.errors import StoreUnavailable
from apps.common.stores import Entry, unusable

CONNECT_TIMEOUT_S = 5.0
ATTEMPTS = 2
PART_BYTES = 16 * 1024 * 1024
FIRST_WINDOW, LARGEST_WINDOW = 256 * 1024, 8 * 1024 * 1024
WINDOW_TRIES = 3
DENIED = frozenset({"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "AuthorizationHeaderMalformed"})
GONE = frozenset({"NoSuchKey", "PreconditionFailed", "InvalidRange"})


@deconstructible(path="apps.common.stores.objects.ObjectStore")
class ObjectStore(S3Storage):
    """A `FileStore` (see `apps.common.stores`) in a bucket, under a prefix. Objects are private: people get bytes through the portal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.client_config = Config(
            s3={"addressing_style": self.addressing_style},
            signature_version=self.signature_version,
            connect_timeout=min(CONNECT_TIMEOUT_S, self.timeout_s),
            read_timeout=self.timeout_s,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=32,
            request_checksum_calculation="when_required",  # many compatible servers do not know the newer checksums
            response_checksum_validation="when_required",
        )
        self.transfer_config = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, use_threads=False)
        self._shared: Any = None
        self._shared_pid = 0
        self._shared_lock = threading.Lock()

    def get_default_settings(self) -> dict[str, Any]:
        own = {"timeout_s": 20.0, "file_overwrite": False, "object_parameters": {"ContentType": "application/octet-stream"}}
        return {**super().get_default_settings(), **own}

    @property
    def place(self) -> str:
        at = f" at {self.endpoint_url}" if self.endpoint_url else ""
        return f"s3://{self.bucket_name}/{self.location}{at}"

    @property
    def connection(self) -> Any:
        """One for the process: making one takes a tenth of a second, and each request is a thread of its own. Only its client is used."""
        with self._shared_lock:
            if self._shared is None or self._shared_pid != os.getpid():
                made = self._create_session().resource(
                    "s3",
                    region_name=self.region_name,
                    use_ssl=self.use_ssl,
                    endpoint_url=self.endpoint_url,
                    config=self.client_config,
                    verify=self.verify,
                )
                self._shared, self._shared_pid, self._bucket = made, os.getpid(), None
            return self._shared

    @property
    def client(self) -> Any:
        return self.connection.meta.client

    def save(self, name: str | None, content: Any, max_length: int | None = None) -> str:
        with self._told():
            return str(super().save(name, content, max_length))

    def reader(self, name: str) -> IO[bytes]:
        key = self._normalize_name(name)
        head = self._head(name)
        return io.BufferedReader(_Windows(self, key, int(head["ContentLength"]), head["ETag"]), FIRST_WINDOW)

    def delete(self, name: str) -> None:
        with self._told():
            self.client.delete_object(Bucket=self.bucket_name, Key=self._normalize_name(name))

    def exists(self, name: str) -> bool:
        try:
            self._head(name)
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        return int(self._head(name)["ContentLength"])

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        under = "/".join(part for part in (self.location, prefix.strip("/")) if part)
        skip = len(self.location) + 1 if self.location else 0
        with self._told():
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket_name, Prefix=f"{under}/" if under else "")
            for page in pages:
                for found in page.get("Contents", ()):
                    if not found["Key"].endswith("/"):  # consoles make "folders" that way
                        yield Entry(found["Key"][skip:], int(found["Size"]), found["LastModified"].timestamp())

    def probe(self) -> None:
        with self._told():
            self.client.list_objects_v2(Bucket=self.bucket_name, Prefix=self.location, MaxKeys=1)

    def sweep(self, older_than_s: float) -> int:
        limit = datetime.now(UTC) - timedelta(seconds=older_than_s)
        removed = 0
        with self._told():
            under = f"{self.location}/" if self.location else ""
            for page in self.client.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket_name, Prefix=under):
                for upload in page.get("Uploads", ()):
                    if upload["Initiated"] < limit:
                        self.client.abort_multipart_upload(Bucket=self.bucket_name, Key=upload["Key"], UploadId=upload["UploadId"])
                        removed += 1
        return removed

    def url(self, name: str, *_args: Any, **_options: Any) -> str:
        raise NotImplementedError("files leave through the portal, which asks who is there")

    def fetch(self, key: str, etag: str, start: int, length: int) -> bytes:
        """Part of an object, which must still be the same. Raises: FileNotFoundError."""
        asked = {"Bucket": self.bucket_name, "Key": key, "IfMatch": etag, "Range": f"bytes={start}-{start + length - 1}"}
        with self._told():
            for attempt in range(WINDOW_TRIES):
                try:
                    data: bytes = self.client.get_object(**asked)["Body"].read()
                except (HTTPError, HTTPClientError, ConnectionError):  # the answer broke off, which boto3 does not try again
                    if attempt == WINDOW_TRIES - 1:
                        raise
                else:
                    return data
        raise AssertionError("unreachable")

    def _head(self, name: str) -> dict[str, Any]:
        with self._told():
            try:
                found: dict[str, Any] = self.client.head_object(Bucket=self.bucket_name, Key=self._normalize_name(name))
            except ClientError as error:
                if _status(error) != 404:
                    raise
                self.client.list_objects_v2(Bucket=self.bucket_name, Prefix=self.location, MaxKeys=1)  # is it the bucket that is missing?
                raise FileNotFoundError(name) from error
            return found

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, Boto3Error, HTTPError) as error:
            raise self._in_our_words(error) from error

    def _in_our_words(self, error: BaseException) -> FileNotFoundError | StoreUnavailable:
        cause: BaseException | None = error
        while isinstance(cause, Boto3Error) and cause.__context__ is not None:  # what an upload failed of
            cause = cause.__context__
        if isinstance(cause, ClientError):
            code = str(cause.response.get("Error", {}).get("Code", ""))
            if code == "NoSuchBucket":
                return unusable("bucket_missing", self.place, error)
            if code in GONE:
                return FileNotFoundError(str(error))
            return unusable("access_denied" if code in DENIED or _status(cause) in (401, 403) else "refused", self.place, error)
        if isinstance(cause, (NoCredentialsError, PartialCredentialsError)):
            return unusable("no_credentials", self.place, error)
        if isinstance(cause, (ConnectTimeoutError, ReadTimeoutError)) or "timed out" in str(cause).lower():
            return unusable("timeout", self.place, error)
        return unusable("unreachable" if isinstance(cause, (ConnectionError, HTTPClientError, HTTPError)) else "refused", self.place, error)


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


class _Windows(io.RawIOBase):
    """Reads an object by ranges that grow while it is read in order and are small again after a jump."""

    def __init__(self, store: ObjectStore, key: str, size_bytes: int, etag: str) -> None:
        super().__init__()
        self._store, self._key, self._etag = store, key, etag
        self._size = size_bytes
        self._at = 0
        self._ahead = FIRST_WINDOW
        self._start, self._window = 0, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError("negative seek position")
        if base + offset != self._at:
            self._ahead = FIRST_WINDOW
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size or not len(buffer):
            return 0
        if not self._start <= self._at < self._start + len(self._window):
            length = min(max(self._ahead, len(buffer)), LARGEST_WINDOW, self._size - self._at)
            self._window = self._store.fetch(self._key, self._etag, self._at, length)
            self._start = self._at
            self._ahead = min(self._ahead * 2, LARGEST_WINDOW)
        first = self._at - self._start
        piece = self._window[first : first + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        self._window = b""
        super().close()
