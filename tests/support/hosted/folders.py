"""Benches for what is no hosted service: feeds, web sites, folders, WebDAV, buckets and Git, each with its real server."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shutil
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from dulwich import porcelain
from dulwich.repo import Repo
from dulwich.server import DictBackend, TCPGitServer
from dulwich.web import make_wsgi_chain
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug import Request, Response
from wsgidav.wsgidav_app import WsgiDAVApp

from tests.support.hosted.benches import Bench
from tests.support.hosted.serving import Server, application, say

SECRET = "Pa55-word-Value-0001"


class FeedBench(Bench):
    type, keeps = "rss", True

    def start(self) -> None:
        self.entries: dict[str, tuple[str, str]] = {}
        self.server = Server(application(self.route))

    def route(self, request: Request) -> Response:
        if request.headers.get("X-Feed-Key") != SECRET:
            return say("no", 401)
        if request.path == "/other.xml":
            return say('<feed xmlns="http://www.w3.org/2005/Atom"><title>Other</title></feed>', Content_Type="application/atom+xml")
        items = "".join(
            f"<item><guid isPermaLink='false'>{key}</guid><title>{html.escape(title)}</title><pubDate>Sun, 01 Mar 2026 10:00:00 GMT</pubDate>"
            f"<content:encoded><![CDATA[<p>{text}</p>]]></content:encoded></item>"
            for key, (title, text) in self.entries.items()
        )
        feed = f'<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>News</title>{items}</channel></rss>'
        etag = f'"{hashlib.sha256(feed.encode()).hexdigest()[:16]}"'
        if request.headers.get("If-None-Match") == etag:
            return Response(status=304, headers={"ETag": etag})
        return say(feed, Content_Type="application/rss+xml", ETag=etag)

    def write(self, key: str, text: str) -> None:
        self.entries[key] = (self.entries[key][0] if key in self.entries else f"{key} entry", text)

    def retitle(self, key: str) -> str:
        self.entries[key] = ("Another name", self.entries[key][1])
        return "Another name"

    def remove(self, key: str) -> None:
        del self.entries[key]

    def settings(self) -> dict[str, Any]:
        return {"feed_urls": f"{self.server.url}/feed.xml\n{self.server.url}/other.xml"}

    def credentials(self) -> dict[str, str]:
        return {"auth_headers": f"X-Feed-Key: {SECRET}"}

    def wrong(self) -> dict[str, str]:
        return {"auth_headers": "X-Feed-Key: wrong-Key-77"}

    def break_part(self) -> None:
        self.server.gate.answer(500, "/other.xml")


class SiteBench(Bench):
    type = "web_crawler"
    has_credentials = False

    def start(self) -> None:
        self.pages: dict[str, tuple[str, str]] = {}
        self.server = Server(application(self.route))

    def route(self, request: Request) -> Response:
        if request.path == "/":
            links = "".join(f'<a href="/docs/{key}#top">{key}</a>' for key in self.pages)
            return say(
                f"<html><head><title>Start</title></head><body><p>Start here</p>{links}<a href='http://other.test/'>x</a></body></html>"
            )
        key = request.path.removeprefix("/docs/")
        if key not in self.pages:
            return say("gone", 404)
        title, text = self.pages[key]
        return say(
            f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1><p>{text}</p><a href='/'>back</a></main></body></html>"
        )

    def write(self, key: str, text: str) -> None:
        self.pages[key] = (self.pages[key][0] if key in self.pages else f"{key} page", text)

    def retitle(self, key: str) -> str:
        self.pages[key] = ("Another name", self.pages[key][1])
        return "Another name"

    def remove(self, key: str) -> None:
        del self.pages[key]

    def settings(self) -> dict[str, Any]:
        return {"start_urls": self.server.url + "/"}

    def break_part(self) -> None:
        self.server.gate.answer(500, "/docs/gamma")


class FolderBench(Bench):
    type = "local_folder"
    has_credentials = speaks_http = has_parts = False

    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="bench_folder_"))
        (self.root / "docs").mkdir()

    def path(self, key: str) -> Path:
        return self.root / "docs" / f"{key}.md"

    def write(self, key: str, text: str) -> None:
        self.path(key).write_text(text, encoding="utf-8")

    def retitle(self, key: str) -> str:
        self.path(key).rename(self.root / "renamed.md")
        return "renamed.md"

    def remove(self, key: str) -> None:
        self.path(key).unlink()

    def settings(self) -> dict[str, Any]:
        return {"folder": str(self.root)}

    def close(self) -> None:
        shutil.rmtree(self.root)


class DavBench(FolderBench):
    type = "webdav"
    has_credentials = speaks_http = has_parts = True

    def start(self) -> None:
        super().start()
        (self.root / "shut").mkdir()
        app = WsgiDAVApp(
            {
                "provider_mapping": {"/files": str(self.root)},
                "simple_dc": {"user_mapping": {"*": {"ada": {"password": SECRET}}}},
                "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
                "verbose": 0,
                "logging": {"enable_loggers": []},
            }
        )
        self.server = Server(app)

    def settings(self) -> dict[str, Any]:
        return {"url": self.server.url + "/files/"}

    def credentials(self) -> dict[str, str]:
        return {"username": "ada", "password": SECRET}

    def wrong(self) -> dict[str, str]:
        return {"username": "ada", "password": "wrong-Word-77"}

    def break_part(self) -> None:
        self.server.gate.answer(403, "/files/shut")

    def close(self) -> None:
        self.server.close()
        super().close()


class BucketBench(Bench):
    type = "s3"
    has_parts = False

    def start(self) -> None:
        self.inner = DomainDispatcherApplication(create_backend_app)
        self.server = Server(self.guarded)
        self.store = boto3.client(
            "s3", endpoint_url=self.server.url, region_name="eu-west-1", aws_access_key_id="AKIATEST", aws_secret_access_key=SECRET
        )
        self.store.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})

    @property
    def bucket(self) -> str:
        return f"docs-{id(self)}"

    def guarded(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """moto behind a check of the signature, which it does not make itself."""
        problem = signature_problem(Request(environ))
        if problem:
            body = f"<?xml version='1.0'?><Error><Code>{problem}</Code><Message>no</Message></Error>"
            return Response(body, 403, content_type="application/xml")(environ, start_response)
        return self.inner(environ, start_response)

    def write(self, key: str, text: str) -> None:
        self.store.put_object(Bucket=self.bucket, Key=f"docs/{key} 1+2.md", Body=text.encode())

    def retitle(self, key: str) -> str:
        old = f"docs/{key} 1+2.md"
        self.store.copy_object(Bucket=self.bucket, Key="docs/改名.md", CopySource={"Bucket": self.bucket, "Key": old})
        self.store.delete_object(Bucket=self.bucket, Key=old)
        return "改名.md"

    def remove(self, key: str) -> None:
        self.store.delete_object(Bucket=self.bucket, Key=f"docs/{key} 1+2.md")

    def settings(self) -> dict[str, Any]:
        return {"endpoint_url": self.server.url, "region": "eu-west-1", "bucket": self.bucket, "prefix": "docs/"}

    def credentials(self) -> dict[str, str]:
        return {"access_key_id": "AKIATEST", "secret_access_key": SECRET}

    def wrong(self) -> dict[str, str]:
        return {"access_key_id": "AKIATEST", "secret_access_key": "wrong-Secret-77"}


def signature_problem(request: Request) -> str:
    """What S3 would say of a request's signature of version 4; "" when it is right."""
    given = request.headers.get("Authorization", "")
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\w+)/\d+/([\w-]+)/s3/aws4_request, ?SignedHeaders=([\w;-]+), ?Signature=(\w+)", given
    )
    if not found:
        return "AccessDenied"
    if found.group(1) != "AKIATEST":
        return "InvalidAccessKeyId"
    path = request.environ.get("RAW_URI") or request.environ["REQUEST_URI"]
    asked = AWSRequest(request.method, f"http://{request.host}{path}", headers={n: request.headers[n] for n in found.group(3).split(";")})
    asked.context["timestamp"] = request.headers["X-Amz-Date"]
    asked.context["payload_signing_enabled"] = True
    auth = S3SigV4Auth(Credentials("AKIATEST", SECRET), "s3", found.group(2))
    auth.payload = lambda _request: request.headers["X-Amz-Content-Sha256"]  # type: ignore[method-assign]
    string = auth.string_to_sign(asked, auth.canonical_request(asked))
    return "" if auth.signature(string, asked) == found.group(4) else "SignatureDoesNotMatch"


class GitBench(Bench):
    """A repository behind dulwich's smart HTTP server and a password."""

    type = "git"
    has_parts = False

    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="bench_git_"))
        porcelain.init(str(self.root))
        inner = make_wsgi_chain(DictBackend({"/docs.git": Repo(str(self.root))}))
        packed = base64.b64encode(f"ada:{SECRET}".encode()).decode()

        def guarded(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if environ.get("HTTP_AUTHORIZATION") != f"Basic {packed}":
                return Response("no", 401, headers={"WWW-Authenticate": "Basic"})(environ, start_response)
            return inner(environ, start_response)

        self.server = Server(guarded)

    def commit(self, **changes: str | None) -> bytes:
        """One commit; None removes a file. `__` in a name stands for a slash."""
        for key, text in changes.items():
            path = self.root / key.replace("__", "/")
            path = path.with_suffix(path.suffix or ".md")
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        return self.keep()

    def keep(self) -> bytes:
        porcelain.add(str(self.root))
        return porcelain.commit(str(self.root), message=b"a change", author=b"Ada <ada@example.com>", committer=b"Ada <ada@example.com>")

    def write(self, key: str, text: str) -> None:
        self.commit(**{f"docs__{key}": text})

    def retitle(self, key: str) -> str:
        (self.root / "docs" / f"{key}.md").rename(self.root / "docs" / "renamed.md")
        self.keep()
        return "renamed.md"

    def remove(self, key: str) -> None:
        self.commit(**{f"docs__{key}": None})

    def settings(self) -> dict[str, Any]:
        return {"url": self.server.url + "/docs.git"}

    def credentials(self) -> dict[str, str]:
        return {"username": "ada", "access_token": SECRET}

    def wrong(self) -> dict[str, str]:
        return {"username": "ada", "access_token": "wrong-Token-77"}

    def close(self) -> None:
        self.server.close()
        shutil.rmtree(self.root)


class GitSocketBench(GitBench):
    """The same repository behind dulwich's TCP server, which knows no passwords."""

    named = "git-socket"
    has_credentials = speaks_http = False

    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="bench_git_"))
        porcelain.init(str(self.root))
        self.daemon = TCPGitServer(DictBackend({"/docs.git": Repo(str(self.root))}), "127.0.0.1", 0)
        threading.Thread(target=lambda: self.daemon.serve_forever(poll_interval=0.02), daemon=True).start()

    def settings(self) -> dict[str, Any]:
        return {"url": f"git://127.0.0.1:{self.daemon.server_address[1]}/docs.git"}

    def credentials(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        self.daemon.shutdown()
        self.daemon.server_close()
        shutil.rmtree(self.root)
