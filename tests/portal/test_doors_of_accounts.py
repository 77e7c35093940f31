"""Signing up, in and out through the pages; every way in makes the same account."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from django.test import override_settings

from apps.accounts.models import AccessToken, User
from apps.spaces.models import Membership, Space
from tests.support.world import PASSWORD, SessionClient, World, make_user

SIGNUP, LOGIN = "/account/signup/", "/account/login/"


def sign_up(client: Any, email: str = "ann@example.com", **extra: str) -> Any:
    return client.post(SIGNUP, {"email": email, "password1": PASSWORD, **extra})


@pytest.mark.django_db
def test_the_form_signs_up_with_a_space_and_goes_on_to_it() -> None:
    client = SessionClient()
    answer = sign_up(client, display_name="Ann Lee")
    user, space = User.objects.get(), Space.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert client.get("/").headers["Location"] == f"/s/{space.pk}/"
    assert (user.username, user.is_staff, space.kind, space.owner_id) == ("Ann Lee", True, "personal", user.pk)
    assert [(row.email, row.primary, row.verified) for row in user.emailaddress_set.all()] == [("ann@example.com", True, False)]


@pytest.mark.django_db
def test_a_name_is_made_when_none_is_given() -> None:
    make_user("ann@elsewhere.example")
    sign_up(SessionClient())
    assert User.objects.get(email="ann@example.com").username == "ann-2"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"password1": "short1"}, "Use 8 to 32 characters."),
        ({"password1": "onlyletters"}, "Use at least one letter and one digit."),
        ({"display_name": "taken"}, "This name is taken. Choose another."),
        ({"email": "nonsense"}, "Enter a valid email address."),
    ],
)
def test_the_form_says_what_is_wrong_and_keeps_what_was_typed(fields: dict[str, str], words: str) -> None:
    make_user("taken@example.com", username="taken")
    client = SessionClient()
    answer = client.post(
        SIGNUP, {"email": "ann@example.com", "password1": PASSWORD, "display_name": "Annabel", **fields}, headers={"Accept-Language": "en"}
    )
    page = answer.content.decode()
    assert words in page
    assert f'value="{fields.get("display_name", "Annabel")}"' in page
    assert PASSWORD not in page
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_invite_only_closes_the_form_but_for_the_first_account() -> None:
    with override_settings(REGISTRATION="invite_only"):
        assert sign_up(SessionClient()).status_code == 302
        closed = SessionClient()
        assert "signup_closed" in [template.name.split("/")[-1].split(".")[0] for template in closed.get(SIGNUP).templates]
        sign_up(closed, "bob@example.com")
        closed.post(SIGNUP, {"email": "bob@example.com", "password1": PASSWORD}, headers={"X-Requested-With": "XMLHttpRequest"})
    assert User.objects.count() == 1


def test_an_invitation_opens_sign_up_and_joins_the_space(world: World) -> None:
    client = SessionClient()
    token = world.ids["home"]["token"]
    with override_settings(REGISTRATION="invite_only"):
        landing = client.get(f"/invitations/{token}")
        assert (landing.status_code, landing.headers["Referrer-Policy"]) == (200, "no-referrer")
        answer = sign_up(client, "new@example.com")
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/s/{world.home.pk}/")
    assert client.get(f"/s/{world.home.pk}/").status_code == 200
    user = User.objects.get(email="new@example.com")
    assert set(Membership.objects.filter(user=user).values_list("space__kind", "role")) == {
        ("personal", "admin"),
        ("organization", "member"),
    }


def test_an_invitation_survives_signing_in(world: World) -> None:
    client = SessionClient()
    here = f"/invitations/{world.ids['home']['token']}"
    page = client.get(here).content.decode()
    assert f"/account/login/?next={here.replace('/', '%2F')}" in page
    answer = client.post(f"{LOGIN}?next={here}", {"login": "outsider@example.com", "password": PASSWORD, "next": here})
    assert answer.headers["Location"] == here
    assert client.post(here).headers["Location"] == f"/s/{world.home.pk}/"
    assert client.get(f"/s/{world.home.pk}/").status_code == 200


def test_a_dead_invitation_says_so(world: World) -> None:
    assert SessionClient().get("/invitations/nothing-like-it").status_code == 410


@pytest.mark.django_db
def test_signing_in_changes_the_session_key_and_out_ends_it() -> None:
    make_user("ann@example.com")
    client = SessionClient()
    client.get(LOGIN)
    client.cookies["kb_session"] = planted = "a" * 32
    answer = client.post(LOGIN, {"login": "ANN@example.com", "password": PASSWORD})
    assert answer.status_code == 302
    assert client.cookies["kb_session"].value != planted
    assert client.get("/profile").status_code == 200
    client.post("/account/logout/")
    assert client.get("/profile").headers["Location"].startswith(LOGIN)


@pytest.mark.django_db
def test_wrong_password_and_unknown_address_look_alike() -> None:
    make_user("ann@example.com")
    pages = []
    for email in ("ann@example.com", "bob@example.com"):
        page = SessionClient().post(LOGIN, {"login": email, "password": "wrong-pass-1"}).content.decode()
        pages.append(re.sub(r'(csrf-token" content="|csrfmiddlewaretoken" value=")[^"]*', "", page).replace(email, ""))
    assert pages[0] == pages[1]


@pytest.mark.django_db
def test_a_password_reset_ends_tokens_and_sessions_and_tells_nobody_who_exists(world: World) -> None:
    member = world.client("member")
    other = world.client("member", by="session")
    client = SessionClient()
    unknown = client.post("/account/password/reset/", {"email": "nobody@example.com"})
    known = client.post("/account/password/reset/", {"email": "member@example.com"})
    assert (unknown.status_code, unknown.headers["Location"]) == (known.status_code, known.headers["Location"])
    (sent,) = mail.outbox
    assert sent.to == ["member@example.com"]
    link = re.search(r"http://testserver(\S+)", sent.body)
    assert link
    form = client.get(link.group(1))
    done = client.post(form.headers["Location"], {"password1": "brand-new-8", "password2": "brand-new-8"})
    assert done.status_code == 302
    assert world.users["member"].__class__.objects.get(email="member@example.com").check_password("brand-new-8")
    assert member.get("/api/v1/auth/me").status_code == 401
    assert other.get("/profile").status_code == 302


def test_changing_the_password_keeps_this_session_only(world: World) -> None:
    here, there = world.client("member", by="session"), world.client("member", by="session")
    token = world.client("member")
    form = {"oldpassword": PASSWORD, "password1": "brand-new-8", "password2": "brand-new-8"}
    answer = here.post("/account/password/change/", form)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/profile")
    assert (here.get("/profile").status_code, there.get("/profile").status_code) == (200, 302)
    assert token.get("/api/v1/auth/me").status_code == 401
    assert not AccessToken.objects.filter(user=world.users["member"], revoked_at__isnull=True).exists()


def test_language_and_theme_are_kept_per_person_and_by_cookie(world: World) -> None:
    client = world.client("member", by="session")
    answer = client.post("/appearance", {"language": "zh-hans", "theme": "dark", "next": "/profile"})
    assert (answer.headers["Location"], client.cookies["kb_theme"].value) == ("/profile", "dark")
    user = User.objects.get(email="member@example.com")
    assert (user.language, user.theme) == ("zh-hans", "dark")
    page = client.get("/profile", headers={"Accept-Language": "en"}).content.decode()
    assert '<html lang="zh-Hans" data-theme="dark">' in page
    assert client.post("/appearance", {"theme": "light"}, headers={"HX-Request": "true"}).status_code == 204
    away = client.post("/appearance", {"theme": "light", "next": "https://evil.example/"})
    assert away.headers["Location"] == "/"
    assert client.post("/appearance", {"language": "tlh"}).status_code == 400
    visitor = SessionClient()
    visitor.post("/appearance", {"language": "en"})
    assert '<html lang="en"' in visitor.get(LOGIN).content.decode()


def test_moderators_alone_reach_the_admin_site(world: World) -> None:
    founder = SessionClient(User.objects.get(email="founder@example.com"))
    assert founder.get("/admin/accounts/user/?q=member").status_code == 200
    assert founder.get("/admin/spaces/space/?q=Home").status_code == 200
    assert world.client("admin", by="session").get("/admin/accounts/user/").status_code == 302
