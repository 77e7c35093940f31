"""The permission table: action x role, filled by each context's `policies.py` and asked nowhere else.

An unknown action is a programming error; no membership is a refusal; an API key narrows its space, never widens it.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor, Role
from apps.common.errors import Forbidden, NotFound, Unauthenticated


@dataclass(frozen=True, slots=True)
class Rule:
    """`needs` None: no space is needed. `public`: nobody need be signed in. `people_only`: API keys are refused.

    `capability`: what a key without full access must carry; `any_key`: every key may; neither: only keys with full access.
    """

    action: str
    needs: Role | None
    public: bool = False
    people_only: bool = False
    any_key: bool = False
    capabilities: frozenset[str] = frozenset()
    organizations_only: bool = False
    moderators_only: bool = False


_rules: dict[str, Rule] = {}


def rule(
    action: str,
    *,
    needs: Role | None = None,
    public: bool = False,
    people_only: bool = False,
    any_key: bool = False,
    key: str | tuple[str, ...] = (),
    organizations_only: bool = False,
    moderators_only: bool = False,
) -> Rule:
    """Add one action to the table. Raises: ValueError when it is there already."""
    if action in _rules:
        raise ValueError(f"action {action!r} is in the policy table twice")
    capabilities = frozenset((key,) if isinstance(key, str) else key)
    made = Rule(action, needs, public, people_only, any_key, capabilities, organizations_only, moderators_only)
    _rules[action] = made
    return made


def rules() -> dict[str, Rule]:
    return dict(_rules)


def rule_for(action: str) -> Rule:
    try:
        return _rules[action]
    except KeyError:
        raise LookupError(f"action {action!r} is not in the policy table") from None


def authorize(actor: Actor, action: str, target: Any = None) -> None:
    """Return when `actor` may do `action` (to `target`), else raise.

    Raises: Unauthenticated without credentials; NotFound when the target is in another space; Forbidden when it is visible but not allowed.
    """
    found = rule_for(action)
    if found.public:
        return
    if not actor.signed_in:
        raise Unauthenticated(_("Sign in first."), code="missing_authentication")
    if actor.kind in ("system", "moderator"):
        _same_space(actor, target)
        return
    if found.moderators_only and not actor.is_moderator:
        raise Forbidden(_("Only site moderators may do this."), code="moderator_only")
    if actor.kind == "key":
        _key_may(actor, found)
    if found.needs is not None:
        if actor.space_id is None or actor.role is None:
            raise Forbidden(_("Choose a space first."), code="space_required")
        _same_space(actor, target)
        if actor.role < found.needs:
            raise Forbidden(
                _("Your role in this space does not allow this. Ask an admin of the space."), code="role_too_low", action=action
            )
        if found.organizations_only and actor.space_kind != "organization":
            raise Forbidden(_("A personal space has no members or invitations. Create an organization first."), code="personal_space")
    _base_listed(actor, target)


def allowed(actor: Actor, action: str, target: Any = None) -> bool:
    """For templates: what `authorize` would say, as a truth value."""
    try:
        authorize(actor, action, target)
    except (Unauthenticated, Forbidden, NotFound):
        return False
    return True


def _key_may(actor: Actor, found: Rule) -> None:
    if found.people_only:
        raise Forbidden(_("API keys cannot be used here; sign in as a person."), code="people_only")
    if found.any_key or actor.capabilities is None:
        return
    if not (found.capabilities & actor.capabilities):
        needed = sorted(found.capabilities)
        raise Forbidden(_("This API key was not given the right to do this."), code="key_scope", needs=needed)


def _same_space(actor: Actor, target: Any) -> None:
    space_id = getattr(target, "space_id", None)
    if space_id is not None and actor.space_id is not None and space_id != actor.space_id:
        raise NotFound(_("Not found."))


def _base_listed(actor: Actor, target: Any) -> None:
    """SECURITY: a key limited to some bases reaches nothing that hangs on another one."""
    if actor.kb_uids is None or target is None:
        return
    uid = base_uid(target)
    if uid is not None and uid not in actor.kb_uids:
        raise Forbidden(_("This API key is limited to other knowledge bases."), code="key_base")


def base_uid(target: Any) -> uuid.UUID | None:
    """The uid of the knowledge base a target is or belongs to; targets say it by `kb_uid`."""
    return getattr(target, "kb_uid", None)
