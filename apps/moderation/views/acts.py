"""One act on one thing: what it changes is said first, then it is done."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from apps.common.errors import DomainError
from apps.common.text import clean_line
from apps.moderation.acts import ACTS
from apps.moderation.doing import address_of, perform, target_of
from apps.moderation.views.frame import page


def act_view(request: HttpRequest, noun: str, key: str, code: str) -> HttpResponse:
    """GET says what will happen, POST does it; what cannot be done says why, and changes nothing."""
    act = ACTS.get(noun, {}).get(code)
    if act is None:
        raise Http404
    obj = target_of(request, noun, key)
    back = address_of(noun, obj)
    wanted = act.typed(obj) if act.typed else ""
    refused = act.refuse(request, obj)
    error = ""
    if request.method == "POST" and not refused:
        if wanted and clean_line(request.POST.get("typed", "")) != wanted:
            error = _("Type the name exactly as it stands above.")
        else:
            try:
                messages.success(request, perform(request, noun, act, obj))
            except DomainError as fault:
                messages.error(request, str(fault))
            return HttpResponseRedirect(back)
    context = {
        "act": act,
        "thing": str(obj),
        "explain": "" if refused else act.explain(obj),
        "refused": refused,
        "wanted": wanted,
        "typed": request.POST.get("typed", ""),
        "error": error,
        "back": back,
        "back_label": str(obj),
    }
    return page(request, "moderation/act.html", str(act.label), context, status=400 if error else 200)
