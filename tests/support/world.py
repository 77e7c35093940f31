"""A world of two organizations with twin contents, and everybody who may knock at the door.

    def test_x(world):
        client = world.client("member")                  # bearer token, active space `world.home`
        world.client("member", by="session")             # browser session; posts carry a CSRF token
        world.client("key_full")                         # X-API-Key
        client.get(...), client.post(url, {...})          # JSON bodies

Identities: see IDENTITIES. `world.home` is the organization under test, `world.foreign` its twin; `world.ids["home"]`, `world.ids["foreign"]`
hold the ids of the twin rows by name, `world.unknown` ids that exist nowhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.middleware.csrf import _get_new_csrf_string
from django.test import Client

from apps.accounts.models import User
from apps.accounts.services import user_register
from apps.accounts.tokens import issue_pair
from apps.common.actor import Actor, Role
from apps.common.scope import space_scope
from apps.spaces.models import Membership, Space
from apps.spaces.services.invitations import invitation_create, invite_link_create
from apps.spaces.services.keys import key_create
from apps.spaces.services.members import member_add, member_remove
from apps.spaces.services.space import space_create
from tests.support.furniture import UNKNOWN, furnish

PASSWORD = "correct-horse-7"
BASE_URL = "http://testserver/"

#: name -> what it is
IDENTITIES = {
    "anonymous": "nobody",
    "outsider": "admin of the other organization, in their own space",
    "removed": "was a member of this organization once",
    "member": "member of this organization",
    "admin": "admin of this organization",
    "key_without": "API key of this organization with one capability that opens none of the routes",
    "key_foreign": "full API key of the other organization",
    "key_other_base": "API key of this organization with every capability, limited to another base",
    "key_full": "full API key of this organization",
}
KEYS = tuple(name for name in IDENTITIES if name.startswith("key_"))


class ApiClient(Client):
    """Sends JSON; credentials are headers, so that no cookie is involved."""

    def __init__(self, credentials: dict[str, str] | None = None, **defaults: Any) -> None:
        self.credentials = {**(credentials or {}), **defaults}
        super().__init__(enforce_csrf_checks=True, headers=self.credentials)

    def post(self, path: str, data: Any = None, content_type: str = "application/json", **extra: Any) -> Any:
        return super().post(path, {} if data is None else data, content_type, **extra)

    def put(self, path: str, data: Any = None, content_type: str = "application/json", **extra: Any) -> Any:
        return super().put(path, {} if data is None else data, content_type, **extra)

    def patch(self, path: str, data: Any = None, content_type: str = "application/json", **extra: Any) -> Any:
        return super().patch(path, {} if data is None else data, content_type, **extra)

    def delete(self, path: str, data: Any = None, content_type: str = "application/json", **extra: Any) -> Any:
        return super().delete(path, "" if data is None else data, content_type, **extra)


class SessionClient(Client):
    """A browser: session cookie, and the CSRF token with every unsafe request."""

    def __init__(self, user: User | None = None) -> None:
        super().__init__(enforce_csrf_checks=True)
        self.cookies["kb_csrf"] = _get_new_csrf_string()
        if user is not None:
            self.force_login(user)

    def generic(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["headers"] = {"Accept-Language": "en", "X-CSRFToken": self.cookies["kb_csrf"].value, **(kwargs.get("headers") or {})}
        return super().generic(*args, **kwargs)


@dataclass
class World:
    """See the module's docstring."""

    home: Space
    foreign: Space
    users: dict[str, User]
    keys: dict[str, str]
    ids: dict[str, dict[str, Any]] = field(default_factory=dict)
    unknown: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clients: dict[tuple[str, str], Any] = {}

    def actor(self, name: str, space: Space | None = None) -> Actor:
        """A person as an actor inside a space they are in (default: `home`)."""
        space = space or self.home
        row = Membership.objects.get(space=space, user=self.users[name])
        role = Role.ADMIN if row.role == Membership.Role.ADMIN else Role.MEMBER
        return Actor(kind="user", user_id=row.user_id, space_id=space.pk, space_kind=space.kind, role=role)  # type: ignore[arg-type]

    def client(self, name: str, *, by: str = "") -> Any:
        """A client with that identity's credentials. `by`: "session" for a browser; people use bearer tokens otherwise."""
        if name == "anonymous":
            return SessionClient() if by == "session" else ApiClient()
        if name in self.keys:
            return ApiClient({"X-API-Key": self.keys[name]})
        user = self.users[name]
        if by == "session":
            return SessionClient(user)
        space = self.foreign if name == "outsider" else self.home
        access, _refresh = issue_pair(user, tenant_id=space.pk)
        return ApiClient({"Authorization": f"Bearer {access}"})


def make_user(email: str, **extra: Any) -> User:
    return user_register(actor=Actor.anonymous(), email=email, password=PASSWORD, is_invited=True, **extra)


def make_space(owner: User, name: str) -> Space:
    return space_create(actor=Actor(kind="user", user_id=owner.pk), name=name)


def admin_actor(owner: User, space: Space) -> Actor:
    return Actor(kind="user", user_id=owner.pk, space_id=space.pk, space_kind=space.kind, role=Role.ADMIN)  # type: ignore[arg-type]


def _furnish(space: Space, owner: User) -> dict[str, Any]:
    """The rows every organization of the world has; both organizations get the same, so that a mix-up shows."""
    actor = admin_actor(owner, space)
    with space_scope(space.pk):
        contents = furnish(actor)
        guest = make_user(f"guest-{space.pk}@example.com")
        member_add(actor=actor, space=space, email=guest.email, role="member")
        mailed, _url = invitation_create(actor=actor, space=space, email="invited@example.com", role="member", base_url=BASE_URL)
        linked, address = invite_link_create(actor=actor, space=space, role="member", base_url=BASE_URL)
        key, _plain = key_create(actor=actor, space=space, name="reader", full_access=False, capabilities=["retrieve"])
    return {
        **contents,
        "workspace_id": space.pk,
        "space_id": space.pk,
        "tenant_id": space.pk,
        "user_id": guest.pk,
        "invitation_id": mailed.pk,
        "link_id": linked.pk,
        "token": address.rsplit("/", 1)[-1],
        "key_id": key.pk,
    }


def build_world() -> World:
    """The rows of the world, in the database of the running test; the first account (a moderator) is none of its people."""
    make_user("founder@example.com")
    names = ("admin", "member", "removed", "outsider")
    users = {name: make_user(f"{name}@example.com", username=name.capitalize()) for name in names}
    home, foreign = make_space(users["admin"], "Home"), make_space(users["outsider"], "Foreign")
    ids = {"home": _furnish(home, users["admin"]), "foreign": _furnish(foreign, users["outsider"])}
    own = Space.objects.get(owner=users["admin"], kind=Space.Kind.PERSONAL)
    with space_scope(own.pk):
        ids["personal"] = furnish(admin_actor(users["admin"], own))
    keys: dict[str, str] = {}
    actor = admin_actor(users["admin"], home)
    with space_scope(home.pk):
        member_add(actor=actor, space=home, email="member@example.com", role="member")
        member_add(actor=actor, space=home, email="removed@example.com", role="member")
        member_remove(actor=actor, space=home, user_id=users["removed"].pk)
        every = ["retrieve", "ingest", "manage_kbs", "manage_members", "manage_tenant_settings", "manage_datasources"]
        other = [ids["home"]["other_kb_id"]]
        keys["key_without"] = key_create(actor=actor, space=home, name="w", full_access=False, capabilities=["manage_web_search"])[1]
        keys["key_other_base"] = key_create(actor=actor, space=home, name="o", full_access=False, capabilities=every, kb_uids=other)[1]
        keys["key_full"] = key_create(actor=actor, space=home, name="f", full_access=True)[1]
    with space_scope(foreign.pk):
        stranger = admin_actor(users["outsider"], foreign)
        keys["key_foreign"] = key_create(actor=stranger, space=foreign, name="x", full_access=True)[1]
    number = 2**40 + 7
    unknown: dict[str, Any] = dict.fromkeys(("workspace_id", "space_id", "tenant_id", "invitation_id", "link_id", "key_id"), number)
    unknown |= {**UNKNOWN, "user_id": uuid.UUID(int=6), "token": "x" * 43}
    return World(home, foreign, users, keys, ids, unknown)


@pytest.fixture
def world(db: None) -> World:
    """Fresh for every test."""
    return build_world()


@contextmanager
def unharmed() -> Iterator[None]:
    """Whatever the block does to the database is undone after it."""
    cache.clear()
    mark = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(mark)
