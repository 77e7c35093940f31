"""What conversations do about news of others."""

from __future__ import annotations

from apps.chat.models import ChatSession
from apps.common.events import listen
from apps.spaces.events import SpaceDeleted


@listen(SpaceDeleted)
def end_conversations(event: SpaceDeleted) -> None:
    """A space that is gone keeps no conversation."""
    ChatSession.objects.filter(space_id=event.space_id).delete()
