"""The state of a document list as its address says it: filters, folder, order, page. Every link of the list is made here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote, urlencode

from django.http import QueryDict

from apps.common.text import folder_path
from apps.knowledge.models import ParseStatus
from apps.knowledge.selectors import DocumentFilters

PAGE_SIZE = 50
MAX_PAGE = 100_000
Sort = Literal["updated_at", "created_at", "file_name"]
SORTS: tuple[Sort, ...] = ("updated_at", "created_at", "file_name")
STATUSES = tuple(status.value for status in ParseStatus if status != ParseStatus.DELETING)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """`folder` None: every folder; "": what lies in none. Anything unreadable in the address counts as not said."""

    q: str = ""
    status: str = ""
    type: str = ""
    tags: tuple[str, ...] = ()
    folder: str | None = None
    sort: Sort = "updated_at"
    ascending: bool = False
    page: int = 1

    @classmethod
    def read(cls, query: QueryDict) -> ListQuery:
        sort = query.get("sort", "")
        status = query.get("status", "")
        page = query.get("page", "1")
        return cls(
            q=query.get("q", "").strip()[:200],
            status=status if status in STATUSES else "",
            type=query.get("type", "").strip().lower()[:32],
            tags=tuple(dict.fromkeys(tag for tag in query.getlist("tag")[:20] if tag)),
            folder=folder_path(query.get("folder", "")) if "folder" in query else None,
            sort=next((known for known in SORTS if known == sort), "updated_at"),
            ascending=query.get("order") == "asc",
            page=min(MAX_PAGE, max(1, int(page[:18]))) if page.isascii() and page.isdigit() else 1,
        )

    @property
    def narrowed(self) -> bool:
        """Whether something besides the folder hides documents."""
        return bool(self.q or self.status or self.type or self.tags)

    def filters(self) -> DocumentFilters:
        """For the selector. A search inside a folder looks below it as well."""
        return DocumentFilters(
            tag_ids=self.tags,
            keyword=self.q,
            file_type=self.type,
            parse_status=self.status,
            folder_path=self.folder,
            folder_recursive=bool(self.folder) and self.narrowed,
            sort_by=self.sort,
            sort_order="asc" if self.ascending else "desc",
        )

    def pairs(self) -> list[tuple[str, Any]]:
        pairs: list[tuple[str, Any]] = []
        if self.folder is not None:
            pairs.append(("folder", self.folder))
        pairs += [(name, value) for name, value in (("q", self.q), ("status", self.status), ("type", self.type)) if value]
        pairs += [("tag", tag) for tag in self.tags]
        if self.sort != "updated_at":
            pairs.append(("sort", self.sort))
        if self.ascending:
            pairs.append(("order", "asc"))
        if self.page > 1:
            pairs.append(("page", self.page))
        return pairs

    def href(self, address: str = "", **changes: Any) -> str:
        """The address of this list with changes; any change but of the page goes back to page 1."""
        if changes and "page" not in changes:
            changes["page"] = 1
        pairs = (replace(self, **changes) if changes else self).pairs()
        return f"{address}?{urlencode(pairs)}" if pairs else address or "?"

    @property
    def hidden(self) -> list[tuple[str, Any]]:
        """What the search field's form has to carry on."""
        return [(name, value) for name, value in self.pairs() if name not in ("q", "page")]

    @property
    def query_string(self) -> str:
        return self.href()

    @property
    def folder_quoted(self) -> str:
        return quote(self.folder or "")

    def sorted_by(self, sort: Sort) -> dict[str, Any]:
        """Changes that sort by a column: its natural direction first, the other on the second press."""
        natural = sort == "file_name"
        return {"sort": sort, "ascending": not self.ascending if self.sort == sort else natural}

    def with_tag(self, tag: str) -> dict[str, Any]:
        """Changes that put a tag on or take it off."""
        tags = tuple(each for each in self.tags if each != tag) if tag in self.tags else (*self.tags, tag)
        return {"tags": tags}
