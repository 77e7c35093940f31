"""Question pairs in search: normal form of questions, negatives that keep an entry out, and which question was met."""

from __future__ import annotations

import numpy as np
import pytest

from apps.llm.services import deployment_model_id, embedder
from apps.retrieval.pairs import PairFacts, nearest_question, question_key, token_share, vetoed_by


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("如何重设密码", "如何重设密码？", True),
        ("如何重设密码", "如何重設密碼", True),
        ("ＡＰＩ限流", "api 限流", True),
        ("How  do I\nlog in", "how do i log in?", True),
        ("C++", "C", False),
        ("C#", "C", False),
        ("log in", "login", False),
        ("1 2", "12", False),
        ("???", "!!!", False),
        ("如何重设密码", "如何重设账号", False),
    ],
)
def test_questions_are_the_same_in_normal_form(one: str, other: str, same: bool) -> None:
    assert (question_key(one) == question_key(other)) is same


def test_the_share_of_tokens_is_between_nothing_and_all() -> None:
    assert token_share("重设密码", "重设密码") == 1.0
    assert token_share("重设密码", "weather") == 0.0
    assert token_share("", "weather") == 0.0


CASES = [
    (
        ("如何重设密码", "忘记密码怎么办"),
        ("如何重设路由器密码",),
        {"怎么重设路由器的密码", "路由器密码忘了怎么办", "如何重置无线路由器密码", "如何重设路由器密码？"},
        {"密码怎么重置", "我忘记了登录密码", "重设密码"},
    ),
    (("怎么申请退款", "退款流程是什么"), ("怎么申请换货",), {"如何申请换货", "换货怎么申请", "我要换货"}, {"我想退款", "退款要多久", "如何申请退款"}),
    (
        ("How do I reset my password?", "I forgot my password"),
        ("How do I reset the router?",),
        {"reset my router", "how can I reset the wifi router", "router reset instructions", "HOW DO I RESET THE ROUTER"},
        {"how to reset password", "forgot password", "change my password"},
    ),
    (
        ("年假有几天",),
        ("病假有几天", "产假有几天"),
        {"病假几天", "产假一共多少天", "请病假可以请几天"},
        {"年假多少天", "年休假有几天", "员工年假天数"},
    ),
    (("API 限流是多少",), ("API 密钥在哪里申请",), {"哪里申请API密钥", "api key 怎么申请"}, {"API 每分钟可以调用几次", "接口限流规则"}),
    (
        ("What are the opening hours?",),
        ("What are the opening hours on holidays?",),
        {"opening hours on public holidays", "are you open on holidays"},
        {"when do you open", "opening hours", "opening times on weekdays"},
    ),
]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(("own", "negatives", "out", "kept"), CASES)
def test_a_negative_question_keeps_out_what_means_it(
    own: tuple[str, ...], negatives: tuple[str, ...], out: set[str], kept: set[str]
) -> None:
    """With the packaged embedder: a veto for every near miss, and none for the pair's own questions in other words."""
    model = embedder(deployment_model_id())
    assert model is not None
    pair = PairFacts(own[0], own, negatives)
    texts = [*own, *negatives]
    vectors = dict(zip(texts, model.passages(texts), strict=True))

    def veto(asked: str) -> str:
        vector = np.asarray(model.query(asked))
        return vetoed_by(asked, pair, {text: [(vector, other)] for text, other in vectors.items()})

    assert {asked for asked in (*out, *kept) if veto(asked)} == out
    assert all(veto(asked) in negatives for asked in out)


@pytest.mark.parametrize(("own", "negatives", "out", "kept"), CASES)
def test_without_vectors_no_entry_is_lost_and_most_near_misses_are_kept_out(
    own: tuple[str, ...], negatives: tuple[str, ...], out: set[str], kept: set[str]
) -> None:
    pair = PairFacts(own[0], own, negatives)
    assert not [asked for asked in kept if vetoed_by(asked, pair)]
    assert len([asked for asked in out if vetoed_by(asked, pair)]) >= len(out) - 1


def test_the_nearest_question_is_named() -> None:
    assert nearest_question("密码忘记了怎么办", ("如何重设密码", "忘记密码怎么办")) == "忘记密码怎么办"
