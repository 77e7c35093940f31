"""The embedded broker: kombu's filesystem transport with whole files only.

kombu's own writes a message into its final name, so a reader that lists the folder at that moment takes a file that is still empty,
fails to decode it and takes the whole worker down (seen under load). Here a file appears under its name complete or not at all, is taken
by a rename inside the same folder, and one that cannot be decoded is dropped: the row behind it is the work, the message only a bell.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

log = logging.getLogger(__name__)


def _write_whole(path: Path, text: str) -> None:
    fresh = path.with_name(f".{uuid.uuid4().hex}.part")
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


class Channel(filesystem.Channel):  # type: ignore[misc]
    """Messages are files `<milliseconds>_<id>.<queue>.msg`, oldest first by name."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]  # kombu names it `message` one class higher
        name = f"{time.time_ns() // 1_000_000:015d}_{uuid.uuid4()}.{queue}.msg"
        try:
            _write_whole(Path(self.data_folder_out) / name, dumps(payload))
        except OSError as error:
            raise ChannelError(f"cannot add a message to {self.data_folder_out}") from error

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = Path(self.data_folder_in)
        ending = f".{queue}.msg"
        for name in sorted(name for name in os.listdir(folder) if name.endswith(ending)):
            taken = folder / f".{name}.taken"
            try:
                os.rename(folder / name, taken)  # whoever renames first has it
                text = taken.read_text(encoding="utf-8")
                taken.unlink()
                return loads(text)
            except FileNotFoundError:
                continue
            except (OSError, json.JSONDecodeError, UnicodeDecodeError):
                log.warning("a message that cannot be read was dropped: %s", name)
        raise Empty()

    def get_table(self, exchange: str) -> list[Any]:
        file = self._exchange_file(exchange)
        try:
            return [filesystem.exchange_queue_t(*entry) for entry in loads(file.read_text(encoding="utf-8"))]
        except FileNotFoundError:
            return []
        except (OSError, json.JSONDecodeError) as error:
            raise ChannelError(f"cannot read {file}") from error

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        file = self._exchange_file(exchange)
        file.parent.mkdir(parents=True, exist_ok=True)
        entry = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        try:
            with (file.parent / f".{exchange}.lock").open("w") as guard:
                fcntl.flock(guard, fcntl.LOCK_EX)
                table = self.get_table(exchange)
                if entry not in table:
                    _write_whole(file, dumps([entry, *table]))
        except OSError as error:
            raise ChannelError(f"cannot write {file}") from error


class Transport(filesystem.Transport):  # type: ignore[misc]
    """`folder://localhost`; options as of kombu's filesystem transport."""

    Channel = Channel
    driver_type = "folder"
    driver_name = "folder"
