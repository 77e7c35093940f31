"""The work of importing an archive, entry by entry: each in the transaction that also says what became of it, so a killed run goes on."""

from __future__ import annotations

from typing import Any

from django.core.files.base import ContentFile
from django.db import transaction

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.jobs.claims import Claim, Stop
from apps.common.jobs.models import RunState
from apps.knowledge.models import Chunk, Document, DocumentImage, KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.wiki import store
from apps.wiki.archives import with_pictures
from apps.wiki.drafts import PageChange, PageDraft
from apps.wiki.enabling import has_wiki
from apps.wiki.exporting import ENDINGS
from apps.wiki.foldering import folder_made
from apps.wiki.linking import shown_content
from apps.wiki.models import PageClaim, PageSlug, PageSource, PageType, WikiImportItem, WikiPage, WikiRun
from apps.wiki.services.pages import page_change, page_create, page_move

AT_ONCE = 20
Kind, State = WikiImportItem.Kind, WikiImportItem.State
MADE = (WikiPage.Mode.RULES, WikiPage.Mode.MODEL, WikiPage.Mode.AGENT)


def work_import(claim: Claim) -> None:
    """Raises: DomainError when the base or its wiki is gone; Stop."""
    run = WikiRun.objects.get(pk=claim.run.pk)
    actor = Actor(kind="system", user_id=run.starter_id, space_id=run.space_id, reason=f"wiki import {run.pk}")
    items = WikiImportItem.objects.filter(run=run)
    total = items.count()
    while True:
        claim.check()
        base = _base(run)
        with transaction.atomic():
            claim.hold()
            part = list(items.filter(state=State.WAITING).order_by("index")[:AT_ONCE])
            for item in part:
                _take(actor, base, run, item)
        if not part:
            break
        left = items.filter(state=State.WAITING).count()
        claim.progress(total - left, total, "entries", failed=items.filter(state=State.FAILED).count())
    with transaction.atomic():
        claim.hold()
        counts = {state: items.filter(kind=Kind.PAGE, state=state).count() for state in State.values}
        items.exclude(state=State.FAILED).delete()
        items.update(blob=None)
        claim.rows().update(counts=counts)
        if not claim.finish(RunState.DONE):
            raise Stop("lost")


def _base(run: WikiRun) -> KnowledgeBase:
    base = KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).first()
    if base is None or not has_wiki(base):
        raise DomainError("the base was deleted, or its wiki turned off", code="deleted")
    return base  # type: ignore[no-any-return]


def _take(actor: Actor, base: KnowledgeBase, run: WikiRun, item: WikiImportItem) -> None:
    try:
        with transaction.atomic():
            if item.kind == Kind.FOLDER:
                folder_made(base.space_id, base.pk, item.path)
                item.state = State.CREATED
            elif item.kind == Kind.PICTURE:
                item.state = State.SAME  # taken over with the first page that shows it
            else:
                item.state = _page(actor, base, run, item.data)
    except DomainError as error:
        item.state, item.error = State.FAILED, str(error)[:500]
    item.save(update_fields=["state", "error"])


def _page(actor: Actor, base: KnowledgeBase, run: WikiRun, data: dict[str, Any]) -> str:
    folder = folder_made(base.space_id, base.pk, data["folder"])
    kind = data["type"] if data["type"] in PageType.values else ""
    status = data["status"] if data["status"] in WikiPage.Status.values else WikiPage.Status.PUBLISHED
    aliases = tuple(data["aliases"])
    texts = {"title": data["title"], "summary": data["summary"], "page_type": kind, "status": status}
    row = PageSlug.objects.filter(kb=base, slug=data["slug"], is_current=True).select_related("page__kb", "page__document").first()
    if row is None:
        made = data["made"] if data["made"] in MADE else WikiPage.Mode.IMPORT
        draft = PageDraft(**texts, content=data["content"], slug=data["slug"], aliases=aliases, folder=folder, metadata=data["metadata"])
        page = page_create(actor=actor, base=base, draft=draft, made_by=made, model_name=data["model"][:128])
        text = with_pictures(data["content"], _handles(run, page, data["pictures"]))
        if text != data["content"]:
            page = page_change(actor=actor, page=page, change=PageChange(content=text))
        _beside(page, data)
        return str(State.CREATED)
    page = row.page
    text = with_pictures(data["content"], _handles(run, page, data["pictures"]))
    before = (page.version, page.folder_id, page.metadata, shown_content(page))
    page = page_change(actor=actor, page=page, change=PageChange(**texts, content=text, aliases=aliases))
    page_move(actor=actor, page=page, folder=folder)
    if page.metadata != data["metadata"]:
        WikiPage.objects.filter(pk=page.pk).update(metadata=data["metadata"])
    _beside(page, data)
    after = (page.version, folder.pk if folder else None, data["metadata"], shown_content(page))
    return str(State.SAME if before == after else State.CHANGED)


def _handles(run: WikiRun, page: WikiPage, pictures: dict[str, str]) -> dict[str, str]:
    """{address as the text has it: `resource://...`} of the pictures that came along; those the base has already are not kept twice."""
    found: dict[str, str] = {}
    for address, path in pictures.items():
        rows = WikiImportItem.objects.filter(run=run, kind=Kind.PICTURE, blob__isnull=False)
        item = rows.filter(path=path).first() or rows.filter(path__endswith=f"/{path.rsplit('/', 1)[-1]}").order_by("index").first()
        if item is not None:
            found[address] = _picture(page, item).url
    return found


def _picture(page: WikiPage, item: WikiImportItem) -> DocumentImage:
    known = (
        DocumentImage.objects.filter(kb_id=page.kb_id, sha256=item.data["sha256"], document__deleted_at__isnull=True).order_by("pk").first()
    )
    if known is not None:
        return known  # type: ignore[no-any-return]
    data, media_type = bytes(item.blob or b""), item.data["media_type"]
    folder = f"{page.space_id}/{page.kb.uid}/{page.document.uid}/images/wiki"
    key = f"{folder}/{item.data['sha256'][:32]}.{ENDINGS[media_type]}"
    if not storage.exists(key):
        storage.write(key, ContentFile(data))
    return DocumentImage.objects.create(  # type: ignore[no-any-return]
        space_id=page.space_id,
        kb_id=page.kb_id,
        document_id=page.document_id,
        chunk=Chunk.objects.filter(document_id=page.document_id, chunk_index=0).get(),
        number=DocumentImage.objects.filter(document_id=page.document_id).count(),
        sha256=item.data["sha256"],
        storage_path=key,
        media_type=media_type,
        size_bytes=len(data),
    )


def _beside(page: WikiPage, data: dict[str, Any]) -> None:
    """Sources and claims as the file has them; those whose document is not in this base say so."""
    uids = {uid for row in [*data["sources"], *data["claims"]] if (uid := as_uuid(row.get("document")))}
    documents = {row.uid: row for row in Document.objects.filter(kb_id=page.kb_id, uid__in=uids, deleted_at__isnull=True)}
    PageSource.objects.filter(page=page).delete()
    PageClaim.objects.filter(page=page).delete()
    seen: set[Any] = set()
    for place, row in enumerate(data["sources"][:1000]):
        uid = as_uuid(row.get("document"))
        if uid is None or uid in seen:
            continue
        seen.add(uid)
        PageSource.objects.create(
            space_id=page.space_id,
            page=page,
            document=documents.get(uid),
            document_uid=uid,
            document_version=_number(row.get("version")),
            title=str(row.get("title") or "")[:1024],
            state=WikiPage.State.CURRENT if uid in documents else WikiPage.State.SOURCE_WITHDRAWN,
            place=place,
        )
    marks: set[str] = set()
    for place, row in enumerate(data["claims"][:10_000]):
        uid, mark = as_uuid(row.get("document")), str(row.get("mark") or "")[:32]
        if uid is None or not mark or mark in marks:
            continue
        marks.add(mark)
        passages = [str(each)[:36] for each in row.get("passages") or []][:100] if isinstance(row.get("passages"), list) else []
        PageClaim.objects.create(
            space_id=page.space_id,
            page=page,
            page_version=page.version,
            anchor=mark,
            place=place,
            text=str(row.get("text") or ""),
            document=documents.get(uid),
            document_uid=uid,
            document_version=_number(row.get("version")),
            document_title=str(row.get("title") or "")[:1024],
            chunk_uids=passages,
            chunk_ids=_chunks(documents.get(uid), passages),
            quote=str(row.get("quote") or ""),
            state=WikiPage.State.CURRENT if uid in documents else WikiPage.State.SOURCE_WITHDRAWN,
        )
    store.state_follow(page)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31 else 1


def _chunks(document: Document | None, uids: list[str]) -> list[int]:
    known = [uid for raw in uids if (uid := as_uuid(raw))]
    if document is None or not known:
        return []
    return list(Chunk.objects.filter(document=document, uid__in=known).order_by("pk").values_list("pk", flat=True))


def end_import(run: Any) -> None:
    """The bytes of pictures need not be kept; pages that were taken over stay."""
    WikiImportItem.objects.filter(run_id=run.pk).exclude(state=State.FAILED).delete()
