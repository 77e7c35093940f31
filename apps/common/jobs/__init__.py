"""Background work: the row is the queue, Celery only rings the bell (docs/architecture.md)."""
