"""Shapes of the wiki (contract content 5). Answers are bare objects."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers

from apps.common.api.views import PageQuery
from apps.wiki.models import PageRevision, WikiIssue, WikiPage, WikiProposal
from apps.wiki.selectors import Around, FolderRow, ImportState
from apps.wiki.selectors.overview import BrokenLink, IndexGroup, LintIssue

MAX_VERSION = 2_000_000_000
EDIT_SOURCES = {"person": "user", "system": "pipeline", "connector": "pipeline", "agent": "agent", "revert": "revert"}
SOURCE_TYPES = {"person": "user", "system": "system", "connector": "data_source", "agent": "agent", "revert": "user"}
ISSUE_TYPES = {"contradiction": "contradictory_facts", "stale": "out_of_date", "mixed": "mixed_entities"}
ISSUE_STATUSES = {"open": "pending", "resolved": "resolved", "ignored": "ignored"}
STATUS_OF = {wire: own for own, wire in ISSUE_STATUSES.items()}


class Text(serializers.CharField):
    """A text as it is sent."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"required": False, "allow_blank": True, "trim_whitespace": False, **kwargs})


class Names(serializers.ListField):
    child = serializers.CharField(allow_blank=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"required": False, "allow_null": True, **kwargs})


class PageListQuery(PageQuery):
    page_type = Text(help_text="Several by commas; `manual` stands for pages without a type.")
    status = Text()
    state = Text(help_text="current, source_changed or source_withdrawn.")
    query = Text(help_text="In title, address, other names, summary or text.")
    category_path = Text(help_text="Names of folders, joined by `/`.")
    folder_id = Text(required=False, default=None, allow_null=True, help_text="Present but empty: pages in no folder.")
    category_depth = serializers.IntegerField(required=False, min_value=0, max_value=100)
    sort_by = Text(help_text="title, created_at, updated_at, page_type, wiki_path, sort_order or depth.")
    sort_order = Text(help_text="asc or desc.")


class WikiPageCreateIn(serializers.Serializer[Any]):
    slug = Text(help_text="Without one it is made of the title.")
    title = Text()
    content = Text()
    summary = Text()
    page_type = Text(help_text="summary, entity, concept, index, synthesis, comparison, or nothing for a page made by hand.")
    status = Text(help_text="published, draft or archived.")
    aliases = Names()
    folder_id = Text(allow_null=True)
    editSummary = Text(help_text="What was done, kept with the version.")


class WikiPageUpdateIn(serializers.Serializer[Any]):
    title = Text()
    content = Text()
    summary = Text()
    page_type = Text()
    status = Text()
    aliases = Names()
    version = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_VERSION)
    editSummary = Text(help_text="What was done, kept with the version.")


class WikiMoveIn(serializers.Serializer[Any]):
    slug = serializers.CharField()
    folder_id = Text(allow_null=True, help_text="Empty: in no folder.")


class WikiRenameIn(serializers.Serializer[Any]):
    slug = serializers.CharField()
    new_slug = serializers.CharField()
    version = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_VERSION)


class RevisionQuery(serializers.Serializer[Any]):
    version = serializers.IntegerField(required=False, min_value=1, max_value=MAX_VERSION, help_text="That one alone, with its text.")
    limit = serializers.IntegerField(required=False, default=50, min_value=0, max_value=1_000_000)
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=1_000_000)


class WikiRevertIn(serializers.Serializer[Any]):
    slug = serializers.CharField()
    version = serializers.IntegerField(min_value=1, max_value=MAX_VERSION)


class FolderQuery(serializers.Serializer[Any]):
    parent_id = Text()
    page_types = Text(help_text="By commas. With more than one, empty folders come too.")


class WikiFolderIn(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, trim_whitespace=False)
    parent_id = Text(allow_null=True)


class WikiFolderUpdateIn(serializers.Serializer[Any]):
    name = Text()
    parent_id = Text(allow_null=True)
    move_parent = serializers.BooleanField(required=False, default=False, help_text="Only then `parent_id` counts; empty is the root.")


class IndexQuery(serializers.Serializer[Any]):
    types = Text()
    limit = serializers.IntegerField(required=False, default=50, min_value=0, max_value=1_000_000)
    cursor = Text()


class SearchQuery(serializers.Serializer[Any]):
    q = serializers.CharField()
    limit = serializers.IntegerField(required=False, default=10, min_value=0, max_value=1_000_000)


class IssueQuery(serializers.Serializer[Any]):
    slug = Text()
    status = Text(help_text="pending, resolved or ignored.")


class WikiIssueStatusIn(serializers.Serializer[Any]):
    status = serializers.CharField(help_text="pending, resolved or ignored.")


class ProposalQuery(PageQuery):
    status = Text(help_text="open, accepted, rejected or replaced; empty for all.")


class WikiDecisionIn(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(choices=["accept", "reject"])
    version = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MAX_VERSION)


class NotDeleted:
    def get_deleted_at(self, _row: Any) -> datetime | None:
        return None


def member_of(user: Any) -> dict[str, str] | None:
    return {"id": str(user.pk), "name": user.username} if user is not None else None


class WikiPageOut(NotDeleted, serializers.Serializer[WikiPage]):
    """A page. `state` says how the documents it rests on are, `made_by` how it came to be."""

    id = serializers.UUIDField(source="uid")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    slug = serializers.CharField()
    title = serializers.CharField()
    page_type = serializers.CharField()
    status = serializers.CharField()
    content = serializers.SerializerMethodField()
    summary = serializers.CharField()
    aliases = serializers.ListField(source="alias_names", child=serializers.CharField())
    folder_id = serializers.SerializerMethodField()
    category_path = serializers.SerializerMethodField()
    wiki_path = serializers.SerializerMethodField()
    depth = serializers.SerializerMethodField()
    sort_order = serializers.IntegerField()
    source_refs = serializers.SerializerMethodField()
    chunk_refs = serializers.SerializerMethodField()
    in_links = serializers.SerializerMethodField()
    out_links = serializers.SerializerMethodField()
    page_metadata = serializers.JSONField(source="metadata")
    version = serializers.IntegerField()
    last_edit_source = serializers.SerializerMethodField()
    last_editor_id = serializers.SerializerMethodField()
    state = serializers.CharField()
    made_by = serializers.CharField()
    model_name = serializers.CharField()
    editSummary = serializers.CharField(source="edit_note")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.SerializerMethodField(help_text="Always null: what was deleted is not listed.")

    def _around(self, page: WikiPage) -> Around:
        return self.context.get("around", {}).get(page.pk) or Around()

    def get_content(self, page: WikiPage) -> str:
        return str(self.context.get("contents", {}).get(page.pk, page.content))

    def get_folder_id(self, page: WikiPage) -> str:
        return str(page.folder.uid) if page.folder else ""

    def get_category_path(self, page: WikiPage) -> list[str]:
        return page.folder.path.split("/") if page.folder else []

    def get_wiki_path(self, page: WikiPage) -> str:
        return f"{page.folder.path}/{page.title}" if page.folder else page.title

    def get_depth(self, page: WikiPage) -> int:
        return page.folder.depth if page.folder else 0

    def get_source_refs(self, page: WikiPage) -> list[str]:
        return self._around(page).source_refs

    def get_chunk_refs(self, page: WikiPage) -> list[str]:
        return self._around(page).chunk_refs

    def get_in_links(self, page: WikiPage) -> list[str]:
        return self._around(page).in_links

    def get_out_links(self, page: WikiPage) -> list[str]:
        return self._around(page).out_links

    def get_last_edit_source(self, page: WikiPage) -> str:
        return EDIT_SOURCES[page.source]

    def get_last_editor_id(self, page: WikiPage) -> str:
        return str(page.editor_id or "")


class WikiPageListOut(serializers.Serializer[Any]):
    pages = WikiPageOut(many=True)
    total = serializers.IntegerField()
    page = serializers.IntegerField()
    page_size = serializers.IntegerField()
    total_pages = serializers.IntegerField()


class WikiPagesOut(serializers.Serializer[Any]):
    pages = WikiPageOut(many=True)


class WikiRevisionOut(serializers.Serializer[PageRevision]):
    id = serializers.UUIDField(source="uid")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_base_id = serializers.UUIDField(source="page.kb.uid")
    page_id = serializers.UUIDField(source="page.uid")
    slug = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    page_type = serializers.CharField()
    status = serializers.CharField()
    summary = serializers.CharField()
    aliases = serializers.ListField(child=serializers.CharField())
    edit_source = serializers.SerializerMethodField()
    editor_id = serializers.SerializerMethodField()
    editSummary = serializers.CharField(source="note")
    editorMember = serializers.SerializerMethodField(help_text="{id, name} of who wrote that version; null when nobody did.")
    editorSourceType = serializers.SerializerMethodField(help_text="user, system, data_source or agent.")
    edited_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()

    def get_edit_source(self, revision: PageRevision) -> str:
        return EDIT_SOURCES[revision.source]

    def get_editor_id(self, revision: PageRevision) -> str:
        return str(revision.editor_id or "")

    def get_editorMember(self, revision: PageRevision) -> dict[str, str] | None:
        return member_of(revision.editor)

    def get_editorSourceType(self, revision: PageRevision) -> str:
        return SOURCE_TYPES[revision.source]


class WikiRevisionTextOut(WikiRevisionOut):
    content = serializers.CharField()


class WikiRevisionsOut(serializers.Serializer[Any]):
    revisions = WikiRevisionOut(many=True)
    total = serializers.IntegerField()
    current_version = serializers.IntegerField()


class WikiFolderOut(NotDeleted, serializers.Serializer[FolderRow]):
    id = serializers.UUIDField(source="folder.uid")
    tenant_id = serializers.IntegerField(source="folder.space_id")
    knowledge_base_id = serializers.UUIDField(source="folder.kb.uid")
    parent_id = serializers.SerializerMethodField()
    name = serializers.CharField(source="folder.name")
    path = serializers.CharField(source="folder.path")
    depth = serializers.IntegerField(source="folder.depth")
    sort_order = serializers.IntegerField(source="folder.sort_order")
    created_at = serializers.DateTimeField(source="folder.created_at")
    updated_at = serializers.DateTimeField(source="folder.updated_at")
    deleted_at = serializers.SerializerMethodField(help_text="Always null: what was deleted is not listed.")
    page_count = serializers.IntegerField()
    has_children = serializers.BooleanField()

    def get_parent_id(self, row: FolderRow) -> str:
        return str(row.folder.parent.uid) if row.folder.parent else ""


class WikiFoldersOut(serializers.Serializer[Any]):
    parent_id = serializers.CharField()
    folders = WikiFolderOut(many=True)


class WikiIndexItemOut(serializers.Serializer[WikiPage]):
    slug = serializers.CharField()
    title = serializers.CharField()
    summary = serializers.CharField()
    category_path = serializers.SerializerMethodField()
    wiki_path = serializers.SerializerMethodField()
    depth = serializers.SerializerMethodField()
    sort_order = serializers.IntegerField()

    def get_category_path(self, page: WikiPage) -> list[str]:
        return page.folder.path.split("/") if page.folder else []

    def get_wiki_path(self, page: WikiPage) -> str:
        return f"{page.folder.path}/{page.title}" if page.folder else page.title

    def get_depth(self, page: WikiPage) -> int:
        return page.folder.depth if page.folder else 0


class WikiIndexGroupOut(serializers.Serializer[IndexGroup]):
    type = serializers.CharField()
    total = serializers.IntegerField()
    items = WikiIndexItemOut(many=True)
    next_cursor = serializers.CharField()


class WikiIndexOut(serializers.Serializer[Any]):
    intro = serializers.CharField()
    version = serializers.IntegerField()
    groups = WikiIndexGroupOut(many=True)


class WikiStatsOut(serializers.Serializer[Any]):
    total_pages = serializers.IntegerField()
    pages_by_type = serializers.DictField(child=serializers.IntegerField())
    total_links = serializers.IntegerField()
    orphan_count = serializers.IntegerField()
    recent_updates = WikiPageOut(many=True)
    pending_tasks = serializers.IntegerField()
    pending_issues = serializers.IntegerField()
    is_active = serializers.BooleanField()
    open_proposals = serializers.IntegerField()
    broken_links = serializers.IntegerField()
    sources_changed = serializers.IntegerField()


class WikiLintIssueOut(serializers.Serializer[LintIssue]):
    type = serializers.CharField()
    severity = serializers.CharField()
    page_slug = serializers.CharField()
    target_slug = serializers.CharField()
    description = serializers.CharField()
    auto_fixable = serializers.BooleanField()


class WikiLintOut(serializers.Serializer[Any]):
    knowledge_base_id = serializers.CharField()
    issues = WikiLintIssueOut(many=True)
    health_score = serializers.IntegerField()
    stats = serializers.DictField(child=serializers.IntegerField())
    summary = serializers.CharField()


class WikiMessageOut(serializers.Serializer[Any]):
    message = serializers.CharField()


class WikiFixedOut(WikiMessageOut):
    fixed = serializers.IntegerField()


class WikiImportIn(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True, help_text="A ZIP of Markdown files, with their pictures.")


class WikiImportFailureOut(serializers.Serializer[Any]):
    path = serializers.SerializerMethodField()
    reason = serializers.SerializerMethodField()

    def get_path(self, row: tuple[str, str]) -> str:
        return row[0]

    def get_reason(self, row: tuple[str, str]) -> str:
        return row[1]


class WikiImportStateOut(serializers.Serializer[ImportState]):
    state = serializers.CharField(help_text="none, queued, running, done, failed or cancelled.")
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Pages: created, changed, same, failed.")
    failed = WikiImportFailureOut(many=True)
    file_name = serializers.CharField()


class WikiBrokenLinkOut(serializers.Serializer[BrokenLink]):
    key = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    pages = serializers.SerializerMethodField(help_text="Addresses of the pages that name it.")

    def get_pages(self, link: BrokenLink) -> list[str]:
        return [page.slug for page in link.pages]


class WikiIssueOut(NotDeleted, serializers.Serializer[WikiIssue]):
    """An issue. `kind` says what it is in the portal's own words (contradiction, stale, duplicate, broken_link, missing_source...)."""

    id = serializers.UUIDField(source="uid")
    tenant_id = serializers.IntegerField(source="space_id")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    slug = serializers.CharField(source="page.slug")
    issue_type = serializers.SerializerMethodField(help_text="mixed_entities, contradictory_facts, out_of_date or other.")
    kind = serializers.CharField()
    description = serializers.CharField()
    suspected_knowledge_ids = serializers.ListField(source="document_uids", child=serializers.CharField())
    status = serializers.SerializerMethodField(help_text="pending, resolved or ignored.")
    reported_by = serializers.SerializerMethodField()
    reportedAt = serializers.DateTimeField(source="created_at")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.SerializerMethodField(help_text="Always null: what was deleted is not listed.")

    def get_issue_type(self, issue: WikiIssue) -> str:
        return ISSUE_TYPES.get(issue.kind, "other")

    def get_status(self, issue: WikiIssue) -> str:
        return ISSUE_STATUSES[issue.status]

    def get_reported_by(self, issue: WikiIssue) -> str:
        return issue.reporter or (issue.raiser.username if issue.raiser else EDIT_SOURCES[issue.raised_by])


class WikiProposalOut(serializers.Serializer[WikiProposal]):
    """A change proposed for a page that a person keeps. `draft` holds the fields that would change."""

    id = serializers.UUIDField(source="uid")
    knowledge_base_id = serializers.UUIDField(source="kb.uid")
    slug = serializers.CharField(source="page.slug")
    title = serializers.CharField(source="page.title")
    action = serializers.CharField()
    status = serializers.CharField()
    base_version = serializers.IntegerField()
    current_version = serializers.IntegerField(source="page.version")
    draft = serializers.JSONField()
    note = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    model_name = serializers.CharField()
    proposer = serializers.SerializerMethodField(help_text="{id, name}, or null.")
    decider = serializers.SerializerMethodField(help_text="{id, name}, or null.")
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)

    def get_proposer(self, proposal: WikiProposal) -> dict[str, str] | None:
        return member_of(proposal.proposer)

    def get_decider(self, proposal: WikiProposal) -> dict[str, str] | None:
        return member_of(proposal.decider)


class WikiProposalsOut(serializers.Serializer[Any]):
    proposals = WikiProposalOut(many=True)
    total = serializers.IntegerField()
    page = serializers.IntegerField()
    page_size = serializers.IntegerField()
