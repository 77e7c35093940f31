"""What the schedule sends, a worker knows."""

from __future__ import annotations

import subprocess
import sys

from tests.inventory.source import ROOT

UNKNOWN = """
import django
django.setup()
from django.conf import settings
from kbportal.celery import app
app.loader.import_default_modules()
print(sorted(entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values() if entry["task"] not in app.tasks))
"""


def test_a_worker_knows_every_task_of_the_schedule() -> None:
    """In a process of its own: what other tests import would be known here."""
    ran = subprocess.run([sys.executable, "-c", UNKNOWN], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.strip() == "[]"
