"""The Celery application; messages are bells, rows are the work (see apps/common/jobs)."""

import os

from celery import Celery
from celery.signals import setup_logging
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["folder"] = "apps.common.jobs.folder_transport:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbportal.settings")

app = Celery("kbportal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["apps.common.jobs"])
app.autodiscover_tasks()  # of every installed app: a list would have to be thought of with each new context


@setup_logging.connect
def _keep_django_logging(**_options: object) -> None:
    """A listener keeps Celery from replacing levels and handlers: its processes log as every other one does."""
