"""From an original to passages: the steps that parse and OCR workers run.

Every result is stored in one transaction together with the end of its run; before it, nothing of this attempt is visible; a worker that
lost its hold stores nothing. Source: DESIGN 5 and 6, contract knowledge 4.2.
"""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import Conflict, DomainError, InvalidInput, StoreUnavailable
from apps.common.jobs.claims import Claim, Stop
from apps.common.jobs.models import RunState
from apps.ingestion import passwords, services, trace
from apps.ingestion.chunking.service import chunk, config_from_dict
from apps.ingestion.illustrating import Known, illustrate, known_pictures
from apps.ingestion.images import keys_of, replace_images, store_images
from apps.ingestion.lookers import pictures_start
from apps.ingestion.models import IngestionRun
from apps.ingestion.originals import local_original
from apps.ingestion.parsed import parsed_key, write_parsed
from apps.ingestion.plugins.protocol import REASONS, Block, ChunkResult, ParsedDocument, ParseFailure, ParseRequest, Piece
from apps.ingestion.sandbox import OCR_LIMITS, Limits, parse_file
from apps.knowledge.models import SCHEME, UNREAD, Chunk, Document, ParseStatus
from apps.knowledge.selectors import describing_of, is_of_earlier_version, reference
from apps.knowledge.services import document_fetch_source
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.retrieval.services import index_documents

log = logging.getLogger(__name__)

WARNINGS_IN_TRACE = 50
OCR_WALL_FACTOR = 4  # a page costs seconds by OCR where it costs milliseconds by its text layer


@dataclass(slots=True)
class Pass:
    """One run over one document, with what every step needs."""

    claim: Claim
    run: IngestionRun
    document: Document
    ocr: bool
    password: str = field(default="", repr=False)

    @property
    def overrides(self) -> dict[str, Any]:
        return dict((self.document.metadata or {}).get("process_overrides") or {})


def parse_work(claim: Claim) -> None:
    """Read a document by its text layer; hands over to OCR what has none."""
    _pass(claim, ocr=False)


def ocr_work(claim: Claim) -> None:
    """Read what only OCR can see; the same steps, one at a time per deployment."""
    _pass(claim, ocr=True)


def _pass(claim: Claim, *, ocr: bool) -> None:
    run = IngestionRun.objects.get(pk=claim.run.pk)
    document = (
        Document.objects.select_related("kb").filter(pk=run.document_id, deleted_at__isnull=True, attempt=run.document_attempt).first()
    )
    if document is None or document.kb.deleted_at is not None:
        passwords.forget(run.document_id)
        claim.finish(RunState.CANCELLED, reason="deleted")
        return
    work = Pass(claim, run, document, ocr, passwords.password_of(run))
    stage = "multimodal" if ocr else "docreader"
    try:
        _begin(work, stage)
        parsed = _read(work)
        if _hand_to_ocr(work, parsed):
            return
        known = known_pictures(work.document, parsed)
        _show(work, parsed, known)
        result = _split(work, parsed)
        _store(work, parsed, result, known)
    except ParseFailure as failure:
        _fail(work, failure.reason, failure.message, stage)
    except StoreUnavailable:
        raise  # the file is not to blame; the run is tried again
    except DomainError as error:
        _fail(work, error.code if error.code in ("timeout", "too_large", "fetch_failed") else "corrupt", str(error), stage)


def _begin(work: Pass, stage: str) -> None:
    document = work.document
    if not work.ocr:
        trace.start(document, document.attempt, "knowledge_processing", kind="root", trigger=work.run.options.get("trigger", "user"))
    trace.start(
        document, document.attempt, stage, parent="knowledge_processing", file_size=document.file_size, media_type=document.media_type
    )
    moved = Document.objects.filter(
        pk=document.pk, attempt=document.attempt, parse_status__in=[ParseStatus.PENDING, ParseStatus.PROCESSING]
    ).update(parse_status=ParseStatus.PROCESSING, updated_at=timezone.now())
    if not moved and not work.ocr:
        raise Stop("cancelled")


def _read(work: Pass) -> ParsedDocument:
    """The parsed original, from the sandbox. Raises: ParseFailure, TransientError (a fetch that may succeed later), Stop."""
    document = work.document
    if document.type in (Document.Type.URL, Document.Type.FILE_URL):
        _fetch(work)
        document = work.document
    rule = _rule(work)
    with local_original(document) as path:
        request = ParseRequest(
            path=path,
            file_name=document.file_name or document.title,
            media_type=document.media_type,
            encoding=str(work.run.options.get("encoding") or work.overrides.get("encoding") or ""),
            charset_hint=_charset(document),
            password=work.password,
            ocr=work.ocr,
            engine=str(rule.get("engine") or ""),
            header_row=rule.get("xlsx_first_row_as_header") is not False,
        )
        try:
            return parse_file(
                request,
                limits=_limits(work.ocr),
                on_progress=work.claim.progress,
                should_stop=work.claim.should_stop,
                folder=storage.temp_folder(),
            )
        except ParseFailure:
            work.claim.check()  # killed because it was stopped or taken over: that is no failure of the file
            raise


def _rule(work: Pass) -> dict[str, Any]:
    """How files of this type are read: the first rule of the upload, else of the base, that names the type; {} for the usual way."""
    splitting = {**(work.document.kb.chunking_config or {}), **(work.overrides.get("chunking_config") or {})}
    own = work.overrides.get("parser_engine_rules")
    rules = own if isinstance(own, list) else splitting.get("parser_engine_rules") or []
    return next((rule for rule in rules if work.document.file_type in rule.get("file_types", ())), {})


def _charset(document: Document) -> str:
    """The charset the web server claimed for a page, "" when it claimed none."""
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", str((document.metadata or {}).get("http_content_type", "")), re.I)
    return found[1] if found else ""


def _limits(ocr: bool) -> Limits:
    wall_s = float(settings.PARSE_TIMEOUT_S)
    if ocr:
        return replace(OCR_LIMITS, wall_s=wall_s * OCR_WALL_FACTOR, cpu_s=int(wall_s * OCR_WALL_FACTOR))
    return Limits(wall_s=wall_s, cpu_s=int(wall_s), memory_bytes=settings.PARSE_MEMORY_BYTES)


def _fetch(work: Pass) -> None:
    """Bring the page or file behind an address into the file store. Raises: ParseFailure, TransientError, Stop."""
    document = work.document
    try:
        actor = Actor.system(document.space_id, f"run {work.run.pk}")
        work.document = document_fetch_source(actor=actor, document=document, on_chunk=lambda _size: work.claim.check())
    except Conflict as error:
        raise Stop("lost") from error
    except InvalidInput as error:
        raise ParseFailure(error.code if error.code in REASONS else "fetch_failed", str(error)) from error


def _hand_to_ocr(work: Pass, parsed: ParsedDocument) -> bool:
    """When nothing could be read by its text layer: end this pass and queue one with OCR, or say what is missing."""
    if parsed.text.strip():
        return False
    is_picture = parsed.media_type.startswith("image/")
    pages = parsed.needs_ocr_pages or parsed.unreadable_pages or is_picture
    if parsed.images and not pages:
        return False  # nothing but pictures: they are the text
    if is_picture and (work.ocr or not settings.OCR_ENABLED) and describing_of(work.document) is not None:
        return False  # a picture without text is found by what a model says of it
    if work.ocr or not pages:
        reason = "unreadable_text" if parsed.unreadable_pages and not parsed.needs_ocr_pages else "empty"
        raise ParseFailure(reason, "no text was found" if reason == "empty" else "the text layer cannot be read")
    if not settings.OCR_ENABLED:
        reason = "unreadable_text" if parsed.unreadable_pages else "needs_ocr"
        raise ParseFailure(reason, "there is no text layer, and OCR is switched off here")
    with transaction.atomic():
        work.claim.hold()
        trace.finish(work.document, work.document.attempt, "docreader", pages=parsed.counts.get("pages", 1), needs_ocr=True)
        passwords.forget(work.document.pk)
        services.run_start(work.document, services.OCR, password=work.password)
        if not work.claim.finish(RunState.DONE):
            raise Stop("lost")
    return True


def _show(work: Pass, parsed: ParsedDocument, known: dict[str, Known]) -> None:
    """Pictures into the text where they stand; an uploaded picture without text is its own whole text."""
    illustrate(parsed, known)
    document = work.document
    if not parsed.text.strip() and parsed.media_type.startswith("image/") and document.content_sha256:
        parsed.text = reference(f"{SCHEME}{known[document.content_sha256].uid}", document.title)
        parsed.blocks = [Block("image", 0, len(parsed.text))]


def _split(work: Pass, parsed: ParsedDocument) -> ChunkResult:
    document = work.document
    stage = "multimodal" if work.ocr else "docreader"
    seen: dict[str, Any] = {"parser": parsed.parser, "characters": len(parsed.text), "encoding": parsed.encoding, **parsed.counts}
    if parsed.warnings:
        seen["warnings"] = _warnings(parsed)[:WARNINGS_IN_TRACE]
    trace.finish(document, document.attempt, stage, **seen)
    trace.start(document, document.attempt, "chunking", parent="knowledge_processing")
    config = config_from_dict({**(document.kb.chunking_config or {}), **(work.overrides.get("chunking_config") or {})})
    result = chunk(parsed, config)
    if not result.pieces:
        raise ParseFailure("empty", "no text was found")
    work.claim.check()
    return result


def _store(work: Pass, parsed: ParsedDocument, result: ChunkResult, known: dict[str, Known]) -> None:
    """Replace the document's passages and queue its vectors in one transaction; then put its words into the index and call it findable."""
    document = work.document
    key = parsed_key(document, work.run.pk)
    old_keys = [document.parsed_path, *keys_of(document)]
    images = store_images(document, parsed, work.run.pk)
    try:
        write_parsed(key, parsed)
        with transaction.atomic():
            work.claim.hold()
            count = _replace_chunks(document, result)
            _update_document(work, parsed, key, count)
            replace_images(document, parsed, images, known)
            trace.finish(document, document.attempt, "chunking", passages=count, tier=result.selected_tier, rejected=len(result.rejected))
            passwords.forget(document.pk)
            if not work.ocr and (parsed.needs_ocr_pages or parsed.unreadable_pages) and settings.OCR_ENABLED:
                services.run_start(document, services.OCR, password=work.password)
            elif not pictures_start(document) and not work.ocr:
                trace.skip(document, document.attempt, "multimodal", "nothing to read by OCR")
            services.embed_start(document)
            if not work.claim.finish(RunState.DONE):
                raise Stop("lost")
    except BaseException:
        storage.discard([key, *images.keys])
        raise
    kept = {key, *images.keys}
    storage.discard(old for old in old_keys if old and old not in kept and not is_of_earlier_version(old))
    try:
        index_documents(document.space_id, [document.pk])
    except INDEX_FAILURES:
        log.exception("the words of document %s are not indexed yet; its next pass does it", document.pk)
    else:
        services.document_findable(document)


def _replace_chunks(document: Document, result: ChunkResult) -> int:
    """Delete the old passages and store the new ones with their parents; how many passages can be found."""
    Chunk.objects.filter(document=document).delete()
    parents = Chunk.objects.bulk_create(
        [_row(document, index, piece, Chunk.Type.PARENT) for index, piece in enumerate(result.parents)], batch_size=500
    )
    rows = [_row(document, index, piece, Chunk.Type.TEXT) for index, piece in enumerate(result.pieces)]
    for row, piece in zip(rows, result.pieces, strict=True):
        if piece.parent is not None:
            row.parent = parents[piece.parent]
    Chunk.objects.bulk_create(rows, batch_size=500)
    return len(rows)


def _row(document: Document, index: int, piece: Piece, chunk_type: str) -> Chunk:
    return Chunk(
        space_id=document.space_id,
        kb_id=document.kb_id,
        document=document,
        chunk_index=index,
        chunk_type=chunk_type,
        content=piece.content,
        content_hash=hashlib.sha256(piece.content.encode("utf-8", "surrogatepass")).hexdigest(),
        prefix=piece.prefix,
        heading_path=list(piece.heading_path),
        start_at=piece.start,
        end_at=piece.end,
        positions=[position.as_dict() for position in piece.positions],
    )


def _warnings(parsed: ParsedDocument) -> list[dict[str, Any]]:
    return [{"code": w.code, "message": w.message, "count": w.count, "position": w.position.as_dict()} for w in parsed.warnings]


def _update_document(work: Pass, parsed: ParsedDocument, key: str, count: int) -> None:
    """Raises: Stop when the document was deleted, stopped or parsed anew meanwhile."""
    document = work.document
    leftover = [] if work.ocr else [*parsed.needs_ocr_pages, *parsed.unreadable_pages]
    warnings = _warnings(parsed)
    reason = "needs_ocr" if leftover and not settings.OCR_ENABLED else ""
    if reason:
        warnings.append({"code": reason, "message": f"{len(leftover)} pages have no readable text", "count": len(leftover), "position": {}})
    title = document.title or parsed.title or document.file_name or document.source
    changed = Document.objects.filter(
        pk=document.pk,
        attempt=document.attempt,
        deleted_at__isnull=True,
        parse_status__in=[ParseStatus.PENDING, ParseStatus.PROCESSING, ParseStatus.FINALIZING],
    ).update(
        pending_subtasks_count=1,  # the state stays: it is findable only once the index has its words
        enabled=True,
        title=title[:1024],
        parsed_path=key,
        encoding=parsed.encoding,
        language=parsed.language[:16],
        counts=parsed.counts,
        warnings=warnings[:200],
        reason=reason,
        error_message="",
        chunk_count=count,
        vector_count=0,
        index_rev=F("index_rev") + 1,
        updated_at=timezone.now(),
    )
    if not changed:
        raise Stop("lost")


def _fail(work: Pass, reason: str, message: str, stage: str) -> None:
    """The document could not be read. An OCR pass over a document that has text already only adds a warning."""
    document = work.document
    with transaction.atomic():
        work.claim.hold()
        passwords.forget(document.pk)
        document.refresh_from_db()
        if work.ocr and document.chunk_count and document.parse_status not in UNREAD:
            work.claim.finish(RunState.FAILED, reason=reason, error=message)
            services.ocr_failed(document, reason, message)
            pictures_start(document)
            return
        services.document_fail(document, reason, message, stage=stage)
        work.claim.finish(RunState.FAILED, reason=reason, error=message)
