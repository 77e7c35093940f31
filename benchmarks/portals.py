"""The same measurement inside a fresh portal on each engine: an own data folder, an own database, all of it gone afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.postgres import PostgresProcess

SERVER = {"shared_buffers": "512MB", "max_wal_size": "4GB"}  # as durable as a real one
ENGINES = ("sqlite", "postgres", "postgres-plain")


def on_each(engines: Sequence[str], module: str, arguments: Sequence[str]) -> None:
    """Run `python -m module --inside ENGINE arguments` for each engine, one after the other."""
    for engine in engines:
        with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder, _database(engine) as url:
            kept = {key: value for key, value in os.environ.items() if not key.startswith("KB_")}
            own = {
                "DJANGO_SETTINGS_MODULE": "kbportal.settings.test",
                "KB_TEST_DATA_DIR": f"{folder}/data",
                "KB_DATA_DIR": f"{folder}/data",
                "KB_DATABASE_URL": url,
            }
            Path(folder, "data", "index").mkdir(parents=True)
            subprocess.run([sys.executable, "-m", module, "--inside", engine, *arguments], env={**kept, **own}, check=True)


@contextmanager
def _database(engine: str) -> Iterator[str]:
    if engine == "sqlite":
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder, PostgresProcess(Path(folder), settings=SERVER) as server:
        url = server.create_database("bench")
        if engine == "postgres-plain":  # who may not create extensions gets the index without pgvector
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("CREATE ROLE plain LOGIN; ALTER DATABASE bench OWNER TO plain; ALTER SCHEMA public OWNER TO plain")
            url = url.replace("postgres@", "plain@")
        yield url


def open_portal() -> None:
    """In a child of `on_each`: Django set up for its test client, its database made.

    Not by `setup_test_environment`, which sends a signal with a copy of the context for every template drawn.
    """
    import django
    from django.conf import settings
    from django.core.management import call_command

    django.setup()
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    call_command("migrate", interactive=False, verbosity=0)
