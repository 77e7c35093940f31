"""The contents every space of the world has: the same names in each, so that a mix-up shows. A new kind of id is added here."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.files.base import ContentFile
from django.utils import timezone

from apps.common.actor import Actor
from apps.common.models import Activity
from apps.knowledge.models import Chunk, Document
from apps.knowledge.models.chunk import passage_hash
from apps.knowledge.services import Arrival, base_create, document_upload
from apps.knowledge.services.tags import tag_create
from apps.llm.models import Model
from apps.sources.models import DataSource, SourceItem, SyncRun

TEXT = "The pump is replaced every five years."

#: ids that exist nowhere
UNKNOWN: dict[str, Any] = {
    name: uuid.UUID(int=number)
    for number, name in enumerate(
        ("kb_id", "other_kb_id", "document_id", "chunk_id", "tag_id", "task_id", "model_id", "source_id", "log_id"), 7
    )
}
UNKNOWN["row_id"] = 999_999_999


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
    # Nobody listens there, and the address is refused before anybody is asked.
    model = Model.objects.create(space_id=document.space_id, name="letters", base_url="http://127.0.0.1:9/v1")
    feed = {"feed_urls": "http://127.0.0.1:9/feed.xml"}
    source = DataSource.objects.create(space_id=document.space_id, kb=base, type="rss", name="News", settings=feed)
    run = SyncRun.objects.create(space_id=document.space_id, kind="sync", source=source, state="done")
    SourceItem.objects.create(
        space_id=document.space_id, source=source, key="0" * 64, external_id="1", title="Gone", state="held", vanished_at=timezone.now()
    )
    return {
        "source_id": source.uid,
        "log_id": run.uid,
        "model_id": model.uid,
        "kb_id": base.uid,
        "other_kb_id": other.uid,
        "tag_id": tag.uid,
        "document_id": document.uid,
        "chunk_id": chunk.uid,
        "task_id": uuid.UUID(int=11),
        "row_id": Activity.objects.filter(scope_id=base.uid).order_by("pk").values_list("pk", flat=True)[0],
    }
