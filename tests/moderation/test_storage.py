"""Bytes by space and base: from rows, and from a walk over the store that repairs nothing."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command

from apps.common.scope import unscoped
from apps.moderation.models import StorageFigure, StorageReport
from apps.moderation.tasks import measure_storage
from tests.moderation.conftest import House


def test_the_store_is_measured_by_base_and_orphans_are_counted_but_kept(house: House) -> None:
    document = house.library.add("pump.txt", "The pump is replaced every five years.")
    store = Path(settings.DATA_DIR) / "files"
    orphan = store / str(house.library.space.pk) / "left" / "over"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x" * 100)
    os.utime(orphan, (time.time() - 7200,) * 2)
    assert "Not measured yet." in house.page("storage")
    assert measure_storage() == 3
    with unscoped("test"):
        figures = {row.kb_ref: row for row in StorageFigure.objects.all()}
        report = StorageReport.objects.get()
    derived = (store / document.parsed_path).stat().st_size
    assert (figures[document.kb_id].originals_bytes, figures[document.kb_id].derived_bytes) == (38, derived)
    assert (figures[0].derived_bytes, figures[0].files) == (100, 1)
    assert (report.files, report.files_bytes, report.orphan_files, report.missing_files) == (3, 138 + derived, 1, 0)
    assert orphan.exists(), "measuring repairs nothing"
    assert measure_storage() == 3
    with unscoped("test"):
        assert (StorageFigure.objects.count(), StorageReport.objects.count()) == (2, 2)
    (store / document.storage_path).unlink()
    out = io.StringIO()
    call_command("measure_storage", stdout=out)
    assert out.getvalue() == f"2 files, {100 + derived} bytes, 1 without a row, 1 missing\n"
    assert "1 file is missing from the store" in house.page("index")


def test_the_page_says_where_the_lines_are(house: House, settings: Any) -> None:
    house.document(file_size=5 * 1024**2)
    settings.DISK_WARN_BYTES, settings.DISK_REFUSE_BYTES = 0, 0
    text = house.page("storage")
    assert "There is room." in text and "5.0\xa0MB" in text and "Team" in text
    settings.DISK_WARN_BYTES = 2**50
    assert "People are warned when they upload." in house.page("storage")
    assert "less than the 1.0\xa0PB" in house.page("index")
    settings.DISK_REFUSE_BYTES = 2**50
    assert "New files are refused." in house.page("storage")
    assert "new files are refused below" in house.page("index")
