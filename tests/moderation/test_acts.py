"""What a moderator does, does it: through the services, with a record, and truthfully when it cannot be done."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.tokens import issue_pair
from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.jobs.models import RunState
from apps.common.models import Activity
from apps.common.scope import space_scope, unscoped
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import CleanupRun, Document, KnowledgeBase, MoveRun
from apps.moderation.services import run_cancel, run_retry
from apps.spaces.models import ApiKey, Space
from apps.spaces.services.keys import key_create
from tests.moderation.conftest import House
from tests.support.kit import work_all
from tests.support.world import ApiClient, make_user


def ada(house: House) -> User:
    return User.objects.get(username="ada")


def reloaded(row: Any) -> Any:
    with unscoped("test"):
        return type(row).objects.get(pk=row.pk)


def acted() -> list[tuple[str, str]]:
    with unscoped("test"):
        return list(Activity.objects.filter(actor="moderator").order_by("pk").values_list("action", "target_type"))


def test_deactivating_ends_sessions_tokens_and_keys_at_once(house: House) -> None:
    user, browser = ada(house), house.library.client
    access, refresh = issue_pair(user, tenant_id=house.library.space.pk)
    with space_scope(house.library.space.pk):
        _key, plain = key_create(actor=house.library.actor, space=house.library.space, name="bot", full_access=True)
    by_token, by_key = ApiClient({"Authorization": f"Bearer {access}"}), ApiClient({"X-API-Key": plain})
    home = f"/s/{house.library.space.pk}/"
    assert (browser.get(home).status_code, by_token.get("/api/v1/auth/me").status_code) == (200, 200)
    assert by_key.get("/api/v1/knowledge-bases").status_code == 200
    shown = house.client.get(f"/admin/do/user/{user.pk}/deactivate/").content.decode()
    assert "can no longer sign in" in shown and reloaded(user).is_active, "asking changes nothing"
    assert house.act("user", user.pk, "deactivate").status_code == 302
    assert not reloaded(user).is_active
    assert browser.get(home).status_code == 302
    assert by_token.get("/api/v1/auth/me").status_code == 401
    assert by_key.get("/api/v1/knowledge-bases").status_code == 401
    assert ApiClient().post("/api/v1/auth/refresh", {"refreshToken": refresh}).status_code == 401
    assert house.act("user", user.pk, "activate").status_code == 302
    assert reloaded(user).is_active
    assert by_token.get("/api/v1/auth/me").status_code == 401, "old tokens stay dead"
    with unscoped("test"):
        assert ApiKey.objects.get(name="bot").revoked_at is not None
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == ["user: deactivate", "user: activate"]


def test_signing_out_everywhere_ends_every_browser_and_lets_them_back_in(house: House) -> None:
    user, first, second = ada(house), house.library.client, Client()
    second.force_login(user)
    access, _refresh = issue_pair(user)
    home = f"/s/{house.library.space.pk}/"
    assert [browser.get(home).status_code for browser in (first, second)] == [200, 200]
    house.act("user", user.pk, "sign-out")
    assert [browser.get(home).status_code for browser in (first, second)] == [302, 302]
    assert ApiClient({"Authorization": f"Bearer {access}"}).get("/api/v1/auth/me").status_code == 401
    again = Client()
    again.force_login(reloaded(user))
    assert again.get(home).status_code == 200
    assert house.client.get("/admin/").status_code == 200, "nobody else is signed out"


def test_a_moderator_is_made_and_unmade_but_the_last_one_and_oneself_stay(house: House) -> None:
    user = ada(house)
    house.act("user", user.pk, "promote")
    assert (reloaded(user).is_staff, reloaded(user).is_superuser) == (True, True)
    assert house.library.client.get("/admin/").status_code == 200
    house.act("user", user.pk, "demote")
    assert (reloaded(user).is_staff, reloaded(user).is_superuser) == (False, False)
    for code in ("demote", "deactivate"):
        told = house.client.post(f"/admin/do/user/{house.moderator.pk}/{code}/").content.decode()
        assert "This is your own account; ask another moderator." in told
    me = reloaded(house.moderator)
    assert (me.is_staff, me.is_active) == (True, True)
    assert LogEntry.objects.count() == 2


def test_an_organization_is_deleted_by_typing_its_name(house: House) -> None:
    space = house.library.space
    wrong = house.act("space", space.pk, "delete", typed="team")
    assert (wrong.status_code, reloaded(space).deleted_at) == (400, None)
    assert "Type the name exactly as it stands above." in wrong.content.decode()
    assert house.act("space", space.pk, "delete", typed="Team").status_code == 302
    assert reloaded(space).deleted_at is not None
    assert house.library.client.get(f"/s/{space.pk}/").status_code == 404
    assert ("space.deleted", "space") in acted()
    own = Space.objects.get(owner=ada(house), kind="personal")
    assert "deactivate the person instead" in house.act("space", own.pk, "delete", typed=own.name).content.decode()
    assert reloaded(own).deleted_at is None


def test_documents_are_read_again_stopped_and_deleted_by_the_services(house: House) -> None:
    document = house.library.add("pump.txt", "The pump is replaced every five years.", vectors=True)
    assert document.parse_status == "completed"
    house.act("document", document.pk, "reparse")
    assert reloaded(document).parse_status == "pending"
    house.act("document", document.pk, "cancel")
    assert (reloaded(document).parse_status, reloaded(document).reason) == ("cancelled", "cancelled")
    told = house.act("document", document.pk, "cancel").content.decode()
    assert "Nothing is being done with this document." in told
    house.act("document", document.pk, "delete")
    assert reloaded(document).deleted_at is not None
    assert [action for action, _kind in acted()] == ["knowledge.reparse_started", "knowledge.parse_canceled", "knowledge.deleted"]
    with unscoped("test"):
        assert set(Activity.objects.filter(actor="moderator").values_list("actor_user_id", flat=True)) == {house.moderator.pk}


def test_several_documents_at_once_report_each_that_could_not_be_done(house: House) -> None:
    one, two = house.library.upload("one.txt", "one"), house.library.upload("two.txt", "two")
    with unscoped("test"):
        Document.objects.filter(pk=one.pk).update(parse_status="failed", reason="timeout")
    form = {"action": "read_again", "_selected_action": [str(one.pk), str(two.pk)]}
    text = house.client.post("/admin/knowledge/document/", form, follow=True).content.decode()
    assert "Read again: 1 document." in text
    assert "two.txt: It waits to be read already." in text
    assert reloaded(one).parse_status == "pending"


def test_a_base_reads_its_failed_documents_again_and_is_deleted_by_name(house: House) -> None:
    failed, well = house.library.upload("a.txt", "a"), house.document("b.txt")
    with unscoped("test"):
        Document.objects.filter(pk=failed.pk).update(parse_status="failed", reason="timeout")
        IngestionRun.objects.filter(document=failed).update(state="failed")
    base = house.library.base
    state = reloaded(well).parse_status
    house.act("base", base.pk, "reparse-failed")
    assert (reloaded(failed).parse_status, reloaded(well).parse_status) == ("pending", state)
    house.act("base", base.pk, "delete", typed="nonsense")
    assert reloaded(base).deleted_at is None
    house.act("base", base.pk, "delete", typed="Base")
    assert reloaded(base).deleted_at is not None
    with unscoped("test"):
        assert reloaded(base).purge_at > timezone.now() and not CleanupRun.objects.exists(), "an admin of the space may bring it back"
        assert KnowledgeBase.objects.filter(deleted_at__isnull=True, space=house.library.space).count() == 0


def failed_run(house: House, reason: str = "timeout") -> tuple[Document, IngestionRun]:
    document = house.library.upload("a.txt", "The pump is replaced every five years.")
    with unscoped("test"):
        Document.objects.filter(pk=document.pk).update(parse_status="failed", reason=reason)
        IngestionRun.objects.filter(document=document).update(
            state="failed", reason=reason, error="it took too long", finished_at=timezone.now()
        )
        return document, IngestionRun.objects.get(document=document)


def test_a_failed_parse_is_tried_again_and_really_works(house: House) -> None:
    document, run = failed_run(house)
    page = house.page("run", "parse", run.pk)
    assert "it took too long" in page and "Reading took too long" in page
    assert house.act("run", f"parse-{run.pk}", "retry").status_code == 302
    work_all("parse", "embed")
    assert (reloaded(document).parse_status, reloaded(document).chunk_count) == ("completed", 1)
    assert reloaded(run).state == "failed", "what happened stays in the history"
    assert ("moderator.run_retried", "run") in acted()


def test_vectors_that_could_not_be_made_are_made_by_trying_again(house: House) -> None:
    document = house.library.add("a.txt", "The pump is replaced every five years.")
    with unscoped("test"):
        Document.objects.filter(pk=document.pk).update(parse_status="completed", reason="embedding_unavailable", error_message="down")
        IngestionRun.objects.filter(document=document, kind="embed").update(state="failed", reason="embedding_unavailable")
        run = IngestionRun.objects.get(document=document, kind="embed")
    house.act("run", f"embed-{run.pk}", "retry")
    assert reloaded(document).parse_status == "finalizing"
    work_all("embed")
    done = reloaded(document)
    assert (done.parse_status, done.reason, done.error_message, done.vector_count) == ("completed", "", "", 1)


def test_trying_again_what_is_gone_or_at_work_says_so_and_changes_nothing(house: House) -> None:
    document, run = failed_run(house)
    with unscoped("test"):
        live = IngestionRun.objects.create(space=run.space, document=document, kind="embed", document_attempt=1)
    text = house.client.post(f"/admin/do/run/parse-{run.pk}/retry/", follow=True).content.decode()
    assert "The document is being worked on already." in text
    with unscoped("test"):
        live.delete()
        Document.objects.filter(pk=document.pk).update(deleted_at=timezone.now())
    text = house.client.post(f"/admin/do/run/parse-{run.pk}/retry/", follow=True).content.decode()
    assert "The document was deleted; there is nothing to try again." in text
    assert reloaded(run).state == "failed"
    assert acted() == []


def test_a_waiting_run_is_stopped_at_once_and_its_document_says_so(house: House) -> None:
    document = house.library.upload("a.txt", "a")
    with unscoped("test"):
        run = IngestionRun.objects.get(document=document)
    house.act("run", f"parse-{run.pk}", "cancel")
    assert (reloaded(run).state, reloaded(document).parse_status) == ("cancelled", "cancelled")


def test_a_running_run_is_asked_to_stop(house: House) -> None:
    document = house.library.upload("a.txt", "a")
    with unscoped("test"):
        IngestionRun.objects.filter(document=document).update(state="running", claim_token=uuid.uuid4())
        run = IngestionRun.objects.get(document=document)
    text = house.client.post(f"/admin/do/run/parse-{run.pk}/cancel/", follow=True).content.decode()
    assert "It stops at its next step." in text
    assert (reloaded(run).state, reloaded(run).cancel_requested) == ("running", True)


def test_a_failed_deletion_goes_on_and_cannot_be_stopped(house: House, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    document = house.document()
    house.act("document", document.pk, "delete")
    with unscoped("test"):
        CleanupRun.objects.update(state="failed", reason="internal", error="disk", attempt=5, takeovers=4)
        run = CleanupRun.objects.get()
    assert house.act("run", f"cleanup-{run.pk}", "retry").status_code == 302
    again = reloaded(run)
    assert (again.state, again.attempt, again.takeovers, again.error) == ("queued", 0, 0, "")
    text = house.client.post(f"/admin/do/run/cleanup-{run.pk}/cancel/", follow=True).content.decode()
    assert "A deletion cannot be stopped" in text
    assert reloaded(run).state == "queued"
    work_all("cleanup")
    assert reloaded(run).state == "done"
    with unscoped("test"):
        assert not Document.objects.filter(pk=document.pk).exists()


def test_a_waiting_move_that_is_stopped_leaves_its_record(house: House) -> None:
    space, base = house.library.space, house.library.base
    with unscoped("test"):
        run = MoveRun.objects.create(
            space=space,
            kind="move",
            task_id="t",
            source_ref=base.pk,
            target_ref=base.pk,
            source_uid=base.uid,
            target_uid=base.uid,
            mode="reparse",
        )
    house.act("run", f"move-{run.pk}", "cancel")
    assert reloaded(run).state == "cancelled"
    with unscoped("test"):
        assert Activity.objects.filter(action="knowledge.move_failed", scope_id=base.uid).exists()


def test_runs_are_tried_again_in_a_batch_with_a_report(house: House) -> None:
    document, run = failed_run(house)
    with unscoped("test"):
        done = CleanupRun.objects.create(space=house.library.space, kind="cleanup", state="done")
    form = {"act": "retry", "run": [f"parse-{run.pk}", f"cleanup-{done.pk}", "parse-999999", "nonsense"]}
    text = house.client.post("/admin/runs/?state=failed", form, follow=True).content.decode()
    assert "Try again: 1 run." in text
    assert f"cleanup-{done.pk}: Only work that failed can be tried again; this has not." in text
    assert "parse-999999 is gone." in text and "nonsense is gone." in text
    assert reloaded(document).parse_status == "pending"
    assert "Choose at least one run." in house.client.post("/admin/runs/", {"act": "retry"}, follow=True).content.decode()


def test_the_services_refuse_what_has_not_failed_or_has_ended(house: House) -> None:
    actor = Actor(kind="moderator", user_id=house.moderator.pk, space_id=house.library.space.pk)
    with unscoped("test"):
        run = CleanupRun.objects.create(space=house.library.space, kind="cleanup", state=RunState.DONE)
        with pytest.raises(Conflict) as refused:
            run_retry(actor=actor, run=run)
        assert refused.value.code == "not_failed"
        with pytest.raises(Conflict) as refused:
            run_cancel(actor=actor, run=run)
        assert refused.value.code == "not_live"


def test_unknown_acts_and_things_are_not_found(house: House) -> None:
    for address in (
        "user/x/deactivate",
        f"user/{uuid.uuid4()}/deactivate",
        "space/1/explode",
        "pigs/1/delete",
        "run/parse-1/retry",
        "run/x/retry",
    ):
        assert house.client.get(f"/admin/do/{address}/").status_code == 404, address
    assert len(mail.outbox) == 0
    assert make_user("late@example.com").is_active
