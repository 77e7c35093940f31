"""A space with a signed-in person and documents that went through the real pipeline, for tests of pages that read and search."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from typing import Any

from django.test import Client

from apps.accounts.models import User
from apps.common.actor import Actor, Role
from apps.common.scope import space_scope
from apps.ingestion.parsed import read_parsed
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import Arrival, document_write
from apps.spaces.models import Membership
from tests.support.kit import Kit, make_kit, work_all

#: What the reader draws as the shape of a block instead of as text.
MARKUP = re.compile(r"^#{1,6} |^\|[-| :]+\|?$|^\s*(?:[-*+]|\d+[.)]) |^> ?|^\s*(?:```|~~~).*$|(?<!\\)\||\\(?=[|\\])", re.MULTILINE)


class Library(Kit):
    """`client` is an admin's browser in English, `member` a member's; `add` gives a document that can be found."""

    client: Client
    member: Client

    @classmethod
    def make(cls, **base: Any) -> Library:
        kit = make_kit("Team", **base)
        made = cls(kit.space, kit.actor, kit.base)
        made.client, made.member = made.person("ada", "admin"), made.person("mia", "member")
        user = User.objects.get(username="ada")
        made.actor = Actor(kind="user", user_id=user.pk, space_id=kit.space.pk, space_kind="organization", role=Role.ADMIN)
        return made

    def person(self, name: str, role: str) -> Client:
        user = User.objects.create_user(f"{name}@example.com", "pw", username=name, language="en")
        Membership.objects.create(space=self.space, user=user, role=role)
        client = Client()
        client.force_login(user)
        return client

    def add(self, name: str, data: bytes | str, *, vectors: bool = False, **arrival: Any) -> Document:
        document = self.upload(name, data, **arrival)
        work_all("parse", *(["embed"] if vectors else []))
        return self.reload(document)

    def write(self, title: str, content: str) -> Document:
        with space_scope(self.space.pk):
            document = document_write(actor=self.actor, base=self.base, title=title, content=content, status="publish", arrival=Arrival())
        work_all("parse")
        return self.reload(document)

    def chunks(self, document: Document) -> list[Chunk]:
        with space_scope(self.space.pk):
            return list(Chunk.objects.filter(document=document, chunk_type="text").order_by("chunk_index"))

    def chunk_with(self, document: Document, words: str) -> Chunk:
        return next(chunk for chunk in self.chunks(document) if words in chunk.content)

    def text(self, document: Document) -> str:
        parsed = read_parsed(document)
        assert parsed is not None
        return str(parsed["text"])

    def url(self, document: Document, tail: str = "") -> str:
        return f"/s/{self.space.pk}/documents/{document.uid}/{tail}"

    def page(self, url: str, **query: Any) -> str:
        answer = self.client.get(url, query)
        assert answer.status_code == 200, answer.content[:2000]
        return str(answer.content.decode())


class Runs(HTMLParser):
    """The runs of a reader's page: (start, end, shown text, is it part of the chosen passage, numbers of its passages)."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, int, str, bool, str]] = []
        self._open: list[Any] | None = None
        self._depth = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        classes = (values.get("class") or "").split()
        if self._open is not None:
            self._depth += 1
        elif tag == "span" and "run" in classes:
            self._open = [int(values["data-s"] or 0), int(values["data-e"] or 0), "", "is-on" in classes, values.get("data-c") or ""]
            self._depth = 0

    def handle_endtag(self, tag: str) -> None:
        if self._open is None:
            return
        if self._depth:
            self._depth -= 1
            return
        self.found.append(tuple(self._open))  # type: ignore[arg-type]
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self._open[2] += data


def chosen_text(html: str, text: str) -> str:
    """What is highlighted, each character proved to be the one at its place in the parsed text."""
    runs = Runs(html).found
    for start, end, shown, _on, _names in runs:
        assert shown == text[start:end], f"{shown!r} is shown for {text[start:end]!r}"
    return "".join(shown for _start, _end, shown, on, _names in runs if on)


def bare(text: str) -> str:
    """A span of parsed text without the marks of its blocks and without blanks: what must be highlighted of it."""
    return "".join(MARKUP.sub("", text).split())


def pdf_of(*pages: str) -> bytes:
    from reportlab.pdfgen import canvas

    out = io.BytesIO()
    sheet = canvas.Canvas(out)
    for page in pages:
        for at, line in enumerate(page.split("\n")):
            sheet.drawString(72, 740 - 20 * at, line)
        sheet.showPage()
    sheet.save()
    return out.getvalue()


def workbook_of(**sheets: list[list[Any]]) -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)  # type: ignore[arg-type]
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def slides_of(*slides: tuple[str, str]) -> bytes:
    from pptx import Presentation

    deck = Presentation()
    for title, body in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = body
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()
