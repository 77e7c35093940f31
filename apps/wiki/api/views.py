"""The wiki over REST (contract content 5): pages, revisions, folders. Answers are bare, refusals flat."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from apps.common.api.errors import handle, handle_flat
from apps.common.api.views import ApiView, Op
from apps.common.errors import InvalidInput
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get
from apps.wiki import selectors, services
from apps.wiki.api import serializers as s
from apps.wiki.drafts import PageChange, PageDraft
from apps.wiki.linking import contents_of
from apps.wiki.models import WikiFolder, WikiPage

TAGS = ("wiki",)
WRITES = (400, 401, 403, 404, 409)
EXAMPLE = {"slug": "entity/acme", "title": "Acme", "content": "Acme makes [[entity/pumps|pumps]].", "aliases": ["Acme Ltd"]}


class WikiView(ApiView):
    """Refusals are `{"error": "..."}`; those about the base itself have the envelope, as the guard before these routes answers them."""

    guarding = False

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        return handle if self.guarding else _flat

    def base(self, kb_id: str) -> KnowledgeBase:
        self.guarding = True
        base = base_get(actor=self.actor, kb_id=kb_id)
        self.guarding = False
        selectors.check_wiki(base)
        return base

    def folder(self, base: KnowledgeBase, folder_id: str | None, field: str = "folder_id") -> WikiFolder | None:
        return selectors.folder_get(actor=self.actor, base=base, folder_id=folder_id, field=field) if folder_id else None

    def shaped(self, pages: list[WikiPage]) -> None:
        self.render_context = {"around": selectors.around(actor=self.actor, pages=pages), "contents": contents_of(pages)}

    def page_out(self, base: KnowledgeBase, page: WikiPage) -> Response:
        """The page as it is now."""
        fresh = selectors.page_get(actor=self.actor, base=base, page_id=page.uid)
        self.shaped([fresh])
        return self.render(fresh)


def _flat(error: Exception, context: dict[str, Any]) -> Response:
    response = handle_flat(error, context)
    if response.data.get("reason") == "wiki_off":  # clients look for these words
        response.data["error"] = f"error code: 1000, error message: Wiki feature is not enabled. {response.data['error']}"
    return response


def words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


class WikiPagesView(WikiView):
    operations = {
        "GET": Op("wiki.read", "List the pages of a wiki", query=s.PageListQuery, reply=s.WikiPageListOut, shape="bare", tags=TAGS),
        "POST": Op(
            "wiki.write",
            "Make a page",
            body=s.WikiPageCreateIn,
            reply=s.WikiPageOut,
            shape="bare",
            status=201,
            errors=WRITES,
            invalid_code=1000,
            description="The address is put into normal form: lower case, `-` for spaces, Chinese kept.",
            examples={"page": EXAMPLE},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        rows = selectors.pages_filtered(actor=self.actor, base=base, filters=_filters(asked))
        total, size = rows.count(), asked["page_size"]
        pages = list(rows[(asked["page"] - 1) * size : asked["page"] * size])
        self.shaped(pages)
        return self.render(
            {"pages": pages, "total": total, "page": asked["page"], "page_size": size, "total_pages": math.ceil(total / size)}
        )

    def post(self, request: Any, wiki_kb_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        draft = PageDraft(
            title=body.get("title", ""),
            content=body.get("content", ""),
            summary=body.get("summary", ""),
            page_type=body.get("page_type", ""),
            slug=body.get("slug", ""),
            aliases=tuple(body.get("aliases") or ()),
            folder=self.folder(base, body.get("folder_id")),
            status=body.get("status") or WikiPage.Status.PUBLISHED,
        )
        page = services.page_create(actor=self.actor, base=base, draft=draft, note=body.get("editSummary", ""))
        return self.page_out(base, page)


def _filters(asked: dict[str, Any]) -> selectors.PageFilters:
    kinds = asked.get("page_type", "")
    return selectors.PageFilters(
        types=words(kinds),
        status=asked.get("status", ""),
        state=asked.get("state", ""),
        query=asked.get("query", "").strip(),
        folder_id=asked.get("folder_id"),
        category_path=tuple(part for part in asked.get("category_path", "").split("/") if part.strip()),
        category_depth=asked.get("category_depth"),
        sort_by=asked.get("sort_by", ""),
        ascending=asked.get("sort_order", "") == "asc",
    )


class WikiPageView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "Read a page",
            reply=s.WikiPageOut,
            shape="bare",
            description="By the address it has, or one it had before. Links in `content` are under the addresses their pages have now.",
            tags=TAGS,
        ),
        "PUT": Op(
            "wiki.write",
            "Change a page",
            body=s.WikiPageUpdateIn,
            reply=s.WikiPageOut,
            shape="bare",
            errors=WRITES,
            invalid_code=1000,
            description="What is left out stays. With `version`, a page changed meanwhile is refused with its `current_version`.",
            examples={"change": {"content": "Acme makes pumps.", "version": 3, "editSummary": "Shorter"}},
            tags=TAGS,
        ),
        "DELETE": Op("wiki.write", "Put a page into the trash", shape="bare", status=204, tags=TAGS),
    }

    def get(self, request: Any, wiki_kb_id: str, page_slug: str) -> Response:
        base = self.base(wiki_kb_id)
        page = selectors.page_at(actor=self.actor, base=base, slug=page_slug)
        self.shaped([page])
        return self.render(page)

    def put(self, request: Any, wiki_kb_id: str, page_slug: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        page = selectors.page_at(actor=self.actor, base=base, slug=page_slug)
        if body.get("page_type") == "":
            raise InvalidInput(_("Leave the type out to keep it; it cannot be emptied."), field="page_type", api_code=1000)
        aliases = body.get("aliases")
        change = PageChange(
            **{name: body.get(name) for name in ("title", "content", "summary", "page_type", "status")},
            aliases=None if aliases is None else tuple(aliases),
        )
        note, version = body.get("editSummary", ""), body.get("version") or None
        return self.page_out(base, services.page_change(actor=self.actor, page=page, change=change, expected_version=version, note=note))

    def delete(self, request: Any, wiki_kb_id: str, page_slug: str) -> Response:
        base = self.base(wiki_kb_id)
        services.page_delete(actor=self.actor, page=selectors.page_at(actor=self.actor, base=base, slug=page_slug))
        return self.render(None)


class WikiMovePageView(WikiView):
    operations = {
        "PUT": Op(
            "wiki.write", "Put a page into a folder", body=s.WikiMoveIn, reply=s.WikiPageOut, shape="bare", invalid_code=1000, tags=TAGS
        )
    }

    def put(self, request: Any, wiki_kb_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        page = selectors.page_at(actor=self.actor, base=base, slug=body["slug"])
        services.page_move(actor=self.actor, page=page, folder=self.folder(base, body.get("folder_id")))
        return self.page_out(base, page)


class WikiRenamePageView(WikiView):
    operations = {
        "PUT": Op(
            "wiki.write",
            "Give a page another address",
            body=s.WikiRenameIn,
            reply=s.WikiPageOut,
            shape="bare",
            errors=WRITES,
            invalid_code=1000,
            description="The address it had goes on leading to it, and so do links.",
            tags=TAGS,
        )
    }

    def put(self, request: Any, wiki_kb_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        page = selectors.page_at(actor=self.actor, base=base, slug=body["slug"])
        version = body.get("version") or None
        return self.page_out(base, services.page_rename(actor=self.actor, page=page, slug=body["new_slug"], expected_version=version))


class WikiRevisionsView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "List the earlier versions of a page, or read one",
            query=s.RevisionQuery,
            reply=s.WikiRevisionsOut,
            shape="bare",
            invalid_code=1000,
            description="Newest first, without their texts and without the current one. With `version`: that one alone, with `content`.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, wiki_kb_id: str, page_slug: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        page = selectors.page_at(actor=self.actor, base=base, slug=page_slug)
        if number := asked.get("version"):
            return Response(s.WikiRevisionTextOut(selectors.revision_get(actor=self.actor, page=page, version=number)).data)
        rows = selectors.revision_list(actor=self.actor, page=page).defer("content").select_related("page__kb", "editor")
        start, limit = asked["offset"], min(asked["limit"] or 50, 200)
        return self.render({"revisions": list(rows[start : start + limit]), "total": rows.count(), "current_version": page.version})


class WikiRevertView(WikiView):
    operations = {
        "POST": Op(
            "wiki.write",
            "Bring an earlier version of a page back",
            body=s.WikiRevertIn,
            reply=s.WikiPageOut,
            shape="bare",
            errors=WRITES,
            invalid_code=1000,
            description="As a new version; those between stay.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, wiki_kb_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        page = selectors.page_at(actor=self.actor, base=base, slug=body["slug"])
        return self.page_out(base, services.page_revert(actor=self.actor, page=page, version=body["version"]))


class WikiFoldersView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "List the folders in a folder",
            query=s.FolderQuery,
            reply=s.WikiFoldersOut,
            shape="bare",
            description="`page_count` counts pages of the whole subtree that are not archived, of the types asked for.",
            tags=TAGS,
        ),
        "POST": Op(
            "wiki.write",
            "Make a folder",
            body=s.WikiFolderIn,
            reply=s.WikiFolderOut,
            shape="bare",
            status=201,
            errors=WRITES,
            invalid_code=1000,
            examples={"folder": {"name": "People"}},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        parent = self.folder(base, asked.get("parent_id"), "parent_id")
        types = selectors.clean_types(words(asked.get("page_types", "")))
        rows = selectors.folder_level(actor=self.actor, base=base, parent=parent, types=types)
        return self.render({"parent_id": str(parent.uid) if parent else "", "folders": rows})

    def post(self, request: Any, wiki_kb_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        parent = self.folder(base, body.get("parent_id"), "parent_id")
        folder = services.folder_create(actor=self.actor, base=base, name=body["name"], parent=parent)
        return self.render(selectors.folder_row(actor=self.actor, folder=folder))


class WikiFolderView(WikiView):
    operations = {
        "PUT": Op(
            "wiki.write",
            "Rename or move a folder",
            body=s.WikiFolderUpdateIn,
            reply=s.WikiFolderOut,
            shape="bare",
            errors=WRITES,
            invalid_code=1000,
            tags=TAGS,
        ),
        "DELETE": Op("wiki.write", "Remove an empty folder", shape="bare", status=204, errors=WRITES, tags=TAGS),
    }

    def put(self, request: Any, wiki_kb_id: str, wiki_folder_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        folder = selectors.folder_get(actor=self.actor, base=base, folder_id=wiki_folder_id)
        parent = self.folder(base, body.get("parent_id"), "parent_id") if body["move_parent"] else None
        changed = services.folder_update(
            actor=self.actor, folder=folder, name=body.get("name"), parent=parent, move_parent=body["move_parent"]
        )
        return self.render(selectors.folder_row(actor=self.actor, folder=changed))

    def delete(self, request: Any, wiki_kb_id: str, wiki_folder_id: str) -> Response:
        base = self.base(wiki_kb_id)
        services.folder_delete(actor=self.actor, folder=selectors.folder_get(actor=self.actor, base=base, folder_id=wiki_folder_id))
        return self.render(None)
