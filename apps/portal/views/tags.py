"""The tags of a base: made, renamed, coloured and deleted in one drawer."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.errors import DomainError
from apps.common.policy import allowed
from apps.knowledge.models import KnowledgeBase, Tag
from apps.knowledge.selectors import base_get, tag_get, tag_list
from apps.knowledge.services import tag_create, tag_delete, tag_detach_delete, tag_update
from apps.portal import links
from apps.portal.templatetags.portal import known_hue
from apps.portal.web import DialogView, is_htmx

HUES = (
    ("blue", gettext_lazy("Blue")),
    ("orange", gettext_lazy("Orange")),
    ("green", gettext_lazy("Green")),
    ("purple", gettext_lazy("Purple")),
    ("pink", gettext_lazy("Pink")),
    ("slate", gettext_lazy("Slate")),
)


class TagsView(DialogView):
    """GET shows the drawer; POST makes a tag, or changes (`tag`, `do=save`) or deletes (`do=delete`, `do=detach`) one."""

    actions = {"GET": "tag.read", "POST": "tag.write"}
    template = "portal/_tags.html"
    kind = "drawer"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        return self._drawer(base_get(actor=self.actor, kb_id=kb_id))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        tag_id, action = request.POST.get("tag", ""), request.POST.get("do", "")
        name, color = request.POST.get("name", ""), known_hue(request.POST.get("color", ""))
        try:
            if not tag_id:
                tag_create(actor=self.actor, base=base, name=name, color=color)
                said = _("Tag added.")
            elif action == "detach":
                return self._detach(base, tag_get(actor=self.actor, base=base, tag_id=tag_id))
            elif action == "delete":
                tag_delete(actor=self.actor, tag=tag_get(actor=self.actor, base=base, tag_id=tag_id))
                said = _("Tag deleted.")
            else:
                tag = tag_get(actor=self.actor, base=base, tag_id=tag_id)
                tag_update(actor=self.actor, tag=tag, name=name, color=color or None)  # a colour that is none of the six stays
                said = _("Tag saved.")
        except DomainError as error:
            typed = {} if action == "delete" else {"name": name, "color": color}
            used = int(error.details.get("count", 0)) if error.code == "tag_in_use" else 0
            return self._drawer(base, at=tag_id or "new", error="" if used else str(error), typed=typed, used=used, status=422)
        response = self._drawer(base, at=tag_id)
        if is_htmx(request):
            response["HX-Trigger"] = json.dumps({"toast": {"text": said, "kind": "success"}, "kb:changed": {}})
        return response

    def _detach(self, base: KnowledgeBase, tag: Tag) -> HttpResponse:
        """Says how far it came: batches that are done stay done, and pressing again goes on."""
        done = tag_detach_delete(actor=self.actor, tag=tag)
        off = ngettext("It was taken off %(count)s document.", "It was taken off %(count)s documents.", done.count) % {
            "count": f"{done.count:,}"
        }
        if done.failed_at:
            stage = _("The tag was not taken off everywhere.") if done.failed_at == "detach" else _("The tag itself was not deleted.")
            response = self._drawer(base, at=str(tag.uid), error=f"{stage} {off} {done.why}", status=422)
        else:
            response = self._drawer(base)
        if is_htmx(self.request):
            news: dict[str, Any] = {"kb:changed": {}}
            if not done.failed_at:
                news["toast"] = {"text": _("Tag deleted."), "kind": "success", "detail": off}
            response["HX-Trigger"] = json.dumps(news)
        return response

    def _drawer(
        self,
        base: KnowledgeBase,
        *,
        at: str = "",
        error: str = "",
        typed: dict[str, str] | None = None,
        used: int = 0,
        status: int = 200,
    ) -> HttpResponse:
        rows: list[dict[str, Any]] = []
        for tag in tag_list(actor=self.actor, base=base):
            mine = at == str(tag.uid)
            rows.append(
                {
                    "tag": tag,
                    "id": str(tag.uid),
                    "name": (typed or {}).get("name", tag.name) if mine else tag.name,
                    "hue": (typed or {}).get("color", known_hue(tag.color)) if mine else known_hue(tag.color),
                    "error": error if mine else "",
                    "used": used if mine else 0,
                    "at": mine and not used,
                }
            )
        new = {"name": (typed or {}).get("name", ""), "hue": (typed or {}).get("color", ""), "error": error} if at == "new" else {}
        context = {
            "base": base,
            "tags": rows,
            "new": new,
            "hues": HUES,
            "may_write": allowed(self.actor, "tag.write", base),
            "space_id": base.space_id,
        }
        return self.show(_("Tags"), context, status=status, back=links.base_url(base))
