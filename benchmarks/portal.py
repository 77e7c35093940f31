"""The portal as a whole: time to ready, idle memory, time from an upload's answer to being found, search latency over REST.

    python -m benchmarks.portal

Starts a portal of its own on a fresh data folder and a free loopback port, twice, and stops it. Prints a Markdown table.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.ingestion.builders import pdf
from tests.support.rest import Rest
from tests.support.stack import LiveStack

PAGE = "# 交接制度\n\n" + "夜班与早班的交接在七点进行，值班长签字确认，异常写入日志。\n\n" * 12 + "编号 {code} 只在这一份里。\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        stack = LiveStack(Path(folder) / "data")
        try:
            rows = measure(stack)
        finally:
            stack.stop()
    print("| what | measured | target |\n|---|---|---|")
    for what, value, target in rows:
        print(f"| {what} | {value} | {target} |")


def measure(stack: LiveStack) -> list[tuple[str, str, str]]:
    first = timed(stack.start)
    rest = Rest(stack.base_url).sign_up()
    base = rest.make_base()
    rest.wait(rest.upload(base, "warm.md", "# Warm\n\nThe first document loads the parsers.\n").body["data"]["id"], timeout_s=120)
    time.sleep(5)
    idle = memory_mb(stack)
    short = [found_after(rest, base, f"note-{n}.md", PAGE.format(code=f"FRESH-{n:03d}").encode(), f"FRESH-{n:03d}") for n in range(10)]
    long = [found_after(rest, base, f"report-{n}.pdf", report(n), f"PAGE-{n:03d}-10") for n in range(3)]
    for document in rest.data("GET", f"/knowledge-bases/{base}/knowledge?page_size=100"):
        rest.wait(document["id"], timeout_s=600)
    hybrid = [timed(lambda n=n: rest.search(base, f"交接 FRESH-{n % 10:03d}")) * 1000 for n in range(60)][10:]
    words = [timed(lambda n=n: rest.search(base, f"交接 FRESH-{n % 10:03d}", disable_vector_match=True)) * 1000 for n in range(60)][10:]
    busy = memory_mb(stack)
    second = timed(stack.restart)
    return [
        ("first start on an empty data folder to ready", f"{first:.1f} s", "-"),
        ("second start to ready, stop included", f"{second:.1f} s", "10 s"),
        ("idle memory, all processes (PSS)", f"{idle:.0f} MB", "500 MB"),
        ("memory after embedding and searching (PSS)", f"{busy:.0f} MB", "-"),
        (
            "1-page Markdown found by words after the upload returned, median (worst)",
            f"{statistics.median(short):.2f} s ({max(short):.2f})",
            "2 s",
        ),
        ("10-page text PDF found by words, median (worst)", f"{statistics.median(long):.2f} s ({max(long):.2f})", "5 s"),
        ("hybrid search over REST, p50 / p95", spread(hybrid), "300 ms p95"),
        ("search by words over REST, p50 / p95", spread(words), "300 ms p95"),
    ]


def timed(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{statistics.median(ordered):.0f} / {ordered[int(len(ordered) * 0.95) - 1]:.0f} ms"


def found_after(rest: Rest, base: str, name: str, data: bytes, code: str) -> float:
    """Seconds from the answer to the upload until the code is found."""
    rest.upload(base, name, data)
    start = time.perf_counter()
    while not any(code in hit["content"] for hit in rest.search(base, code, match_count=3, disable_vector_match=True)):
        time.sleep(0.05)
        assert time.perf_counter() - start < 120, f"{code} was not found"
    return time.perf_counter() - start


def report(number: int) -> bytes:
    lines = [
        [(72, 780 - 20 * line, f"Page {page}, line {line}: the pump is checked every quarter.") for line in range(30)]
        for page in range(1, 11)
    ]
    for page, content in enumerate(lines, 1):
        content.append((72, 100, f"Code PAGE-{number:03d}-{page}"))
    return pdf(lines)


def memory_mb(stack: LiveStack) -> float:
    """Proportional set size of every process of the portal, in MiB (Linux)."""
    total = 0
    for pid in stack.pids.values():
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        total += int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:")))
    return total / 1024


if __name__ == "__main__":
    main()
