"""API keys of a space."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, NotFound
from apps.common.web.views import PageView
from apps.portal.forms.spaces import KeyForm
from apps.portal.views.forms import once, put_error, sent_before
from apps.spaces.capabilities import KNOWN
from apps.spaces.models import ApiKey
from apps.spaces.selectors import base_names, key_get, key_list, space_get
from apps.spaces.services.keys import key_create, key_revoke

FRESH = "fresh_key"  # session key: the API key to show once


class KeysPageView(PageView):
    actions = {"GET": "key.list", "POST": "key.write"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self._show(KeyForm(bases=self._bases()))

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        form = KeyForm(request.POST, bases=self._bases())
        if form.is_valid():
            if sent_before(request):
                return redirect("keys-page", space_id)
            try:
                key, plain = key_create(actor=self.actor, space=space_get(actor=self.actor), **form.wanted())
            except InvalidInput as error:
                put_error(form, error, {"expires_at_unix": "expires_on", "knowledge_base_ids": "bases"})
            else:
                request.session[FRESH] = {"name": key.name, "plain": plain}
                return redirect("keys-page", space_id)
        return self._show(form, status=400)

    def _bases(self) -> list[tuple[str, str]]:
        return sorted(((str(uid), name) for uid, name in base_names(actor=self.actor).items()), key=lambda pair: pair[1].lower())

    def _show(self, form: KeyForm, status: int = 200) -> HttpResponse:
        names = dict(self._bases())
        rows = [_row(key, names) for key in key_list(actor=self.actor)]
        context = {
            "space": space_get(actor=self.actor),
            "rows": rows,
            "form": form,
            "open_form": form.is_bound,
            "fresh": once(self.request, FRESH),
        }
        return self.page("portal/keys.html", context, status=status)


class KeyRevokeView(PageView):
    actions = {"POST": "key.write"}

    def post(self, request: HttpRequest, space_id: int, key_id: int) -> HttpResponse:
        key = key_get(actor=self.actor, key_id=key_id)
        try:
            key_revoke(actor=self.actor, key=key)
        except NotFound:  # sent twice: it is as good as revoked
            return redirect("keys-page", space_id)
        messages.success(request, _("%(name)s is revoked.") % {"name": key.name})
        return redirect("keys-page", space_id)


def _row(key: ApiKey, names: dict[str, str]) -> dict[str, object]:
    return {
        "key": key,
        "allowed": [KNOWN.get(name, name) for name in key.capabilities],
        "bases": [names.get(uid, _("a deleted base")) for uid in key.kb_uids],
        "expired": not key.is_live(timezone.now()),
    }
