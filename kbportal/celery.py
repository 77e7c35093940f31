"""The Celery application; messages are bells, rows are the work (see apps/common/jobs)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbportal.settings")

app = Celery("kbportal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["apps.common.jobs", "apps.retrieval", "apps.ingestion"])
