"""The process in which one file is parsed: `python -m apps.ingestion.sandbox_child`.

Standard input carries one line of JSON (request, limits, folder) and stays open as a sign that the parent lives; standard output carries
JSON lines: progress, then one of done, failed. With a file name as argument it parses that file and prints its text, for trying by hand.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

PROGRESS_EVERY_S = 0.1


def main() -> int:
    if len(sys.argv) > 1:
        return by_hand(sys.argv[1:])
    from apps.ingestion import sandbox_walls

    out = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints goes to standard error, not into the messages
    job = json.loads(_first_line())
    sandbox_walls.die_with_parent()
    sandbox_walls.set_limits(int(job["cpu_s"]), int(job["memory_bytes"]), int(job["output_bytes"]))
    os.chdir(job["folder"])
    sandbox_walls.forbid(job["folder"])

    def say(message: dict[str, Any]) -> None:
        data = (json.dumps(message, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(out, data) :]

    say(run(job, say))
    sys.stderr.flush()
    os._exit(0)  # native libraries have been seen to crash in their own clean-up


def _first_line() -> str:
    """Byte by byte from the descriptor: nothing may stay in a buffer, the watcher reads on."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
        if len(line) > 1_000_000:
            raise SystemExit(2)
    return line.decode()


def run(job: dict[str, Any], say: Any) -> dict[str, Any]:
    """Parse and write the result; gives the last message."""
    from pathlib import Path

    from apps.ingestion.plugins.protocol import ParseFailure
    from apps.ingestion.sandbox_wire import request_from_json, write_document

    last = 0.0

    def progress(done: int, total: int, unit: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done >= total or now - last >= PROGRESS_EVERY_S:
            last = now
            say({"type": "progress", "done": done, "total": total, "unit": unit})

    try:
        if "pictures" in job:
            from apps.ingestion.plugins.looking import look

            paths = [Path(each) for each in job["pictures"]]
            look(paths, Path(job["folder"]), ocr=bool(job["ocr"]), side=int(job["side"]), progress=progress)
            return {"type": "done"}
        from apps.ingestion.plugins.parsers import parse

        document = parse(request_from_json(job["request"]), progress)
        write_document(document, Path(job["folder"]))
    except ParseFailure as failure:
        return {"type": "failed", "reason": failure.reason, "message": failure.message, "details": _plain(failure.details)}
    except MemoryError:
        return {"type": "failed", "reason": "out_of_memory", "message": "the file needs too much memory, over the limit", "details": {}}
    except RecursionError:
        return {"type": "failed", "reason": "too_large", "message": "the file is nested too deep, over the limit", "details": {}}
    except OSError as error:
        if error.errno == 27:  # EFBIG, the limit on the result
            return {"type": "failed", "reason": "too_large", "message": "the result is too large, over the limit", "details": {}}
        raise
    return {"type": "done"}


def _plain(details: dict[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, str | int | float | bool | list) else str(v) for k, v in details.items()}


def by_hand(arguments: list[str]) -> int:
    """Parse a file in a sandbox of its own and write its text to standard output, counts and messages to standard error."""
    from pathlib import Path

    from apps.ingestion.plugins.protocol import ParseFailure, ParseRequest, reason_if_empty
    from apps.ingestion.sandbox import parse_file

    path = Path(arguments[0]).resolve()
    try:
        document = parse_file(ParseRequest(path, path.name, ocr="--no-ocr" not in arguments))
    except ParseFailure as failure:
        sys.stderr.write(f"{failure.reason}: {failure.message}\n")
        return 1
    for unit, number in document.counts.items():
        sys.stderr.write(f"{unit}={number}\n")
    for warning in document.warnings:
        sys.stderr.write(f"warning: {warning.message}\n")
    if reason := reason_if_empty(document):
        sys.stderr.write(f"reason: {reason}\n")
    sys.stdout.buffer.write(document.text.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
