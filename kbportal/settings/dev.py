"""A developer's machine: debug pages, static files straight from their folders."""

from kbportal.settings.base import *  # noqa: F403
from kbportal.settings.base import STORAGES

STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
