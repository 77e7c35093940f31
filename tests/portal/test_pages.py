"""Pages about spaces, members, invitations and keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import User
from apps.spaces.models import Membership, Space
from tests.support.world import ApiClient, World


def page(client: Any, name: str, *args: Any) -> str:
    answer = client.get(reverse(name, args=args), headers={"Accept-Language": "en"})
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_root_leads_to_the_last_space(world: World) -> None:
    client = world.client("member", by="session")
    own = Space.objects.get(owner=world.users["member"])
    assert client.get("/").headers["Location"] == f"/s/{own.pk}/"
    client.get(f"/s/{world.home.pk}/")
    assert client.get("/").headers["Location"] == f"/s/{world.home.pk}/"
    Membership.objects.filter(space=world.home, user=world.users["member"]).delete()
    assert client.get("/").headers["Location"] == f"/s/{own.pk}/"


def test_the_frame_knows_space_spaces_and_person(world: World) -> None:
    text = page(world.client("member", by="session"), "home", world.home.pk)
    assert re.search(r'side__space.*?<strong class="truncate">Home</strong>', text, re.DOTALL)
    assert "Member&#x27;s Workspace" in text
    assert reverse("keys-page", args=[world.home.pk]) not in text, "what a member may not do is absent"
    assert reverse("keys-page", args=[world.home.pk]) in page(world.client("admin", by="session"), "home", world.home.pk)


def test_an_organization_is_made_and_deleted_by_typing_its_name(world: World) -> None:
    client = world.client("member", by="session")
    assert client.post("/spaces/new", {"name": "Lab", "description": "d"}).status_code == 302
    space = Space.objects.get(name="Lab")
    url = reverse("space-delete", args=[space.pk])
    wrong = client.post(url, {"typed_name": "lab"}, headers={"Accept-Language": "en"})
    assert wrong.status_code == 400
    assert "Type the name of the organization exactly to delete it." in wrong.content.decode()
    assert 'value="lab"' in wrong.content.decode()
    assert client.post(url, {"typed_name": "Lab"}).headers["Location"] == "/"
    assert Space.objects.get(pk=space.pk).deleted_at is not None
    assert client.get(reverse("home", args=[space.pk])).status_code == 404


def test_a_fresh_key_is_shown_once_and_works(world: World) -> None:
    client, url = world.client("admin", by="session"), reverse("keys-page", args=[world.home.pk])
    base = str(world.ids["home"]["kb_id"])
    form = {"name": "bot", "access": "some", "capabilities": ["retrieve", "manage_members"], "bases": [base], "expires_on": "2999-01-01"}
    assert client.post(url, form).headers["Location"] == url
    first, second = page(client, "keys-page", world.home.pk), page(client, "keys-page", world.home.pk)
    found = re.search(r'id="fresh-key" readonly value="(sk-[\w-]{43})"', first)
    assert found
    assert "fresh-key" not in second
    assert "only in: Handbook" in second
    assert "2999-01-02 00:00" in second
    assert ApiClient({"X-API-Key": found.group(1)}).get(f"/api/v1/tenants/{world.home.pk}/members").status_code == 200


def test_a_key_form_with_a_fault_comes_back_filled_and_open(world: World) -> None:
    client, url = world.client("admin", by="session"), reverse("keys-page", args=[world.home.pk])
    answer = client.post(url, {"name": "my bot", "access": "some"}, headers={"Accept-Language": "en"})
    text = answer.content.decode()
    assert answer.status_code == 400
    assert "Choose full access or at least one capability." in text
    assert 'value="my bot"' in text
    assert re.search(r'<dialog [^>]*id="new-key"[^>]*data-open', text)


def test_members_are_promoted_and_removed(world: World) -> None:
    client, guest = world.client("admin", by="session"), world.ids["home"]["user_id"]
    client.post(reverse("member-role", args=[world.home.pk, guest]), {"role": "admin"})
    assert Membership.objects.get(space=world.home, user_id=guest).role == "admin"
    client.post(reverse("member-remove", args=[world.home.pk, guest]))
    assert not Membership.objects.filter(space=world.home, user_id=guest).exists()
    text = page(client, "members-page", world.home.pk)
    assert "The person is no longer a member." in text


def test_the_last_admin_is_told_why_they_cannot_leave(world: World) -> None:
    client = world.client("admin", by="session")
    client.post(reverse("member-leave", args=[world.home.pk]))
    assert "A space needs at least one admin." in page(client, "members-page", world.home.pk)
    assert Membership.objects.filter(space=world.home, user=world.users["admin"]).exists()


def test_an_invitation_link_is_shown_once(world: World) -> None:
    client, url = world.client("admin", by="session"), reverse("invitations-page", args=[world.home.pk])
    assert client.post(url, {"by": "link", "role": "member"}).status_code == 302
    assert re.search(
        r'id="fresh-link" readonly value="http://testserver/invitations/[\w-]{43}"', page(client, "invitations-page", world.home.pk)
    )
    assert "fresh-link" not in page(client, "invitations-page", world.home.pk)
    bad = client.post(
        url, {"by": "mail", "email": "member@example.com", "role": "member", "message": "hello there"}, headers={"Accept-Language": "en"}
    )
    assert bad.status_code == 400
    assert "This person is a member already." in bad.content.decode()
    assert "hello there" in bad.content.decode()


def test_the_name_is_changed_on_the_profile(world: World) -> None:
    client = world.client("member", by="session")
    assert client.post("/profile", {"username": "Momo"}).status_code == 302
    assert User.objects.get(email="member@example.com").username == "Momo"
    taken = client.post("/profile", {"username": "ADMIN"}, headers={"Accept-Language": "en"})
    assert "This name is taken. Choose another." in taken.content.decode()


@pytest.mark.parametrize("name", ["profile", "space-new", "my-invitations-page"])
def test_pages_without_a_space_in_the_path(world: World, name: str) -> None:
    assert "<h1>" in page(world.client("removed", by="session"), name)
