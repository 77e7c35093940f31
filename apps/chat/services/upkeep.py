"""System steps: they change only what nobody is working on, and may run twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.chat.models import Citation, Message, StreamEvent
from apps.common.scope import unscoped
from apps.knowledge.models import Document

EVENTS_KEPT = timedelta(hours=24)
AT_ONCE = 500


def turns_settle(message_pk: int | None = None) -> int:
    """End answers whose writer has not been heard of (its process was killed): what was written stays, with the reason; how many."""
    with unscoped("answers whose writer is gone"):
        lost = Message.objects.filter(state=Message.State.RUNNING, lease_until__lt=Now())
        if message_pk is not None:
            lost = lost.filter(pk=message_pk)
        return sum(_settle(pk) for pk in list(lost.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]))


def _settle(pk: int) -> int:
    with transaction.atomic():
        taken = Message.objects.filter(pk=pk, state=Message.State.RUNNING, lease_until__lt=Now()).update(
            state=Message.State.FAILED, reason="interrupted", lease_until=None, updated_at=Now()
        )
        if not taken:
            return 0
        message = Message.objects.get(pk=pk)
        events: list[dict[str, Any]] = list(StreamEvent.objects.filter(message_id=pk).order_by("seq").values_list("payload", flat=True))
        message.content = "".join(event.get("content", "") for event in events if event.get("response_type") == "answer")
        message.save(update_fields=["content"])
        text = _("The portal was restarted while this answer was written. Ask again to get a whole one.")
        ended = {"id": message.request_id, "response_type": "error", "content": text, "done": True}
        last = StreamEvent.objects.filter(message_id=pk).aggregate(last=Max("seq"))["last"]
        try:
            with transaction.atomic():
                seq = 0 if last is None else last + 1
                payload = {**ended, "data": {"stage": "interrupted", "error": text}}
                StreamEvent.objects.create(space_id=message.space_id, message_id=pk, seq=seq, payload=payload)
        except IntegrityError:
            return 1  # its writer stored a last event in between: that is the end readers get
    return 1


def events_trim() -> int:
    """Drop the streams of answers that ended long ago: their messages hold all that matters; how many events."""
    gone = 0
    with unscoped("streams of answers that ended"):
        old = ~Q(message__state=Message.State.RUNNING) & Q(message__updated_at__lt=timezone.now() - EVENTS_KEPT)
        while pks := list(StreamEvent.objects.filter(old).order_by("pk").values_list("pk", flat=True)[:5000]):
            gone += StreamEvent.objects.filter(pk__in=pks).delete()[0]
    return gone


def quotations_forget() -> int:
    """Take the text out of citations whose document is gone for good, wherever it was quoted; how many."""
    forgotten = 0
    with unscoped("quotations of what is gone"):
        uids = list(Citation.objects.exclude(content="").order_by().values_list("document_uid", flat=True).distinct())
        for start in range(0, len(uids), AT_ONCE):
            part = uids[start : start + AT_ONCE]
            there = set(Document.objects.filter(uid__in=part).values_list("uid", flat=True))
            gone = [uid for uid in part if uid not in there]
            if gone:
                forgotten += Citation.objects.filter(document_uid__in=gone).exclude(content="").update(content="", row={})
                _forget_streams(gone)
    return forgotten


def _forget_streams(documents: list[Any]) -> None:
    """The events of these answers held the same text, and the questions offered after them its headings."""
    messages = Citation.objects.filter(document_uid__in=documents).values_list("message_id", flat=True)
    Message.objects.filter(pk__in=list(messages.distinct())).exclude(suggestions={}).update(suggestions={})
    StreamEvent.objects.filter(message_id__in=list(messages.distinct())).exclude(message__state=Message.State.RUNNING).delete()
