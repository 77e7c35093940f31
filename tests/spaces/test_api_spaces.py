"""Workspaces, members, invitations and API keys over REST (contract platform 1.6 to 1.8)."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings
from django.utils import timezone

from apps.accounts.models import User
from apps.common.models import Activity
from apps.common.scope import unscoped
from apps.spaces.models import ApiKey, Invitation, Membership, Space
from tests.support.racing import run_together
from tests.support.world import BASE_URL, PASSWORD, ApiClient, World, make_user


def tenant(world: World, tail: str = "") -> str:
    return f"/api/v1/tenants/{world.home.pk}{tail}"


def error(answer: Any) -> tuple[int, int]:
    return answer.status_code, answer.json()["error"]["code"]


def test_make_read_change_and_delete_an_organization(world: World) -> None:
    client = world.client("member")
    made = client.post("/api/v1/tenants", {"name": "  Research   lab ", "description": "tests"})
    assert made.status_code == 201
    data = made.json()["data"]
    assert (data["name"], data["description"], data["status"]) == ("Research lab", "tests", "active")
    inside = ApiClient({**client.credentials, "X-Tenant-ID": str(data["id"])})
    url = f"/api/v1/tenants/{data['id']}"
    assert inside.get(url).json()["data"]["id"] == data["id"]
    assert [row["id"] for row in inside.get("/api/v1/tenants").json()["data"]["items"]] == [data["id"]]
    assert inside.put(url, {"name": "Lab"}).json()["data"]["name"] == "Lab"
    assert inside.delete(url).json() == {"success": True, "message": "Workspace deleted successfully"}
    assert inside.get(url).status_code == 403
    assert client.get(url).status_code == 403


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x" * 129}, {"name": "x", "description": "y" * 513}])
def test_a_bad_organization_is_refused(world: World, body: dict[str, str]) -> None:
    before = Space.objects.count()
    assert error(world.client("member").post("/api/v1/tenants", body)) == (400, 1010)
    assert Space.objects.count() == before


def test_one_person_may_make_ten(world: World) -> None:
    client = world.client("member")
    for number in range(10):
        assert client.post("/api/v1/tenants", {"name": f"O{number}"}).status_code == 201
    assert error(client.post("/api/v1/tenants", {"name": "O10"})) == (429, 1006)


def test_the_path_must_name_the_active_workspace(world: World) -> None:
    for method in ("get", "put", "delete"):
        foreign = getattr(world.client("admin"), method)(f"/api/v1/tenants/{world.foreign.pk}", {"name": "x"})
        unknown = getattr(world.client("admin"), method)(f"/api/v1/tenants/{2**40}", {"name": "x"})
        assert error(foreign) == (403, 1002)
        assert foreign.content == unknown.content
    assert Space.objects.get(pk=world.foreign.pk).name == "Foreign"


def test_a_personal_space_has_no_members_invitations_or_end(world: World) -> None:
    user = world.users["member"]
    own = Space.objects.get(owner=user, kind="personal")
    token = ApiClient().post("/api/v1/auth/login", {"email": user.email, "password": PASSWORD}).json()["token"]
    client = ApiClient({"Authorization": f"Bearer {token}", "X-Tenant-ID": str(own.pk)})
    url = f"/api/v1/tenants/{own.pk}"
    assert [row["role"] for row in client.get(f"{url}/members").json()["data"]["members"]] == ["owner"]
    for answer in (
        client.post(f"{url}/members", {"email": "admin@example.com", "role": "viewer"}),
        client.post(f"{url}/invitations", {"email": "admin@example.com", "role": "viewer"}),
        client.post(f"{url}/invite-links", {"role": "viewer"}),
        client.post(f"{url}/leave"),
        client.delete(url),
    ):
        assert error(answer) == (403, 1002)
    assert Membership.objects.filter(space=own).count() == 1


def test_members_are_listed_found_and_paged(world: World) -> None:
    client = world.client("member")
    data = client.get(tenant(world, "/members")).json()["data"]
    assert (data["total"], data["page"], data["page_size"]) == (3, 1, 20)
    first = data["members"][0]
    assert first == {
        "user_id": str(world.users["admin"].pk),
        "email": "admin@example.com",
        "username": "Admin",
        "role": "owner",
        "status": "active",
        "joined_at": first["joined_at"],
    }
    found = client.get(tenant(world, "/members?q=MEMBER@")).json()["data"]["members"]
    assert [(row["username"], row["role"]) for row in found] == [("Member", "contributor")]
    second = client.get(tenant(world, "/members?page=2&page_size=2")).json()["data"]
    assert (len(second["members"]), second["total"]) == (1, 3)


@pytest.mark.parametrize(
    ("word", "stored", "shown"),
    [
        ("owner", "admin", "admin"),
        ("admin", "admin", "admin"),
        ("contributor", "member", "contributor"),
        ("viewer", "member", "contributor"),
    ],
)
def test_role_names_of_the_contract(world: World, word: str, stored: str, shown: str) -> None:
    answer = world.client("admin").post(tenant(world, "/members"), {"email": "removed@example.com", "role": word})
    assert (answer.status_code, answer.json()["data"]["role"]) == (201, shown)
    assert Membership.objects.get(space=world.home, user=world.users["removed"]).role == stored


def test_adding_members_refuses_in_the_contracts_words(world: World) -> None:
    client, url = world.client("admin"), tenant(world, "/members")
    assert error(client.post(url, {"email": "nobody@example.com", "role": "viewer"})) == (404, 1003)
    assert error(client.post(url, {"email": "member@example.com", "role": "viewer"})) == (409, 1005)
    assert error(client.post(url, {"email": "removed@example.com", "role": "king"})) == (400, 1000)
    assert error(world.client("key_full").post(url, {"email": "removed@example.com", "role": "owner"})) == (403, 1002)
    assert world.client("member").post(url, {"email": "removed@example.com", "role": "viewer"}).json() == {
        "error": "Forbidden: insufficient workspace role"
    }
    assert Membership.objects.filter(space=world.home).count() == 3


def test_removal_ends_access_with_the_next_request(world: World) -> None:
    client = world.client("member")
    assert client.get(tenant(world)).status_code == 200
    url = tenant(world, f"/members/{world.users['member'].pk}")
    assert world.client("admin").delete(url).json() == {"success": True, "message": "Member removed successfully"}
    refused = client.get(tenant(world))
    assert (refused.status_code, refused.json()) == (403, {"error": "Forbidden: not a member of the target workspace"})
    assert client.get("/api/v1/auth/me").json()["data"]["tenant"] is None, "who one is can still be asked"
    assert error(world.client("admin").delete(url)) == (404, 1003)
    with unscoped("test"):
        assert Activity.objects.filter(action="rbac.member_removed", space=world.home).count() == 2


def test_an_admin_who_goes_takes_their_keys_along(world: World) -> None:
    admin, second = world.client("admin"), world.users["member"]
    admin.put(tenant(world, f"/members/{second.pk}"), {"role": "admin"})
    made = world.client("member").post(tenant(world, "/api-keys"), {"name": "mine", "full_access": True}).json()["data"]
    key = ApiClient({"X-API-Key": made["api_key"]})
    assert key.get("/api/v1/auth/me").status_code == 200
    assert admin.put(tenant(world, f"/members/{second.pk}"), {"role": "contributor"}).json()["data"]["role"] == "contributor"
    assert key.get("/api/v1/auth/me").json() == {"error": "Unauthorized: invalid API key"}


def test_the_last_admin_stays(world: World) -> None:
    client = world.client("admin")
    own = tenant(world, f"/members/{world.users['admin'].pk}")
    for answer in (client.post(tenant(world, "/leave")), client.delete(own), client.put(own, {"role": "viewer"})):
        assert error(answer) == (409, 1005)
    assert Membership.objects.get(space=world.home, user=world.users["admin"]).role == "admin"


@pytest.mark.django_db(transaction=True)
def test_two_admins_leaving_at_once_leave_one(world: World) -> None:
    Membership.objects.filter(space=world.home, user=world.users["member"]).update(role="admin")
    clients = [world.client("admin"), world.client("member")]
    statuses = run_together([lambda c=c: c.post(tenant(world, "/leave")).status_code for c in clients])
    assert sorted(statuses) == [200, 409]
    assert Membership.objects.filter(space=world.home, role="admin").count() == 1


def test_an_invitation_by_mail_from_sending_to_joining(world: World, django_capture_on_commit_callbacks: Any) -> None:
    guest = make_user("friend@example.com", language="zh-hans")
    with django_capture_on_commit_callbacks(execute=True):
        answer = world.client("admin").post(
            tenant(world, "/invitations"), {"email": "Friend@Example.com", "role": "contributor", "message": "come in"}
        )
    row = answer.json()["data"]
    assert answer.status_code == 201
    assert (row["invitee_email"], row["status"], row["role"], row["is_share_link"]) == (
        "friend@example.com",
        "pending",
        "contributor",
        False,
    )
    assert row["invite_url"].startswith("http://testserver/invitations/")
    (sent,) = mail.outbox
    assert sent.to == ["friend@example.com"]
    assert row["invite_url"] in sent.body
    assert "come in" in sent.body
    listed = world.client("admin").get(tenant(world, "/invitations")).json()["data"]["invitations"]
    assert "invite_url" not in listed[0]
    token = ApiClient().post("/api/v1/auth/login", {"email": guest.email, "password": PASSWORD}).json()["token"]
    client = ApiClient({"Authorization": f"Bearer {token}"})
    assert client.get("/api/v1/me/invitations/pending-count").json() == {"success": True, "data": {"pending_count": 1}}
    mine = client.get("/api/v1/me/invitations").json()["data"]
    joined = client.post(f"/api/v1/me/invitations/{mine[0]['id']}/accept").json()["data"]["membership"]
    assert joined == {"tenant_id": world.home.pk, "role": "contributor", "status": "active", "joined_at": joined["joined_at"]}
    assert error(client.post(f"/api/v1/me/invitations/{mine[0]['id']}/accept")) == (404, 1003)
    done = world.client("admin").get(tenant(world, "/invitations?include_terminal=true")).json()["data"]["invitations"]
    assert [(r["status"], r["accepted_count"]) for r in done if r["id"] == row["id"]] == [("accepted", 1)]


def test_an_address_nobody_confirmed_does_not_collect_older_invitations(world: World) -> None:
    """Somebody registers with an invited person's address: without the mailed link they see nothing of it."""
    squatter = make_user("invited@example.com")
    token = ApiClient().post("/api/v1/auth/login", {"email": squatter.email, "password": PASSWORD}).json()["token"]
    client = ApiClient({"Authorization": f"Bearer {token}"})
    assert client.get("/api/v1/me/invitations").json()["data"] == []
    assert error(client.post(f"/api/v1/me/invitations/{world.ids['home']['invitation_id']}/accept")) == (404, 1003)
    squatter.emailaddress_set.update(verified=True)
    assert len(client.get("/api/v1/me/invitations").json()["data"]) == 2


def invite_url(world: World, **body: str) -> str:
    path = "/invitations" if "email" in body else "/invite-links"
    return world.client("admin").post(tenant(world, path), {"role": "viewer", **body}).json()["data"]["invite_url"].rsplit("/", 1)[-1]


def test_a_mailed_invitation_lets_in_only_its_address(world: World) -> None:
    token = invite_url(world, email="somebody@example.com")
    answer = world.client("removed").post("/api/v1/me/invitations/accept-by-token", {"token": token})
    assert answer.status_code == 403
    outsider = world.client("outsider").post("/api/v1/me/invitations/accept-by-token", {"token": token})
    assert error(outsider) == (403, 1002)
    register = {"token": token, "email": "other@example.com", "username": "other", "password": PASSWORD}
    assert error(ApiClient().post("/api/v1/auth/register-by-invite", register)) == (403, 1002)
    assert not User.objects.filter(email="other@example.com").exists(), "all or nothing"


def test_a_link_lets_in_several_until_it_is_withdrawn(world: World) -> None:
    answer = world.client("admin").post(tenant(world, "/invite-links"), {"role": "contributor"}).json()["data"]
    token = answer["invite_url"].rsplit("/", 1)[-1]
    assert answer["is_share_link"] is True
    look = ApiClient().post("/api/v1/auth/invitations/lookup", {"token": token}).json()["data"]
    assert look == {"tenant_id": world.home.pk, "tenant_name": "Home", "role": "contributor", "expires_at": look["expires_at"]}
    with override_settings(REGISTRATION="invite_only"):
        body = {"token": token, "email": "new@example.com", "username": "newcomer", "password": PASSWORD}
        made = ApiClient().post("/api/v1/auth/register-by-invite", body)
    assert made.status_code == 201
    assert {row["tenant_name"]: row["role"] for row in made.json()["memberships"]} == {
        "newcomer's Workspace": "owner",
        "Home": "contributor",
    }
    assert made.json()["active_tenant"]["id"] == world.home.pk
    accept = {"token": token}
    assert world.client("outsider").post("/api/v1/me/invitations/accept-by-token", accept).status_code == 200
    world.client("admin").delete(tenant(world, f"/invitations/{answer['id']}"))
    dead = world.client("outsider").post("/api/v1/me/invitations/accept-by-token", accept)
    never = world.client("outsider").post("/api/v1/me/invitations/accept-by-token", {"token": "x" * 43})
    assert error(dead) == (410, 1003)
    assert dead.content == never.content
    assert error(ApiClient().post("/api/v1/auth/invitations/lookup", accept)) == (410, 1003)
    assert error(world.client("admin").delete(tenant(world, f"/invitations/{answer['id']}"))) == (409, 1005)


def test_an_invitation_expires_after_seven_days(world: World) -> None:
    token = invite_url(world)
    with unscoped("test"):
        row = Invitation.objects.order_by("-pk").first()
        assert row is not None
        assert abs(row.expires_at - timezone.now() - timedelta(days=7)) < timedelta(minutes=1)
        Invitation.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    assert error(world.client("outsider").post("/api/v1/me/invitations/accept-by-token", {"token": token})) == (410, 1003)
    rows = world.client("admin").get(tenant(world, "/invitations?include_terminal=true")).json()["data"]["invitations"]
    assert {r["status"] for r in rows if r["id"] == row.pk} == {"expired"}


@pytest.mark.django_db(transaction=True)
def test_accepting_twice_at_once_joins_once(world: World) -> None:
    token = invite_url(world)
    client = world.client("outsider")
    statuses = run_together([lambda: client.post("/api/v1/me/invitations/accept-by-token", {"token": token}).status_code for _ in range(3)])
    assert sorted(statuses) == [200, 409, 409]
    with unscoped("test"):
        assert Invitation.objects.get(space=world.home, is_link=True, accepted_count__gt=0).accepted_count == 1


def test_declining_tells_the_space(world: World) -> None:
    make_user("friend@example.com")
    token = ApiClient().post("/api/v1/auth/login", {"email": "friend@example.com", "password": PASSWORD}).json()["token"]
    invite_url(world, email="friend@example.com")
    client = ApiClient({"Authorization": f"Bearer {token}"})
    row = client.get("/api/v1/me/invitations").json()["data"][0]
    assert client.post(f"/api/v1/me/invitations/{row['id']}/decline").json()["success"] is True
    rows = world.client("admin").get(tenant(world, "/invitations?include_terminal=true")).json()["data"]["invitations"]
    assert {r["id"]: r["status"] for r in rows}[row["id"]] == "declined"


def test_a_key_is_readable_once_and_then_only_hinted(world: World) -> None:
    client, url = world.client("admin"), tenant(world, "/api-keys")
    base = str(world.ids["home"]["kb_id"])
    body = {"name": "bot", "full_access": False, "capabilities": ["retrieve"], "knowledge_base_ids": [base]}
    answer = client.post(url, body)
    row = answer.json()["data"]
    assert answer.status_code == 201
    assert re.fullmatch(r"sk-[\w-]{43}", row["api_key"])
    assert (row["token"], row["scope_type"], row["capabilities"], row["knowledge_base_ids"]) == (
        row["api_key"],
        "tenant",
        ["retrieve"],
        [base],
    )
    with unscoped("test"):
        stored = ApiKey.objects.get(pk=row["id"])
    assert row["api_key"] not in str(vars(stored))
    listed = next(r for r in client.get(url).json()["data"] if r["id"] == row["id"])
    assert "token" not in listed
    assert listed["api_key"] == f"{row['api_key'][:7]}…{row['api_key'][-4:]}"
    assert "last_used_at" not in listed
    assert ApiClient({"X-API-Key": row["api_key"]}).get("/api/v1/auth/me").status_code == 200
    assert next(r for r in client.get(url).json()["data"] if r["id"] == row["id"])["last_used_at"]
    changed = client.put(f"{url}/{row['id']}", {"name": "bot 2", "full_access": True}).json()["data"]
    assert (changed["name"], changed["capabilities"], changed["knowledge_base_ids"], changed["full_access"]) == ("bot 2", [], [], True)
    assert client.delete(f"{url}/{row['id']}").json() == {"success": True, "message": "API key deleted successfully"}
    assert ApiClient({"X-API-Key": row["api_key"]}).get("/api/v1/auth/me").json() == {"error": "Unauthorized: invalid API key"}
    assert error(client.delete(f"{url}/{row['id']}")) == (404, 1003)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"capabilities": []}, "capabilities"),
        ({"capabilities": ["fly"]}, "capabilities"),
        ({"name": " "}, None),
        ({"expires_at_unix": 1}, "expires_at_unix"),
        ({"knowledge_base_ids": ["00000000-0000-0000-0000-000000000007"]}, "knowledge_base_ids"),
        ({"knowledge_base_ids": ["FOREIGN"]}, "knowledge_base_ids"),
        ({"knowledge_base_ids": ["no id"]}, "knowledge_base_ids"),
    ],
)
def test_a_key_that_cannot_be_is_refused(world: World, change: dict[str, Any], field: str | None) -> None:
    if change.get("knowledge_base_ids") == ["FOREIGN"]:
        change = {"knowledge_base_ids": [str(world.ids["foreign"]["kb_id"])]}
    body = {"name": "bot", "full_access": False, "capabilities": ["retrieve"], **change}
    answer = world.client("admin").post(tenant(world, "/api-keys"), body)
    assert error(answer) == (400, 1010)
    if field:
        assert answer.json()["error"]["details"]["field"] == field


def test_keys_never_manage_keys_and_expire(world: World) -> None:
    url = tenant(world, "/api-keys")
    assert world.client("key_full").get(url).json() == {"error": "Forbidden: API keys cannot access this endpoint"}
    soon = int((timezone.now() + timedelta(hours=1)).timestamp())
    row = world.client("admin").post(url, {"name": "short", "full_access": True, "expires_at_unix": soon}).json()["data"]
    client = ApiClient({"X-API-Key": row["api_key"]})
    assert client.get("/api/v1/auth/me").status_code == 200
    with unscoped("test"):
        ApiKey.objects.filter(pk=row["id"]).update(expires_at=timezone.now())
    assert client.get("/api/v1/auth/me").json() == {"error": "Unauthorized: invalid API key"}


def test_what_the_server_is(world: World, settings: Any) -> None:
    info = world.client("key_without").get("/api/v1/system/info").json()["data"]
    assert (info["version"], info["edition"], info["keyword_index_engine"]) == ("0.1.0", "standard", settings.SEARCH_BACKEND)
    capabilities = world.client("member").get("/api/v1/system/capabilities").json()["data"]["capabilities"]
    assert capabilities["web_search"]["supported"] is False


def test_deleting_an_organization_ends_keys_and_invitations(world: World) -> None:
    token = invite_url(world)
    key = world.client("key_full")
    assert world.client("admin").delete(tenant(world)).status_code == 200
    assert key.get("/api/v1/auth/me").status_code == 401
    assert error(ApiClient().post("/api/v1/auth/invitations/lookup", {"token": token})) == (410, 1003)
    assert world.client("outsider").get(f"/api/v1/tenants/{world.foreign.pk}").status_code == 200


def test_base_url_is_used_for_links(world: World) -> None:
    with override_settings(KB_BASE_URL="https://portal.example"):
        answer = world.client("admin").post(tenant(world, "/invite-links"), {"role": "viewer"})
    assert answer.json()["data"]["invite_url"].startswith("https://portal.example/invitations/")
    assert BASE_URL.startswith("http://testserver")
