"""API keys: made by people who are admins, never by keys."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.common.text import clean_line
from apps.spaces.capabilities import KNOWN
from apps.spaces.doors import token_hash
from apps.spaces.models import ApiKey, Space
from apps.spaces.selectors import base_names

NAME_MAX = 100
HINT_HEAD, HINT_TAIL = 7, 4


@transaction.atomic
def key_create(
    *,
    actor: Actor,
    space: Space,
    name: str,
    full_access: bool,
    capabilities: Iterable[str] = (),
    kb_uids: Iterable[uuid.UUID] = (),
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """(row, key): the only time the key itself can be read. Raises: InvalidInput naming the field."""
    authorize(actor, "key.write", space)
    row = ApiKey(space=space, created_by_id=actor.user_id)
    _fill(actor, row, name, full_access, capabilities, kb_uids, expires_at)
    key = "sk-" + secrets.token_urlsafe(32)
    row.token_hash = token_hash(key)
    row.hint = f"{key[:HINT_HEAD]}…{key[-HINT_TAIL:]}"
    row.save()
    audit(actor, "key.created", row, name=row.name, full_access=row.full_access, capabilities=row.capabilities)
    return row, key


@transaction.atomic
def key_update(
    *,
    actor: Actor,
    key: ApiKey,
    name: str,
    full_access: bool,
    capabilities: Iterable[str] = (),
    kb_uids: Iterable[uuid.UUID] = (),
    expires_at: datetime | None = None,
) -> ApiKey:
    """What a key is called and may do; the key itself stays. Raises: InvalidInput."""
    authorize(actor, "key.write", key)
    _fill(actor, key, name, full_access, capabilities, kb_uids, expires_at)
    key.save(update_fields=["name", "full_access", "capabilities", "kb_uids", "expires_at"])
    audit(actor, "key.updated", key, name=key.name, full_access=key.full_access, capabilities=key.capabilities)
    return key


@transaction.atomic
def key_revoke(*, actor: Actor, key: ApiKey) -> None:
    """The key opens nothing from now on. Raises: NotFound when it was revoked before."""
    authorize(actor, "key.write", key)
    if not ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        raise NotFound(_("Not found."))
    audit(actor, "key.revoked", key, name=key.name)


def _fill(
    actor: Actor,
    row: ApiKey,
    name: str,
    full_access: bool,
    capabilities: Iterable[str],
    kb_uids: Iterable[uuid.UUID],
    expires_at: datetime | None,
) -> None:
    row.name = clean_line(name)
    if not 1 <= len(row.name) <= NAME_MAX:
        raise InvalidInput(_("Use 1 to 100 characters for the name."), field="name")
    if expires_at is not None and expires_at <= timezone.now() and expires_at != row.expires_at:
        raise InvalidInput(_("Choose an expiry in the future."), field="expires_at_unix")
    row.expires_at, row.full_access = expires_at, full_access
    row.capabilities = [] if full_access else _known_capabilities(capabilities)
    row.kb_uids = [] if full_access else _known_bases(actor, kb_uids)


def _known_capabilities(asked: Iterable[str]) -> list[str]:
    chosen = sorted(set(asked))
    if unknown := [name for name in chosen if name not in KNOWN]:
        text = _("Unknown capabilities: %(unknown)s. Known: %(known)s.")
        raise InvalidInput(text % {"unknown": ", ".join(unknown), "known": ", ".join(KNOWN)}, field="capabilities")
    if not chosen:
        raise InvalidInput(_("Choose full access or at least one capability."), field="capabilities")
    return chosen


def _known_bases(actor: Actor, asked: Iterable[uuid.UUID]) -> list[str]:
    wanted = set(asked)
    if not wanted:
        return []
    if missing := sorted(str(uid) for uid in wanted - base_names(actor=actor).keys()):
        text = _("These knowledge bases are not in this space: %(missing)s.")
        raise InvalidInput(text % {"missing": ", ".join(missing)}, field="knowledge_base_ids")
    return sorted(str(uid) for uid in wanted)
