"""How long an import of question pairs takes, and how often its progress can be seen to move.

    python benchmarks/faq_import.py [--rows 5000]

Makes a portal of its own in a temporary folder, writes a workbook of `--rows` entries with three questions each, and runs it through the file
reader, the check and the import, as a worker would; a second thread reads the run's row as a client that polls would.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        os.environ |= {"KB_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "kbportal.settings.dev", "KB_LOG_LEVEL": "WARNING"}
        import django

        django.setup()
        print(json.dumps(measure(Path(folder), rows), indent=2))
    return 0


def write_book(path: Path, rows: int) -> None:
    import xlsxwriter

    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ["分类", "问题", "相似问题", "反例问题", "机器人回答"])
    for n in range(rows):
        answer = f"请在登录页面选择“忘记密码”，按第 {n} 封邮件中的说明操作；如果没有收到邮件，请联系管理员。"
        sheet.write_row(
            n + 1,
            0,
            [f"分类{n % 20}", f"第 {n} 号业务如何办理", f"{n} 号业务怎么办##办理 {n} 号业务需要什么", f"如何取消 {n} 号业务", answer],
        )
    book.close()


def measure(folder: Path, rows: int) -> dict[str, object]:
    from django.core.management import call_command
    from django.db import connection

    from apps.common.actor import Actor, Role
    from apps.common.jobs.claims import claim_next
    from apps.common.jobs.registry import job_kinds
    from apps.common.jobs.tasks import work
    from apps.common.scope import space_scope, unscoped
    from apps.faq.models import FaqEntry, FaqImportRun
    from apps.faq.services import entries_read, import_start
    from apps.knowledge.services import base_create
    from apps.retrieval.engine import bare_engine
    from apps.spaces.models import Space

    call_command("migrate", verbosity=0)
    bare_engine().ensure()
    space = Space.objects.create(name="Bench", kind=Space.Kind.ORGANIZATION)
    actor = Actor(kind="user", space_id=space.pk, space_kind="organization", role=Role.ADMIN)
    book = folder / "faq.xlsx"
    write_book(book, rows)
    seen: list[tuple[float, int]] = []
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(0.1):
            with unscoped("a client that polls"):
                done = FaqImportRun.objects.values_list("progress_done", flat=True).latest("pk")
            if not seen or seen[-1][1] != done:
                seen.append((time.perf_counter(), done))
        connection.close()

    with space_scope(space.pk):
        base = base_create(actor=actor, values={"name": "FAQ", "type": "faq"})
        started = time.perf_counter()
        found = entries_read(actor=actor, base=base, path=book, file_name="faq.xlsx")
        read = time.perf_counter()
        import_start(actor=actor, base=base, rows=found.rows, mode="append", file_name="faq.xlsx")
        queued = time.perf_counter()
    watcher = threading.Thread(target=poll)
    watcher.start()
    claim = claim_next(job_kinds.get("faq_import"))
    assert claim is not None
    work(claim)
    ended = time.perf_counter()
    stop.set()
    watcher.join()
    with unscoped("the result"):
        entries = FaqEntry.objects.count()
    moments = [queued, *(at for at, _done in seen), ended]
    pauses = sorted((round(b - a, 2) for a, b in zip(moments, moments[1:], strict=False)), reverse=True)
    return {
        "rows": rows,
        "entries": entries,
        "read_file_s": round(read - started, 2),
        "queue_rows_s": round(queued - read, 2),
        "check_and_import_s": round(ended - queued, 2),
        "whole_s": round(ended - started, 2),
        "longest_without_news_s": pauses[:3],
        "changes_seen": len(seen),
    }


if __name__ == "__main__":
    raise SystemExit(main())
