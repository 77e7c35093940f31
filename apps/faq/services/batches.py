"""Changing and removing many entries at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.faq.models import FaqEntry
from apps.faq.selectors.entries import check_faq, entries_get, entry_anywhere
from apps.faq.store import flags_set, tags_set
from apps.knowledge.models import Document, KnowledgeBase, Tag
from apps.knowledge.selectors import tag_get
from apps.knowledge.services import documents_delete

Change = dict[str, Any]  # is_enabled, is_recommended, tag (Tag or None); what is not there stays


def field_changes(
    *,
    actor: Actor,
    base: KnowledgeBase,
    by_id: Mapping[int, Mapping[str, Any]],
    by_tag: Mapping[int, Mapping[str, Any]],
    excluded: Iterable[int] = (),
) -> dict[FaqEntry, Change]:
    """What contract content F7 asks for: changes by tag first, then those of single entries. Entries that are not in the base are left out.

    Raises: NotFound for an unknown tag.
    """
    authorize(actor, "faq.write", base)
    check_faq(base)
    left_out = set(excluded)
    wanted: dict[FaqEntry, Change] = {}
    for number, values in by_tag.items():
        tag = tag_get(actor=actor, base=base, tag_id=number)
        change = _change(actor, base, values)
        rows = FaqEntry.objects.visible_to(actor).filter(kb=base, document__tags=tag).select_related("kb", "document").order_by("pk")
        for entry in rows:
            if entry.seq_id not in left_out:
                wanted.setdefault(entry, {}).update(change)
    found = entries_get(actor=actor, base=base, numbers=by_id)
    known: dict[int, Change] = {}
    for number, entry in found.items():
        values = by_id[number]
        change = _change(actor, base, values) if "tag_id" not in values else known.setdefault(number, _change(actor, base, values))
        wanted.setdefault(entry, {}).update(change)
    return wanted


def _change(actor: Actor, base: KnowledgeBase, values: Mapping[str, Any]) -> Change:
    change: Change = {name: values[name] for name in ("is_enabled", "is_recommended") if values.get(name) is not None}
    if values.get("tag_id") is not None:
        number = int(values["tag_id"])
        change["tag"] = tag_get(actor=actor, base=base, tag_id=number) if number > 0 else None
    return change


def entries_update(*, actor: Actor, base: KnowledgeBase, changes: Mapping[FaqEntry, Change]) -> int:
    """Write flags and tags of many entries in one transaction; how many entries were named."""
    authorize(actor, "faq.write", base)
    if not changes:
        return 0
    with transaction.atomic():
        for flag in ("is_enabled", "is_recommended"):
            for value in (True, False):
                flags_set(base, [entry.pk for entry, change in changes.items() if change.get(flag) is value], **{flag: value})
        tags_set(base, {entry.pk: change["tag"] for entry, change in changes.items() if "tag" in change})
        fields = sorted({name for change in changes.values() for name in change})
        titles = [entry.standard_question[:80] for entry in changes][:50]
        audit(
            actor,
            "faq.fields_updated",
            base,
            target_type="knowledge_base",
            title=base.name,
            titles=titles,
            count=len(changes),
            changed_fields=fields,
        )
    return len(changes)


def entries_tag(*, actor: Actor, base: KnowledgeBase, updates: Mapping[int, int | None]) -> int:
    """The tag of each entry, by number; None or 0 takes it away (contract content F8).

    Raises: InvalidInput for a tag that is not in this base; then nothing has changed.
    """
    authorize(actor, "faq.write", base)
    check_faq(base)
    tags: dict[int, Tag] = {}
    for number in {number for number in updates.values() if number and number > 0}:
        try:
            tags[number] = tag_get(actor=actor, base=base, tag_id=number)
        except NotFound as error:
            raise InvalidInput(_("There is no tag %(tag)s in this base.") % {"tag": number}, field="updates", api_code=1000) from error
    found = entries_get(actor=actor, base=base, numbers=updates)
    return entries_update(actor=actor, base=base, changes={entry: {"tag": tags.get(updates[n] or 0)} for n, entry in found.items()})


def entries_delete(*, actor: Actor, base: KnowledgeBase, numbers: Iterable[int]) -> list[Document]:
    """Delete entries by number, all or none of them (contract content F9); numbers below 1 are passed over. The documents that went.

    Raises: NotFound for an unknown number; InvalidInput for one of another base.
    """
    authorize(actor, "faq.write", base)
    check_faq(base)
    wanted = list(dict.fromkeys(number for number in numbers if number > 0))
    found = entries_get(actor=actor, base=base, numbers=wanted)
    for number in wanted:
        if number in found:
            continue
        if entry_anywhere(actor=actor, entry_id=number) is not None:
            raise InvalidInput(_("Entry %(number)s is in another base.") % {"number": number}, field="ids", api_code=1000)
        raise NotFound(_("Entry %(number)s not found.") % {"number": number})
    documents = [found[number].document for number in wanted]
    for document in documents:
        document.kb = base
    if documents:
        documents_delete(actor=actor, base=base, documents=documents)
    return documents
