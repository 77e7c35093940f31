from apps.moderation.services.contents import content_grant_open, content_opened
from apps.moderation.services.runs import run_cancel, run_retry
from apps.moderation.services.storage import storage_measure

__all__ = ["content_grant_open", "content_opened", "run_cancel", "run_retry", "storage_measure"]
