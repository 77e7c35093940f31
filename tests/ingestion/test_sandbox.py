"""The sandbox: whatever a file does to its parser ends that document with a reason, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from apps.ingestion import sandbox
from apps.ingestion.plugins.protocol import Block, ExtractedImage, ParsedDocument, ParseFailure, ParseRequest, ParseWarning, Position
from apps.ingestion.sandbox import Limits, parse_file
from apps.ingestion.sandbox_wire import read_document, request_from_json, request_to_json, write_document
from tests.ingestion import builders as make

ROOT = Path(__file__).resolve().parents[2]
#: Takes the place of the parsers in the child: what a hostile file might make a parser do.
HOSTILE = """
import sys, types
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure
fake = types.ModuleType("apps.ingestion.plugins.parsers")
def parse(request, progress):
    {body}
    return ParsedDocument(text="ended", blocks=[])
fake.parse = parse
sys.modules["apps.ingestion.plugins.parsers"] = fake
from apps.ingestion.sandbox_child import main
sys.argv = ["child"]
sys.exit(main())
"""


@pytest.fixture
def behave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """behave(body, ...) parses in a child whose parser does what `body` says."""
    real = subprocess.Popen

    def run(body: str, *, limits: Limits | None = None, **options: object) -> ParsedDocument:
        script = tmp_path / "child.py"
        script.write_text(HOSTILE.format(body=body), encoding="utf-8")
        monkeypatch.setattr(sandbox.subprocess, "Popen", lambda args, **kw: real([sys.executable, str(script)], **kw))
        path = tmp_path / "a.txt"
        path.write_bytes(b"x")
        return parse_file(ParseRequest(path, "a.txt"), limits=limits or Limits(wall_s=20, cpu_s=15), **options)  # type: ignore[arg-type]

    return run


def failure(call, *args: object, **options: object) -> ParseFailure:
    with pytest.raises(ParseFailure) as caught:
        call(*args, **options)
    return caught.value


def test_a_file_comes_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make.pdf([[(72, 700, f"页 {n} 编号 K-{n:04d}")] for n in range(1, 30)]))
    seen: list[tuple[int, int, str]] = []
    document = parse_file(ParseRequest(path, "a.pdf"), on_progress=lambda *step: seen.append(step))
    assert document == make.read(path)
    assert seen[-1] == (29, 29, "pages")


def test_pictures_come_back(tmp_path: Path) -> None:
    import base64

    path = tmp_path / "a.md"
    path.write_bytes(b"before ![alt](data:image/png;base64," + base64.b64encode(make.picture()) + b") after")
    (image,) = parse_file(ParseRequest(path, "a.md")).images
    assert (image.data, image.media_type, image.alt) == (make.picture(), "image/png", "alt")


def test_the_parser_s_own_reason_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"\x7fELF")
    found = failure(parse_file, ParseRequest(path, "a.exe"))
    assert found.reason == "unsupported_type" and "elf" in found.message
    assert found.details == {"media_type": "application/x-executable"}


def test_wire_round_trip(tmp_path: Path) -> None:
    place = Position(page=3, bbox=(0.1, 0.2, 0.3, 0.4))
    document = ParsedDocument(
        text="| a |\n| --- |\n| 1 |",
        blocks=[Block("table", 0, 19, place, header="| a |\n| --- |\n", rows=((14, 19, Position(sheet="S", cells="A2")),))],
        title="题",
        counts={"pages": 3},
        images=[ExtractedImage("i.png", "image/png", b"\x00\xff", 5, place, "alt")],
        warnings=[ParseWarning("code", "words", place, 4)],
        needs_ocr_pages=[1],
        unreadable_pages=[2],
        details={"x": [1]},
    )
    write_document(document, tmp_path)
    assert read_document(tmp_path) == document
    request = ParseRequest(Path("/a"), "n", ocr_pages=(1, 2), password="p")
    assert request_from_json(json.loads(json.dumps(request_to_json(request)))) == request


def test_a_hang_times_out(behave) -> None:
    start = time.monotonic()
    found = failure(behave, "import threading; threading.Event().wait()", limits=Limits(wall_s=0.8, cpu_s=10))
    assert found.reason == "timeout" and time.monotonic() - start < 5


def test_endless_computing_is_cut(behave) -> None:
    found = failure(behave, "while True: pass", limits=Limits(wall_s=30, cpu_s=1))
    assert found.reason == "timeout"


@pytest.mark.parametrize("body", ["x = b'x' * 10**10", "x = [b'y' * 10**7 for _ in range(1000)]"], ids=["at once", "bit by bit"])
def test_memory_is_bounded(behave, body: str) -> None:
    found = failure(behave, body, limits=Limits(wall_s=30, cpu_s=20, memory_bytes=200_000_000))
    assert found.reason == "out_of_memory" and "memory" in found.message


@pytest.mark.parametrize(
    "body", ["import os; os.abort()", "import ctypes; ctypes.string_at(0)", "raise RuntimeError('boom')", "import os; os._exit(7)"]
)
def test_a_crash_is_told(behave, body: str) -> None:
    assert failure(behave, body).reason == "crashed"


@pytest.mark.parametrize(
    "body",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket()",
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import os; os.fork()",
        "open('/tmp/kb-sandbox-escape', 'w')",
        "import os; os.open('/tmp/kb-sandbox-escape', os.O_CREAT | os.O_WRONLY)",
        "import os; os.remove(__file__ if '__file__' in globals() else '/tmp/x')",
    ],
)
def test_no_network_no_programs_no_writing(behave, body: str) -> None:
    found = failure(behave, body)
    assert found.reason == "crashed" and "PermissionError: the sandbox refuses" in found.details["trace"]
    assert not os.path.exists("/tmp/kb-sandbox-escape")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel filter is Linux")
def test_native_code_gets_no_socket_either(behave) -> None:
    body = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); s = libc.socket(2, 1, 0); raise ParseFailure('unsafe', f'{s} {ctypes.get_errno()}')"
    found = failure(behave, body)
    assert found.message == "-1 1"


def test_the_environment_holds_no_secret(behave, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_SECRET_KEY", "hush")
    found = failure(behave, "import os; raise ParseFailure('unsafe', ' '.join(sorted(os.environ)))")
    assert "KB_SECRET_KEY" not in found.message and "ORT_DISABLE_TELEMETRY" in found.message


def test_too_much_output_is_cut(behave) -> None:
    body = "return ParsedDocument(text='x' * 3_000_000, blocks=[])"
    assert failure(behave, body, limits=Limits(wall_s=20, cpu_s=15, output_bytes=1_000_000)).reason == "too_large"


def test_nonsense_on_the_pipe_is_a_crash(behave) -> None:
    assert (
        failure(
            behave, "import os; [os.write(n, b'{nonsense\\n') for n in range(3, 12) if os.path.exists(f'/proc/self/fd/{n}') and n > 2]"
        ).reason
        == "crashed"
    )


def test_prints_of_a_library_do_not_disturb(behave) -> None:
    assert behave("print('noise'); import os; os.write(1, b'{noise\\n')").text == "ended"


def test_stop_kills_at_once(behave) -> None:
    start = time.monotonic()
    found = failure(behave, "import threading; threading.Event().wait()", should_stop=lambda: time.monotonic() - start > 0.5)
    assert found.reason == "cancelled" and time.monotonic() - start < 4


def test_an_error_in_the_progress_callback_ends_the_child(behave, tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, total: int, unit: str) -> None:
        raise Stop

    body = "progress(1, 1, 'pages'); import threading; threading.Event().wait()"
    with pytest.raises(Stop):
        behave(body, on_progress=stop)


def test_no_temporary_folder_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    path = tmp_path / "a.txt"
    path.write_text("hello")
    assert parse_file(ParseRequest(path, "a.txt")).text == "hello"
    assert list((tmp_path / "t").iterdir()) == []


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    """Kill -9 on the worker: the parser must not go on alone."""
    script = tmp_path / "worker.py"
    (tmp_path / "child.py").write_text(
        HOSTILE.format(body="progress(1, 2, 'pages'); import threading; threading.Event().wait()"), encoding="utf-8"
    )
    script.write_text(
        f"""
import os, subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from apps.ingestion import sandbox
from apps.ingestion.plugins.protocol import ParseRequest
real = subprocess.Popen
def start(args, **kw):
    process = real([sys.executable, {str(tmp_path / "child.py")!r}], **kw)
    print(process.pid, flush=True)
    return process
sandbox.subprocess.Popen = start
Path({str(tmp_path / "a.txt")!r}).write_text("x")
sandbox.parse_file(ParseRequest(Path({str(tmp_path / "a.txt")!r}), "a.txt"), on_progress=lambda *a: print("working", flush=True))
""",
        encoding="utf-8",
    )
    worker = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    child = int(worker.stdout.readline())
    assert worker.stdout.readline() == "working\n"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    deadline = time.monotonic() + 5
    while _lives(child) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_child_starts_light() -> None:
    """Neither Django nor a format's library is loaded before a file is known to need it."""
    code = "import sys, apps.ingestion.plugins.parsers; print(sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for heavy in (
        "django",
        "lxml",
        "pypdfium2",
        "pdfplumber",
        "numpy",
        "pptx",
        "mammoth",
        "rapidocr",
        "onnxruntime",
        "charset_normalizer",
        "html_to_markdown",
        "PIL",
    ):
        assert f"'{heavy}'" not in loaded


def test_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "手册.md"
    path.write_text("# 标题\n\n正文", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "apps.ingestion.sandbox_child", str(path)], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, "# 标题\n\n正文")
    path.write_bytes(b"")
    done = subprocess.run([sys.executable, "-m", "apps.ingestion.sandbox_child", str(path)], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 1 and done.stderr.decode().startswith("empty: ")


def test_limits_are_plain_values() -> None:
    assert dataclasses.asdict(Limits(1.0, 2, 3, 4)) == {"wall_s": 1.0, "cpu_s": 2, "memory_bytes": 3, "output_bytes": 4}


def test_1600_pages_within_little_memory(tmp_path: Path) -> None:
    """The report kind: a small PDF of very many pages that fills tens of gigabytes elsewhere."""
    path = tmp_path / "big.pdf"
    path.write_bytes(make.pdf([[(72, 760, f"页 {n:04d} 编号 K-{n:04d}")] for n in range(1, 1601)]))
    document = parse_file(ParseRequest(path, "big.pdf"), limits=Limits(wall_s=60, cpu_s=50, memory_bytes=300_000_000))
    assert document.counts == {"pages": 1600}
    assert make.place_of(document, "K-1337").page == 1337
