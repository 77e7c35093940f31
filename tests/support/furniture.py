"""The contents every space of the world has: the same names in each, so that a mix-up shows. A new kind of id is added here."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.files.base import ContentFile
from django.utils import timezone

from apps.chat.models import ChatSession, Citation, Message, StreamEvent
from apps.common.actor import Actor
from apps.common.models import Activity
from apps.evaluation.models import EvaluationResult, EvaluationRun
from apps.evaluation.services import Draft as Asked
from apps.evaluation.services import set_create
from apps.faq.models import FaqImportRow, FaqImportRun
from apps.faq.services import Draft, IncomingRow, entry_create, import_start
from apps.knowledge.models import Chunk, Document
from apps.knowledge.models.chunk import passage_hash
from apps.knowledge.services import Arrival, base_create, document_upload
from apps.knowledge.services.tags import tag_create
from apps.llm.models import Model
from apps.sources.models import DataSource, SourceItem, SyncRun
from apps.wiki.drafts import PageChange, PageDraft
from apps.wiki.services import folder_create, issue_raise, page_change, page_create, page_propose

TEXT = "The pump is replaced every five years."

#: ids that exist nowhere
UNKNOWN: dict[str, Any] = {
    name: uuid.UUID(int=number)
    for number, name in enumerate(
        (
            "kb_id",
            "other_kb_id",
            "document_id",
            "chunk_id",
            "tag_id",
            "task_id",
            "model_id",
            "session_id",
            "message_id",
            "faq_kb_id",
            "source_id",
            "log_id",
            "wiki_kb_id",
            "wiki_page_id",
            "wiki_folder_id",
            "wiki_issue_id",
            "wiki_proposal_id",
            "set_id",
            "run_id",
        ),
        7,
    )
}
UNKNOWN["row_id"] = 999_999_999
UNKNOWN["entry_id"] = 999_999_999_999
UNKNOWN["page_slug"] = "no/such/page"
UNKNOWN["faq_task_id"] = f"faq_import_1_1700000000000_0123abcd_{uuid.UUID(int=99)}"


def converse(actor: Actor, chunk: Chunk) -> tuple[ChatSession, Message]:
    """A conversation of the actor's with one question and its answer, which cites a passage."""
    session = ChatSession.objects.create(space_id=actor.space, owner=actor.who, owner_user_id=actor.user_id, title="Pumps", is_titled=True)
    return session, answer_in(session, chunk)


def answer_in(session: ChatSession, chunk: Chunk) -> Message:
    """One more question of a conversation, with its answer."""
    both = {"space_id": session.space_id, "session": session, "request_id": "r-1", "created_at": timezone.now()}
    question = Message.objects.create(role="user", content="How often is the pump replaced?", **both)
    reply = Message.objects.create(role="assistant", parent=question, content=f"{TEXT} [1]", answerer="extractive", **both)
    offered = {"id": "q1", "text": "Why?", "ask": "Why?", "source": "document", "kb_id": "", "events": {}}
    reply.suggestions = {"id": f"of-{reply.uid}", "status": "ready", "reason": "", "made_by": "extractive", "questions": [offered]}
    reply.save(update_fields=["suggestions"])
    Citation.objects.create(
        space_id=session.space_id,
        message=reply,
        number=1,
        is_cited=True,
        chunk_uid=chunk.uid,
        document_uid=chunk.document.uid,
        kb_uid=chunk.kb.uid,
        document_title=chunk.document.title,
        content_hash=chunk.content_hash,
        content=chunk.content,
        hit_reason="body",
    )
    StreamEvent.objects.create(
        space_id=session.space_id, message=reply, seq=0, payload={"id": "r-1", "response_type": "complete", "done": True}
    )
    return reply


def wiki_of(actor: Actor) -> dict[str, Any]:
    """A base with a wiki of two pages that two people would change, and the ids of what is in it."""
    base = base_create(actor=actor, values={"name": "Wiki", "indexing_strategy": {"wiki_enabled": True, "keyword_enabled": True}})
    folder = folder_create(actor=actor, base=base, name="Plant")
    slug = f"plant/pump-{base.pk}"
    page = page_create(actor=actor, base=base, draft=PageDraft(title="Pump", content=f"{TEXT} See [[nowhere]].", slug=slug, folder=folder))
    page_change(actor=actor, page=page, change=PageChange(content=f"{TEXT} See [[nowhere]] or [[here]]."))
    issue = issue_raise(actor=actor, page=page, kind="stale", description="The manual says six years.")
    proposal = page_propose(actor=actor, page=page, change=PageChange(content="The pump is replaced every six years."))
    return {
        "wiki_kb_id": base.uid,
        "wiki_page_id": page.uid,
        "page_slug": slug,
        "wiki_folder_id": folder_create(actor=actor, base=base, name="Empty").uid,
        "wiki_issue_id": issue.uid,
        "wiki_proposal_id": proposal.uid,
    }


def furnish(actor: Actor) -> dict[str, Any]:
    """Two bases; in the first a tag and a file with one passage. Called inside the scope of the actor's space."""
    base = base_create(actor=actor, values={"name": "Handbook"})
    other = base_create(actor=actor, values={"name": "Archive"})
    tag = tag_create(actor=actor, base=base, name="pumps")
    upload = ContentFile(TEXT.encode(), name="pump.txt")
    document = document_upload(actor=actor, base=base, upload=upload, file_name="pump.txt", arrival=Arrival()).document
    Document.objects.filter(pk=document.pk).update(parse_status="completed", enabled=True, chunk_count=1)
    chunk = Chunk.objects.create(
        space_id=document.space_id,
        kb=base,
        document=document,
        chunk_index=0,
        content=TEXT,
        content_hash=passage_hash(TEXT),
        start_at=0,
        end_at=len(TEXT),
    )
    faq = base_create(actor=actor, values={"name": "Answers", "type": "faq"})
    entry = entry_create(actor=actor, base=faq, draft=Draft("How often is the pump replaced?", answers=("Every five years.",)))
    rows = [IncomingRow(raw={}, reason="not_an_entry")]
    task = import_start(actor=actor, base=faq, rows=rows, mode="append")
    FaqImportRow.objects.filter(run=task).update(state="failed", reason="not_an_entry")
    FaqImportRun.objects.filter(pk=task.pk).update(state="done", is_checked=True, counts={"failed": 1})
    # Nobody listens there, and the address is refused before anybody is asked.
    model = Model.objects.create(space_id=document.space_id, name="letters", base_url="http://127.0.0.1:9/v1")
    session, reply = converse(actor, chunk)
    feed = {"feed_urls": "http://127.0.0.1:9/feed.xml"}
    source = DataSource.objects.create(space_id=document.space_id, kb=base, type="rss", name="News", settings=feed)
    run = SyncRun.objects.create(space_id=document.space_id, kind="sync", source=source, state="done")
    SourceItem.objects.create(
        space_id=document.space_id, source=source, key="0" * 64, external_id="1", title="Gone", state="held", vanished_at=timezone.now()
    )
    asked = set_create(actor=actor, name="Pumps", questions=[Asked("How often is the pump replaced?", documents=("pump.txt",))])
    measured = EvaluationRun.objects.create(
        space_id=document.space_id, kind="evaluate", question_set=asked, kb_ref=base.pk, kb_uid=base.uid, kb_name=base.name, state="done"
    )
    EvaluationResult.objects.create(space_id=document.space_id, run=measured, question=asked.questions.get(), index=0)
    return {
        **wiki_of(actor),
        "set_id": asked.uid,
        "run_id": measured.uid,
        "source_id": source.uid,
        "log_id": run.uid,
        "session_id": session.uid,
        "message_id": reply.uid,
        "model_id": model.uid,
        "kb_id": base.uid,
        "other_kb_id": other.uid,
        "tag_id": tag.uid,
        "document_id": document.uid,
        "chunk_id": chunk.uid,
        "task_id": uuid.UUID(int=11),
        "faq_kb_id": faq.uid,
        "entry_id": entry.seq_id,
        "faq_task_id": task.task_id,
        "row_id": Activity.objects.filter(scope_id=base.uid).order_by("pk").values_list("pk", flat=True)[0],
    }
