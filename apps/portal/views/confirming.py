"""Before chosen files are sent: which there are, which names are taken, where they go and what is wished for them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.errors import InvalidInput
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import base_get, document_same_named, documents_get, folder_paths, tag_list, vision_model_of
from apps.knowledge.services import has_chat_model
from apps.portal import links
from apps.portal.templatetags.portal import known_hue
from apps.portal.web import DialogView

MOST_FILES = 5000
LISTED = 100
MOST_SELECTED = 200
MAX_PATH = 1024
FOLLOW = "{}"  # no wish: the base decides


class UploadConfirmView(DialogView):
    """`files`: JSON list of {path, size}; `folder`: where the list is open; `ids`: documents chosen in it."""

    actions = {"POST": "document.create"}
    template = "portal/_upload_confirm.html"

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        files = _files(request.POST.get("files", ""))
        folder = request.POST.get("folder", "").strip()[:MAX_PATH]
        there = document_same_named(actor=self.actor, base=base, paths=[path for path, _size in files], folder=folder)
        rows = [
            {
                "path": path,
                "size": filesizeformat(size),
                "there": there.get(path),
                "href": links.document_url(there[path]) if path in there else "",
            }
            for path, size in files
        ]
        rows.sort(key=lambda row: row["there"] is None)
        context = {
            "base": base,
            "space_id": space_id,
            "rows": rows[:LISTED],
            "hidden_count": max(0, len(rows) - LISTED),
            "count": len(rows),
            "total_size": filesizeformat(sum(size for _path, size in files)),
            "same_count": len(there),
            "has_folders": any("/" in path for path, _size in files),
            "folder": folder,
            "folders": folder_paths(actor=self.actor, base=base),
            "tags": self._tags(base, request.POST.getlist("ids")),
            **wishes_of(base),
        }
        title = ngettext("Upload %(count)d file", "Upload %(count)d files", len(rows)) % {"count": len(rows)}
        return self.show(title, context, wide=True, back=links.base_url(base))

    def _tags(self, base: KnowledgeBase, ids: Sequence[str]) -> list[dict[str, Any]]:
        """The tags of the base; those that all chosen documents carry are chosen."""
        named = list(dict.fromkeys(ids))[:MOST_SELECTED]
        chosen: list[Document] = []
        if named:
            try:
                chosen = documents_get(actor=self.actor, base=base, ids=named)
            except InvalidInput:
                chosen = []  # one of them is gone by now: then none is taken as a pattern
        common = set.intersection(*({tag.pk for tag in document.tags.all()} for document in chosen)) if chosen else set()
        found = tag_list(actor=self.actor, base=base)
        return [{"tag": tag, "hue": known_hue(tag.color), "chosen": tag.pk in common} for tag in found]


def _files(raw: str) -> list[tuple[str, int]]:
    """(path, bytes). Raises: InvalidInput."""
    try:
        loaded = json.loads(raw or "[]")
        files = [(str(each["path"])[:MAX_PATH], max(0, int(each["size"]))) for each in loaded]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise InvalidInput(_("The list of files cannot be read. Choose the files again."), field="files") from None
    if not files:
        raise InvalidInput(_("Choose at least one file."), field="files")
    if len(files) > MOST_FILES:
        raise InvalidInput(_("At most %(max)d files at a time.") % {"max": MOST_FILES}, field="files")
    return files


def wishes_of(base: KnowledgeBase) -> dict[str, Any]:
    """What may be wished of one batch: only what this base can do. Each choice carries its part of `process_config`."""
    vision = base.options.get("vlm_config") or {}
    describes = bool(vision.get("enabled")) and bool(vision_model_of(base))
    questions = base.options.get("question_generation_config") or {}
    has_model = has_chat_model(base)
    own = {
        "enabled": True,
        "model_id": vision.get("model_id") or vision_model_of(base),
        "custom_instructions": vision.get("custom_instructions", ""),
    }
    return {
        "describes": describes,
        "languages": [
            (FOLLOW, _("As the knowledge base says")),
            *(
                (json.dumps({"vlm_config": {**own, "description_language": code}}), label)
                for code, label in (("zh", _("Chinese")), ("en", _("English")))
            ),
        ],
        "observes": bool((base.options.get("image_processing_config") or {}).get("image_attrs_enabled")),
        "has_model": has_model,
        "asks": bool(questions.get("enabled")),
        "asks_on": FOLLOW if questions.get("enabled") else json.dumps({"question_generation_config": {**questions, "enabled": True}}),
        "asks_off": json.dumps({"question_generation_config": {**questions, "enabled": False}}) if questions.get("enabled") else FOLLOW,
        "pictures_off": json.dumps({"enable_multimodel": False}),
        "observe_on": json.dumps({"image_attrs_enabled": True}),
        "observe_off": json.dumps({"image_attrs_enabled": False}),
        "summary_off": json.dumps({"summary_enabled": False}),
    }
