"""Files in: pages and passages per second of one worker, memory of a large PDF, how soon a small file is found while others wait.

    python -m benchmarks.ingestion              # everything, on a portal of its own
    python -m benchmarks.ingestion --only pages # one part: pages, large, fair

Starts a portal of its own on a fresh data folder and a free loopback port, and stops it. Prints a Markdown table. `benchmarks.portal` measures how
soon a file is found on a portal that has nothing else to do.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.portal import found_after, report, timed
from tests.ingestion.builders import pdf
from tests.support.rest import Rest
from tests.support.stack import LiveStack

Row = tuple[str, str, str]
SENTENCES = (
    "The pump is checked every quarter, and the reading is written down beside the name of whoever took it.",
    "传感器应每季度校准一次，校准结果由值班长签字确认，异常写入日志。",
    "A leak is reported at once; the valve stays closed until the seal has been replaced and tested.",
    "停机前先关闭进水阀，待压力降到零以后再打开泄压口。",
)
PAGES, FILES = 50, 6
LARGE = 1600
WAITING = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PARTS), help="one part")
    parser.add_argument("--waiting", type=int, default=WAITING, help="files that wait in the other space (fair)")
    args = parser.parse_args()
    rows: list[Row] = []
    for name, part in PARTS.items():
        if args.only in (None, name):
            rows += part(args)
    print("| what | measured | target |\n|---|---|---|")
    for what, value, target in rows:
        print(f"| {what} | {value} | {target} |")


def on_a_portal(work: Callable[[LiveStack, Rest, str], list[Row]], **env: str) -> list[Row]:
    """The rows of `work` on a portal with these settings, that read a first file already."""
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        stack = LiveStack(Path(folder) / "data", env=env)
        try:
            stack.start()
            rest = Rest(stack.base_url).sign_up()
            base = rest.make_base()
            rest.wait(rest.upload(base, "warm.pdf", text_pdf(1, "WARM")).body["data"]["id"], timeout_s=120)
            return work(stack, rest, base)
        finally:
            stack.stop()


def text_pdf(pages: int, mark: str) -> bytes:
    """A PDF of full pages of Chinese and English, every line another one."""
    lines = [
        [(60, 790 - 20 * at, f"{mark}-{page:04d}-{at:02d} {SENTENCES[(page + at) % len(SENTENCES)]}") for at in range(36)]
        for page in range(1, pages + 1)
    ]
    return pdf(lines, size=10)


def pages_per_second(_args: argparse.Namespace) -> list[Row]:
    """One worker, one file at a time; until all are found, and until all have vectors."""

    def work(stack: LiveStack, rest: Rest, base: str) -> list[Row]:
        files = [text_pdf(PAGES, f"F{number}") for number in range(FILES)]
        start = time.perf_counter()
        documents = [rest.upload(base, f"f{number}.pdf", data).body["data"]["id"] for number, data in enumerate(files)]
        for document in documents:
            rest.wait(document, "finalizing", "completed", "failed", timeout_s=900)
        words_s = time.perf_counter() - start
        chunks = sum(rest.document(document)["chunk_count"] for document in documents)
        rows: list[Row] = [
            (f"text PDF ({FILES} × {PAGES} pages), parse, chunk, index words", f"{FILES * PAGES / words_s:.1f} pages/s", "-"),
            ("the same in passages", f"{chunks / words_s:.1f} passages/s", "-"),
        ]
        return rows

    def with_vectors(stack: LiveStack, rest: Rest, base: str) -> list[Row]:
        start = time.perf_counter()
        document = rest.upload(base, "v.pdf", text_pdf(PAGES, "V")).body["data"]["id"]
        done = rest.wait(document, timeout_s=3600)
        whole_s = time.perf_counter() - start
        return [
            (f"text PDF ({PAGES} pages) with vectors (packaged embedder)", f"{PAGES / whole_s:.2f} pages/s", "-"),
            ("the same in passages", f"{done['vector_count'] / whole_s:.2f} passages/s", "-"),
        ]

    one = {"KB_PARSE_CONCURRENCY": "1"}
    return on_a_portal(work, KB_EMBEDDER="none", **one) + on_a_portal(with_vectors, **one)


def large_pdf(_args: argparse.Namespace) -> list[Row]:
    def work(stack: LiveStack, rest: Rest, base: str) -> list[Row]:
        data = text_pdf(LARGE, "L")
        with Peak(stack.pids["worker"]) as peak:
            document = rest.upload(base, "large.pdf", data).body["data"]["id"]
            took_s = timed(lambda: rest.wait(document, timeout_s=1800))
        done = rest.document(document)
        assert (done["parse_status"], done["counts"]) == ("completed", {"pages": LARGE}), done["error_message"]
        return [
            (
                f"{LARGE}-page PDF ({len(data) >> 20} MiB, {done['chunk_count']:,} passages), peak of the parse process",
                f"{peak.child_mb} MB",
                "1500 MB",
            ),
            ("the same, peak of the worker process", f"{peak.worker_mb} MB", "-"),
            ("the same, until its words are found", f"{took_s:.0f} s", "-"),
        ]

    return on_a_portal(work, KB_EMBEDDER="none")


class Peak:
    """Largest resident memory of a worker and of its parse processes while the block runs, in MiB (Linux)."""

    def __init__(self, worker: int) -> None:
        self.worker, self.worker_mb, self.child_mb = worker, 0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self.worker_mb = max(self.worker_mb, _resident_mb(self.worker))
            for task in Path(f"/proc/{self.worker}/task").iterdir():
                try:
                    children = (task / "children").read_text(encoding="ascii").split()
                except OSError:
                    continue
                self.child_mb = max([self.child_mb, *(_resident_mb(int(child)) for child in children)])


def _resident_mb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), 0)


def fair_share(args: argparse.Namespace) -> list[Row]:
    """A small file of one space while another space has hundreds waiting."""

    def work(stack: LiveStack, rest: Rest, base: str) -> list[Row]:
        other = Rest(stack.base_url).sign_up("busy")
        crowd = other.make_base("Crowd")
        for number in range(args.waiting):
            other.upload(crowd, f"w{number}.md", f"# Waiting {number}\n\n" + "\n\n".join(SENTENCES * 20) + f"\n\nCROWD-{number:04d}\n")
        waiting = sum(1 for row in _all(other, crowd) if row["parse_status"] in ("pending", "processing"))
        small = [
            found_after(rest, base, f"s{n}.md", f"# Small\n\nFAIR-{n:03d} {SENTENCES[1]}\n".encode(), f"FAIR-{n:03d}") for n in range(3)
        ]
        ten = found_after(rest, base, "ten.pdf", report(7), "PAGE-007-10")
        return [
            (f"a small file in space B found while {waiting} files of space A wait, worst of 3", f"{max(small):.1f} s", "10 s"),
            ("a 10-page text PDF in space B, the same", f"{ten:.1f} s", "-"),
        ]

    return on_a_portal(work)


def _all(rest: Rest, base: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    page = 1
    while found := rest.data("GET", f"/knowledge-bases/{base}/knowledge?page={page}&page_size=100"):
        rows += found
        page += 1
    return rows


PARTS: dict[str, Callable[[argparse.Namespace], list[Row]]] = {"pages": pages_per_second, "large": large_pdf, "fair": fair_share}

if __name__ == "__main__":
    main()
