"""The sign-in routes of the contract (platform 1.5): bodies, statuses, codes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from apps.accounts.models import AccessToken, User
from apps.common.api.throttle import SignInThrottle
from apps.spaces.models import Membership, Space
from tests.support.racing import run_together
from tests.support.world import PASSWORD, ApiClient, World, make_user

REGISTER, LOGIN, REFRESH, ME = "/api/v1/auth/register", "/api/v1/auth/login", "/api/v1/auth/refresh", "/api/v1/auth/me"


def register(email: str = "ann@example.com", **extra: Any) -> Any:
    return ApiClient().post(REGISTER, {"username": "ann", "email": email, "password": PASSWORD, **extra})


def login(email: str = "ann@example.com", password: str = PASSWORD) -> Any:
    return ApiClient().post(LOGIN, {"email": email, "password": password})


def bearer(token: str, **headers: str) -> ApiClient:
    return ApiClient({"Authorization": f"Bearer {token}", **headers})


@pytest.mark.django_db
def test_register_answers_201_without_tokens_and_makes_the_personal_space() -> None:
    answer = register()
    body = answer.json()
    assert answer.status_code == 201
    assert set(body) == {"success", "message", "user"}
    user = User.objects.get()
    space = Space.objects.get()
    assert body["user"] == {
        "id": str(user.pk),
        "username": "ann",
        "email": "ann@example.com",
        "avatar": "",
        "tenant_id": space.pk,
        "is_active": True,
        "can_access_all_tenants": False,
        "is_system_admin": True,
        "preferences": {},
        "created_at": body["user"]["created_at"],
        "updated_at": body["user"]["updated_at"],
        "deleted_at": None,
    }
    assert (space.name, space.kind) == ("ann's Workspace", "personal")
    assert Membership.objects.get().role == "admin"
    assert AccessToken.objects.count() == 0


@pytest.mark.django_db
def test_only_the_first_account_moderates_the_site() -> None:
    register()
    register("bob@example.com", username="bob")
    assert list(User.objects.order_by("created_at").values_list("is_staff", "is_superuser")) == [(True, True), (False, False)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"username": "a"}, 1010, "username"),
        ({"username": "a" * 51}, 1010, "username"),
        ({"email": "no-address"}, 1010, "email"),
        ({"password": "short1"}, 1010, "password"),
        ({"password": "x" * 40 + "1"}, 1010, "password"),
        ({"password": "onlyletters"}, 1010, "password"),
        ({"email": "TAKEN@example.com"}, 1000, "email"),
        ({"username": "TAKEN"}, 1000, "username"),
    ],
)
def test_register_refuses_and_makes_nothing(change: dict[str, str], code: int, field: str) -> None:
    make_user("taken@example.com", username="taken")
    answer = ApiClient().post(REGISTER, {"username": "ann", "email": "ann@example.com", "password": PASSWORD, **change})
    assert (answer.status_code, answer.json()["success"], answer.json()["error"]["code"]) == (400, False, code)
    if code == 1000:
        assert answer.json()["error"]["details"]["field"] == field
    assert (User.objects.count(), Space.objects.count()) == (1, 1)


@pytest.mark.django_db
def test_invite_only_closes_registration_but_for_the_first() -> None:
    with override_settings(REGISTRATION="invite_only"):
        assert ApiClient().get("/api/v1/auth/config").json() == {"success": True, "registration_mode": "self_serve"}
        assert register().status_code == 201
        assert ApiClient().get("/api/v1/auth/config").json() == {"success": True, "registration_mode": "invite_only"}
        answer = register("bob@example.com", username="bob")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, 1002)
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_login_answers_everything_a_client_starts_from() -> None:
    register()
    answer = login()
    body, space = answer.json(), Space.objects.get()
    assert answer.status_code == 200
    assert set(body) == {"success", "message", "user", "active_tenant", "memberships", "token", "refresh_token"}
    assert body["memberships"] == [{"tenant_id": space.pk, "tenant_name": "ann's Workspace", "role": "owner"}]
    tenant = body["active_tenant"]
    assert (tenant["id"], tenant["status"], tenant["storage_quota"], tenant["storage_used"]) == (space.pk, "active", 10 * 1024**3, 0)
    assert body["user"]["tenant_id"] == space.pk
    assert bearer(body["token"]).get(ME).status_code == 200


@pytest.mark.django_db
def test_wrong_credentials_and_unknown_people_answer_alike() -> None:
    register()
    wrong, unknown = login(password="wrong-pass-1"), login("nobody@example.com")
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.json() == unknown.json() == {"success": False, "message": "Invalid email or password", "memberships": None}


@pytest.mark.django_db
def test_a_disabled_account_is_named_only_to_who_knows_the_password() -> None:
    register()
    User.objects.update(is_active=False)
    assert login().json() == {"success": False, "message": "Account is disabled", "memberships": None}
    assert login(password="wrong-pass-1").json()["message"] == "Invalid email or password"


@pytest.mark.django_db
@pytest.mark.parametrize("body", [{}, {"email": "x"}, {"email": "ann@example.com", "password": "five5"}, []])
def test_a_malformed_login_is_400_1010(body: Any) -> None:
    answer = ApiClient().post(LOGIN, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 1010)


@pytest.mark.django_db
def test_refresh_rotates_and_the_old_token_fails() -> None:
    register()
    old = login().json()["refresh_token"]
    answer = ApiClient().post(REFRESH, {"refreshToken": old})
    assert answer.status_code == 200
    assert set(answer.json()) == {"success", "message", "access_token", "refresh_token"}
    again = ApiClient().post(REFRESH, {"refreshToken": old})
    assert (again.status_code, again.json()["error"]["code"], again.json()["error"]["message"]) == (401, 1001, "Token refresh failed")
    assert bearer(answer.json()["access_token"]).get(ME).status_code == 200
    assert ApiClient().post(REFRESH, {"refreshToken": answer.json()["refresh_token"]}).status_code == 200


@pytest.mark.django_db
def test_each_token_serves_only_its_own_purpose() -> None:
    register()
    body = login().json()
    assert ApiClient().post(REFRESH, {"refreshToken": body["token"]}).status_code == 401
    refused = bearer(body["refresh_token"]).get(ME)
    assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized: invalid or expired token"})
    assert ApiClient().post(REFRESH, {"refresh_token": body["refresh_token"]}).json()["error"]["code"] == 1010


@pytest.mark.django_db
def test_logout_ends_every_token() -> None:
    register()
    first, second = login().json(), login().json()
    answer = bearer(first["token"]).post("/api/v1/auth/logout")
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert bearer(second["token"]).get(ME).status_code == 401
    assert ApiClient().post(REFRESH, {"refreshToken": second["refresh_token"]}).status_code == 401
    assert bearer(first["token"]).post("/api/v1/auth/logout").status_code == 200, "an ended token may sign out again"
    assert ApiClient().post("/api/v1/auth/logout").json() == {"error": "Unauthorized: missing authentication"}


@pytest.mark.django_db
def test_me_validate_and_preferences() -> None:
    register()
    client, space = bearer(login().json()["token"]), Space.objects.get()
    me = client.get(ME).json()
    assert set(me["data"]) == {"user", "tenant", "memberships", "tenant_required", "capabilities"}
    assert me["data"]["capabilities"] == {"can_create_tenant": True, "auto_accept_invitation": False}
    assert (me["data"]["tenant"]["id"], me["data"]["tenant_required"]) == (space.pk, False)
    assert client.get("/api/v1/auth/validate").json()["user"]["email"] == "ann@example.com"
    url = "/api/v1/auth/me/preferences"
    assert client.put(url, {"last_active_tenant_id": space.pk}).json() == {"success": True, "data": {"last_active_tenant_id": space.pk}}
    assert client.put(url, {"something": 1}).json()["data"] == {"last_active_tenant_id": space.pk}
    assert client.put(url, {"last_active_tenant_id": 0}).json()["data"] == {}


@pytest.mark.django_db
def test_change_password_tells_why_not_and_ends_every_token() -> None:
    register()
    body = login().json()
    url, client = "/api/v1/auth/change-password", bearer(body["token"])

    def tried(old: str, new: str) -> tuple[int, int, Any]:
        answer = client.post(url, {"old_password": old, "new_password": new})
        return answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["details"]

    assert tried("wrong-pass-1", "brand-new-8") == (400, 1000, "invalid_old_password")
    assert tried(PASSWORD, "short1") == (400, 1010, "password_policy")
    assert tried(PASSWORD, PASSWORD) == (400, 1010, "same_password")
    assert client.post(url, {"old_password": PASSWORD, "new_password": "brand-new-8"}).json()["success"] is True
    assert client.get(ME).status_code == 401
    assert ApiClient().post(REFRESH, {"refreshToken": body["refresh_token"]}).status_code == 401
    assert (login().status_code, login(password="brand-new-8").status_code) == (401, 200)


def test_switch_tenant_gives_tokens_for_the_other_space(world: World) -> None:
    body = login("member@example.com").json()
    client = bearer(body["token"])
    answer = client.post("/api/v1/auth/switch-tenant", {"tenant_id": world.home.pk, "refresh_token": body["refresh_token"]})
    assert (answer.status_code, answer.json()["active_tenant"]["id"]) == (200, world.home.pk)
    assert bearer(answer.json()["token"]).get(ME).json()["data"]["tenant"]["id"] == world.home.pk
    assert ApiClient().post(REFRESH, {"refreshToken": body["refresh_token"]}).status_code == 401
    foreign = client.post("/api/v1/auth/switch-tenant", {"tenant_id": world.foreign.pk})
    unknown = client.post("/api/v1/auth/switch-tenant", {"tenant_id": 2**40})
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, 1002)
    assert foreign.json() == unknown.json()


@pytest.mark.django_db
def test_small_fixed_answers() -> None:
    client = ApiClient()
    auto = client.post("/api/v1/auth/auto-setup")
    assert (auto.status_code, auto.json()["success"], auto.json()["error"]["code"]) == (403, False, 1002)
    assert client.get("/api/v1/auth/oidc/config").json() == {"success": True, "enabled": False}


def test_me_with_an_api_key_is_a_stand_in(world: World) -> None:
    data = world.client("key_without").get(ME).json()["data"]
    assert (data["tenant"]["id"], data["memberships"], data["user"]["tenant_id"]) == (world.home.pk, [], world.home.pk)
    assert data["capabilities"]["can_create_tenant"] is False


def test_tenant_header_of_the_contract(world: World) -> None:
    token = login("member@example.com").json()["token"]

    def asked(value: str) -> tuple[int, Any]:
        answer = bearer(token, **{"X-Tenant-ID": value}).get(ME)
        return answer.status_code, answer.json().get("error")

    assert asked(str(world.home.pk)) == (200, None)
    assert asked(str(world.foreign.pk)) == (403, "Forbidden: insufficient permissions to access target workspace")
    assert asked("nonsense") == (400, "Invalid X-Tenant-ID header")
    key = ApiClient({"X-API-Key": world.keys["key_full"], "X-Tenant-ID": str(world.foreign.pk)}).get(ME)
    assert (key.status_code, key.json()) == (403, {"error": "Forbidden: workspace API key cannot switch workspaces"})


@pytest.mark.django_db
def test_sign_in_is_throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SignInThrottle, "THROTTLE_RATES", {"sign-in": "2/m"})
    addresses = {"REMOTE_ADDR": "192.0.2.77"}
    answers = [
        ApiClient().post(
            LOGIN, {"email": f"u{n}@example.com", "password": PASSWORD}, headers={"X-Forwarded-For": f"10.0.0.{n}"}, **addresses
        )
        for n in range(3)
    ]
    assert [answer.status_code for answer in answers] == [401, 401, 429], "a made-up X-Forwarded-For does not help"
    assert (answers[2].json()["error"]["code"], answers[2].headers["Retry-After"].isdigit()) == (1006, True)


@pytest.mark.django_db
def test_a_session_owes_csrf_on_rest_but_not_on_public_routes() -> None:
    make_user("ann@example.com")
    client = ApiClient()
    client.force_login(User.objects.get())
    refused = client.post("/api/v1/auth/change-password", {"old_password": PASSWORD, "new_password": "brand-new-8"})
    assert refused.status_code == 403
    assert User.objects.get().check_password(PASSWORD)
    assert client.post(LOGIN, {"email": "ann@example.com", "password": PASSWORD}).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_racing_registrations_make_one_account_and_one_moderator() -> None:
    same = run_together([lambda: register().status_code for _ in range(4)])
    assert sorted(same) == [201, 400, 400, 400]
    User.objects.all().delete()
    Space.objects.all().delete()
    jobs = [lambda n=n: register(f"u{n}@example.com", username=f"user{n}").status_code for n in range(4)]
    assert run_together(jobs) == [201, 201, 201, 201]
    assert (User.objects.filter(is_staff=True).count(), Space.objects.count()) == (1, 4)


@pytest.mark.django_db(transaction=True)
def test_racing_first_sign_ups_let_one_through_when_invite_only() -> None:
    with override_settings(REGISTRATION="invite_only"):
        jobs = [lambda n=n: register(f"u{n}@example.com", username=f"user{n}").status_code for n in range(4)]
        assert sorted(run_together(jobs)) == [201, 403, 403, 403]


@pytest.mark.django_db(transaction=True)
def test_a_refresh_token_used_twice_at_once_works_once() -> None:
    register()
    token = login().json()["refresh_token"]
    statuses = run_together([lambda: ApiClient().post(REFRESH, {"refreshToken": token}).status_code for _ in range(3)])
    assert sorted(statuses) == [200, 401, 401]


@pytest.mark.django_db
def test_createsuperuser_makes_a_space_as_well() -> None:
    user = User.objects.create_superuser("root@example.com", "weak")
    assert (user.is_staff, Space.objects.get().owner_id, user.username) == (True, user.pk, "root")
