"""Carrying an act out: inside its space, with a record for moderators; and finding what it is done to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from django.urls import reverse

from apps.accounts.models import User
from apps.common.errors import DomainError
from apps.common.scope import space_scope
from apps.knowledge.models import Document, KnowledgeBase
from apps.moderation.acts import ACTS, Act
from apps.moderation.selectors.runs import run_get
from apps.moderation.site import moderator
from apps.sources.models import DataSource
from apps.spaces.models import Space


def target_of(request: Any, noun: str, raw: str) -> Any:
    """What an act's address names. Raises: Http404."""
    if noun == "run":
        kind, _dash, pk = raw.rpartition("-")
        try:
            return run_get(actor=moderator(request), kind=kind, pk=int(pk))
        except (DomainError, ValueError):
            raise Http404 from None
    rows: Any = {
        "user": User.objects.all(),
        "space": Space.objects.all(),
        "base": KnowledgeBase.objects.select_related("space"),
        "document": Document.objects.select_related("kb", "space"),
        "source": DataSource.objects.select_related("kb", "space"),
    }[noun]
    try:
        found = rows.filter(pk=rows.model._meta.pk.to_python(raw)).first()
    except (ValueError, DjangoValidationError):
        found = None
    if found is None:
        raise Http404
    return found


def address_of(noun: str, obj: Any) -> str:
    """The page of what an act is done to."""
    if noun == "run":
        return reverse("admin:run", args=[obj.kind, obj.pk])
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[obj.pk])


def key_of(noun: str, obj: Any) -> str:
    return f"{obj.kind}-{obj.pk}" if noun == "run" else str(obj.pk)


def perform(request: Any, noun: str, act: Act, obj: Any) -> str:
    """Do it and write it down; what was done, in words. Raises: DomainError, with the reason."""
    space_id = getattr(obj, "space_id", None)
    with _inside(space_id):
        said = act.perform(moderator(request, space_id, reason="moderator"), obj)
    LogEntry.objects.log_actions(
        request.user.pk, [obj], DELETION if act.code == "delete" else CHANGE, change_message=f"{noun}: {act.code}", single_object=True
    )
    return said


@contextmanager
def _inside(space_id: int | None) -> Iterator[None]:
    if space_id is None:
        yield
        return
    with space_scope(space_id, "moderator"):
        yield


def buttons(request: Any, noun: str, obj: Any) -> list[dict[str, Any]]:
    """The acts of an object for its page: those that can be done as links, the others with the reason why not."""
    return [
        {
            "label": act.label,
            "icon": act.icon,
            "danger": act.danger,
            "why_not": act.refuse(request, obj),
            "href": reverse("admin:act", args=[noun, key_of(noun, obj), act.code]),
        }
        for act in ACTS[noun].values()
    ]
