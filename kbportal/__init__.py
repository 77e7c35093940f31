"""kbportal: a knowledge portal that shows its work."""

from kbportal.celery import app as celery_app

__all__ = ["celery_app"]
