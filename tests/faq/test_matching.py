"""Entries are found by every one of their questions, by words and by meaning, and not where a negative question says so."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apps.common.scope import space_scope, unscoped
from apps.faq.models import FaqEntry
from apps.knowledge.models import Chunk, Document
from apps.retrieval.search import Scope, search
from apps.retrieval.services import index_drift
from apps.retrieval.whynot import why_not
from tests.faq.conftest import FaqWorld
from tests.faq.test_entries_api import body, create, refused
from tests.support.kit import work_all

pytestmark = pytest.mark.django_db(transaction=True)


def ask(faq: FaqWorld, query: str, **values: Any) -> list[dict[str, Any]]:
    answer = faq.member.post(faq.path("search"), {"query_text": query, **values})
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def everywhere(faq: FaqWorld, query: str) -> Any:
    with space_scope(faq.space.pk):
        return search(actor=faq.member.actor, query=query, scope=Scope())


def configure(faq: FaqWorld, **config: str) -> None:
    answer = faq.admin.put(f"knowledge-bases/{faq.faq.uid}", {"name": "Support", "config": {"faq_config": config}})
    assert answer.status_code == 200, answer.content


def test_words_are_found_at_once_and_meaning_follows(faq: FaqWorld) -> None:
    create(faq, "如何重设密码", similar_questions=["忘记口令怎么办"], answers=["打开登录页面。"])
    (hit,) = ask(faq, "口令")
    assert (hit["matched_question"], hit["match_kind"]) == ("忘记口令怎么办", "keyword")
    assert "match_type" not in hit and hit["score"] > 0 and "vector_score" not in hit
    assert work_all("embed") == 1
    (hit,) = ask(faq, "登录的密码想不起来了")
    assert hit["match_kind"] in ("semantic", "both")
    assert hit["score"] == pytest.approx(hit["vector_score"], abs=1e-6)
    with unscoped("test"):
        pair = Document.objects.get(type="pair")
        assert (pair.vector_count, pair.chunk_count) == (1, 1)
    base = faq.member.get(f"knowledge-bases/{faq.faq.uid}").json()["data"]
    assert (base["chunk_count"], base["knowledge_count"]) == (1, 0)


@pytest.mark.parametrize("mode", ["combined", "separate"])
def test_an_entry_is_one_hit_whichever_of_its_questions_are_met(faq: FaqWorld, mode: str) -> None:
    configure(faq, question_index_mode=mode)
    create(faq, "重设密码", similar_questions=["忘记密码", "修改密码", "密码过期"], answers=["打开登录页面。"])
    create(faq, "退货流程", answers=["联系客服。"])
    work_all("embed")
    hits = ask(faq, "密码过期")
    assert [hit["standard_question"] for hit in hits if hit["match_kind"] != "semantic"] == ["重设密码"]
    assert len({hit["id"] for hit in hits}) == len(hits)
    assert (hits[0]["standard_question"], hits[0]["matched_question"]) == ("重设密码", "密码过期")
    found = everywhere(faq, "密码过期").hits
    assert [hit.document.title for hit in found].count("重设密码") == 1
    assert found[0].chunk.chunk_index == 0
    assert (found[0].question, found[0].chunk.content) == ("密码过期", "重设密码\n\n打开登录页面。")
    with unscoped("test"):
        assert Chunk.objects.filter(document__title="重设密码").count() == (4 if mode == "separate" else 1)


def test_answers_are_part_of_what_is_found_only_where_the_base_says_so(faq: FaqWorld) -> None:
    create(faq, "如何重设密码", answers=["请打开彩虹页面。"])
    assert [hit["standard_question"] for hit in ask(faq, "彩虹")] == ["如何重设密码"]
    configure(faq, index_mode="question_only", question_index_mode="combined")
    assert work_all("faq_index") == 1
    assert ask(faq, "彩虹") == []
    (hit,) = ask(faq, "密码")
    assert (hit["index_mode"], hit["answers"]) == ("question_only", ["请打开彩虹页面。"])


def test_changing_how_questions_are_found_makes_the_passages_anew(faq: FaqWorld) -> None:
    made = create(faq, "一", similar_questions=["二", "三"])
    create(faq, "四")
    configure(faq, question_index_mode="separate")
    assert work_all("faq_index") == 1
    with unscoped("test"):
        assert Chunk.objects.count() == 4
    assert faq.member.get(faq.path(f"entries/{made['id']}")).json()["data"]["chunk_id"] == made["chunk_id"]
    with space_scope(faq.space.pk):
        assert index_drift(faq.space.pk).total == 0


@pytest.mark.parametrize("word", ["测试", "試験", "시험"])
def test_every_two_characters_of_a_question_are_found(faq: FaqWorld, word: str) -> None:
    create(faq, {"测试": "这是一个测试文档", "試験": "これは試験です", "시험": "이것은 시험 문서입니다"}[word])
    (hit,) = ask(faq, word)
    assert hit["keyword_score"] > 0
    answer = faq.member.post(f"knowledge-bases/{faq.faq.uid}/hybrid-search", {"query_text": word}).json()
    assert (answer["data"][0]["chunk_type"], answer["legs"]["text"]["hits"]) == ("faq", 1)


CHINESE = (
    ("发票抬头写错了怎么改", ("发票名称不对怎么办",), "请在开票后三十天内联系财务部，附上营业执照的照片。"),
    ("传感器离线之后如何恢复", ("设备断线了", "读数一直不更新"), "先检查电源与网线；若指示灯闪红，请长按复位键五秒。"),
    ("員工的帳號被鎖定", ("忘記密碼",), "聯絡資訊中心重設。"),
)


def test_every_two_chinese_characters_that_stand_side_by_side_are_found(faq: FaqWorld) -> None:
    """Of every question and every answer, whatever else is in the base, and written either way."""
    made = {create(faq, standard, similar_questions=list(similar), answers=[answer])["id"]: (standard, *similar, answer)
            for standard, similar, answer in CHINESE}  # fmt: skip
    pairs = {
        (entry, run[at : at + 2])
        for entry, texts in made.items()
        for run in re.findall(r"[\u4e00-\u9fff]+", "|".join(texts))
        for at in range(len(run) - 1)
    }
    assert len(pairs) == 92
    missed = [(entry, pair) for entry, pair in sorted(pairs) if entry not in [hit["id"] for hit in ask(faq, pair)]]
    assert missed == []
    assert [hit["standard_question"] for hit in ask(faq, "锁定")] == ["員工的帳號被鎖定"]


def test_thresholds_counts_and_shapes(faq: FaqWorld) -> None:
    for number in range(12):
        create(faq, f"Question {number} about invoices", answers=[f"Answer {number}"])
    work_all("embed")
    assert len(ask(faq, "invoices")) == 10
    assert len(ask(faq, "invoices", match_count=0, vector_threshold=0)) == 10
    assert len(ask(faq, "invoices", match_count=3)) == 3
    assert len(ask(faq, "invoices", match_count=100_000)) == 12
    assert ask(faq, "zzzz", vector_threshold=0.999) == []
    for wrong in ({}, {"query_text": " "}, {"query_text": "x" * 4001}, {"query_text": "a", "match_count": "many"}):
        refused(faq.member.post(faq.path("search"), wrong))


def test_disabled_entries_are_not_found(faq: FaqWorld) -> None:
    made = create(faq, "Reset the password")
    assert len(ask(faq, "password")) == 1
    faq.member.put(faq.path("entries/fields"), {"by_id": {str(made["id"]): {"is_enabled": False}}})
    assert ask(faq, "password") == []
    assert everywhere(faq, "password").hits == []
    faq.member.put(faq.path("entries/fields"), {"by_id": {str(made["id"]): {"is_enabled": True}}})
    assert len(ask(faq, "password")) == 1


def test_negative_questions_keep_an_entry_out_of_every_search(faq: FaqWorld) -> None:
    create(faq, "如何重设密码", similar_questions=["忘记密码怎么办"], negative_questions=["如何重设路由器密码"])
    work_all("embed")
    assert len(ask(faq, "密码怎么重置")) == 1
    assert ask(faq, " 如何重設路由器密碼？ ") == []
    assert ask(faq, "路由器密码忘了怎么办") == []
    assert everywhere(faq, "路由器密码忘了怎么办").hits == []
    assert len(everywhere(faq, "忘记了密码").hits) == 1
    with space_scope(faq.space.pk):
        document = Document.objects.select_related("kb").get(type="pair")
        told = why_not(actor=faq.member.actor, query="路由器密码忘了怎么办", scope=Scope(), document=document)
    assert [(cause.code, cause.facts) for cause in told.causes] == [("negative", {"question": "如何重设路由器密码"})]


def test_priority_tags_come_first_and_others_not_at_all(faq: FaqWorld) -> None:
    for name, tag in (("Invoice one", "A"), ("Invoice two", "B"), ("Invoice three", "C")):
        create(faq, name, tag_name=tag)
    tags = {row["name"]: row["seq_id"] for row in faq.member.get(f"knowledge-bases/{faq.faq.uid}/tags").json()["data"]["data"]}

    def found(**lists: Any) -> list[str]:
        return [hit["tag_name"] for hit in ask(faq, "invoice", **lists)]

    assert found(first_priority_tag_ids=[tags["B"]]) == ["B"]
    assert found(first_priority_tag_ids=[tags["C"]], second_priority_tag_ids=[tags["A"]]) == ["C", "A"]
    assert sorted(found(first_priority_tag_ids=[999999])) == ["A", "B", "C"]
    assert found(first_priority_tag_ids=[999999], second_priority_tag_ids=[tags["A"]]) == ["A"]
    assert sorted(found(only_recommended=True)) == ["A", "B", "C"]


def test_a_changed_entry_is_found_by_what_it_says_now(faq: FaqWorld) -> None:
    made = create(faq, "Rainbow")
    faq.member.put(faq.path(f"entries/{made['id']}"), body("Thunder", tag_id=made["tag_id"]))
    assert ask(faq, "rainbow") == []
    assert [hit["standard_question"] for hit in ask(faq, "thunder")] == ["Thunder"]
    faq.member.delete(faq.path("entries"), {"ids": [made["id"]]})
    assert ask(faq, "thunder") == []


def test_an_imported_base_is_found_whole(faq: FaqWorld) -> None:
    faq.run_import([{"standard_question": f"问题{n:03d}号", "answers": ["答"]} for n in range(120)])
    assert [hit["standard_question"] for hit in ask(faq, "问题077号", match_count=1)] == ["问题077号"]
    work_all("embed")
    with unscoped("test"):
        assert Document.objects.filter(type="pair", vector_count=1).count() == 120
    with space_scope(faq.space.pk):
        assert index_drift(faq.space.pk).total == 0


def test_a_copy_has_its_own_entries(faq: FaqWorld) -> None:
    made = create(faq, "Rainbow", similar_questions=["Regenbogen"], negative_questions=["Snow"], is_recommended=False, tag_name="T")
    work_all("embed")
    started = faq.admin.post("knowledge-bases/copy", {"source_id": str(faq.faq.uid)})
    assert started.status_code == 200, started.content
    work_all()
    with unscoped("test"):
        copy = Document.objects.exclude(kb=faq.faq).get(type="pair").kb
    (entry,) = faq.entries(copy)
    assert entry["id"] != made["id"]
    same = ("standard_question", "similar_questions", "negative_questions", "answers", "tag_name", "is_recommended", "is_enabled")
    assert {name: entry[name] for name in same} == {name: made[name] for name in same}
    refused(faq.member.post(faq.path("entry", copy), body("regenbogen")))
    assert len(everywhere(faq, "Regenbogen").hits) == 2
    assert faq.member.get(f"knowledge-bases/{copy.uid}").json()["data"]["chunk_count"] == 1


def test_a_base_goes_and_comes_back_with_its_entries(faq: FaqWorld) -> None:
    create(faq, "Rainbow", tag_name="T")
    assert faq.admin.delete(f"knowledge-bases/{faq.faq.uid}").status_code == 200
    assert everywhere(faq, "rainbow").hits == []
    assert faq.admin.post(f"trash/{faq.faq.uid}/restore").status_code == 200
    assert [entry["tag_name"] for entry in faq.entries()] == ["T"]
    assert len(ask(faq, "rainbow")) == 1
    refused(faq.member.post(faq.path("entry"), body("rainbow")))


def test_a_base_that_is_removed_for_good_leaves_no_entry(faq: FaqWorld, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    create(faq, "Rainbow")
    faq.admin.delete(f"knowledge-bases/{faq.faq.uid}")
    work_all("cleanup")
    with unscoped("test"):
        assert (FaqEntry.objects.count(), Document.objects.filter(kb_id=faq.faq.pk).count()) == (0, 0)
