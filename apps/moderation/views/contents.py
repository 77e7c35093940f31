"""Reading contents of a space: a reason first where the moderator is no member, and a line in the space's activity."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from apps.common.errors import DomainError
from apps.common.scope import space_scope
from apps.knowledge.models import Document
from apps.knowledge.selectors import as_uuid
from apps.moderation.selectors.contents import passages_of, readable_spaces
from apps.moderation.services import content_grant_open, content_opened
from apps.moderation.services.contents import REASON_MAX
from apps.moderation.site import moderator
from apps.moderation.views.frame import page
from apps.spaces.models import Space


def grant_view(request: HttpRequest, space_id: int) -> HttpResponse:
    """The form that asks why; `next` is where the reader wanted to go, `base` the knowledge base whose activity shows it."""
    space = Space.objects.filter(pk=space_id).first()
    if space is None:
        raise Http404
    back = reverse("admin:spaces_space_change", args=[space.pk])
    onward = request.POST.get("next") or request.GET.get("next") or back
    if not (onward.startswith("/admin/") and url_has_allowed_host_and_scheme(onward, allowed_hosts=None)):
        onward = back
    base = as_uuid(request.POST.get("base") or request.GET.get("base") or "")
    fault: DomainError | None = None
    if request.method == "POST":
        try:
            with space_scope(space.pk, "moderator"):
                content_grant_open(actor=moderator(request, space.pk), space=space, reason=request.POST.get("reason", ""), base=base)
        except DomainError as error:
            fault = error
        else:
            messages.success(request, _("You may read contents of this space for an hour."))
            return HttpResponseRedirect(onward)
    context = {
        "space": space,
        "next": onward,
        "base": base or "",
        "reason": request.POST.get("reason", ""),
        "fault": fault,
        "reason_max": REASON_MAX,
        "back": back,
        "back_label": space.name,
    }
    return page(request, "moderation/grant.html", _("Open contents"), context, status=400 if fault else 200)


def contents_view(request: HttpRequest, document_id: int) -> HttpResponse:
    """A document's passages as plain text, page by page."""
    document = Document.objects.select_related("kb", "space").filter(pk=document_id).first()
    if document is None or document.deleted_at is not None:
        raise Http404
    actor = moderator(request, document.space_id)
    here = reverse("admin:contents", args=[document.pk])
    readable = readable_spaces(actor=actor)
    if document.space_id not in readable:
        ask = reverse("admin:grant", args=[document.space_id])
        return HttpResponseRedirect(f"{ask}?next={here}&base={document.kb.uid}")
    raw = request.GET.get("p", "1")
    number = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 7 else 1
    with space_scope(document.space_id, "moderator"):
        passages, pages = passages_of(actor=actor, document=document, page=number)
        if grant := readable.granted.get(document.space_id):
            content_opened(
                actor=actor,
                space_id=document.space_id,
                what="knowledge",
                target_id=str(document.uid),
                grant=grant,
                base=document.kb.uid,
                title=document.title,
                page=number,
            )
    number = max(1, min(number, pages))
    context = {
        "document": document,
        "passages": passages,
        "grant": readable.granted.get(document.space_id),
        "number": number,
        "pages": pages,
        "previous": f"?p={number - 1}" if number > 1 else "",
        "next": f"?p={number + 1}" if number < pages else "",
        "back": reverse("admin:knowledge_document_change", args=[document.pk]),
        "back_label": document.title,
    }
    return page(request, "moderation/contents.html", document.title, context)
