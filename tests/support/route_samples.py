"""What the permission matrix and the query budgets send to each route.

Path parameters are filled by name from `world.ids["home"]` (so a new kind of id is added in `tests/support/world.py`, `_furnish`); a route
whose parameter means something else says so in KWARGS. A body that the route accepts is in BODIES, under "METHOD name-of-route"; a route
without one gets an empty body. Pages get forms, REST gets JSON, GET a query string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.portal.forms.metadata import digest
from tests.support.world import PASSWORD, World

NO_METADATA, NO_SUMMARY = digest({}), digest("")  # what a form of an untouched document was opened with

Make = Callable[[World], dict[str, Any]]

#: name of a route -> parameters that `world.ids` has under another name, or none at all
KWARGS: dict[str, Make] = {
    **{
        f"{family}document-version-{what}": lambda world: {"number": 1}
        for family in ("", "api:", "organization:", "personal:")
        for what in ("download", "restore", "diff")
        if (family, what) != ("", "download")  # the page links to the route of the API
    },
    "wiki-version": lambda world: {"version": 1},
    "ask-cite": lambda world: {"number": 1},
    "source-connect": lambda world: {"kind": "rss"},
    "source-try": lambda world: {"kind": "rss"},
    "my-invitation-answer": lambda world: {"answer": "accept"},
    "api:model-credential": lambda world: {"field": "api_key"},
    **{f"{family}:chat-suggested": lambda world: {"agent_id": "builtin-quick-answer"} for family in ("api", "organization", "personal")},
    **{f"{family}:source-credential": lambda world: {"field": "credentials"} for family in ("api", "organization", "personal")},
}

BODIES: dict[str, Make] = {
    "GET api:evaluation": lambda world: {"task_id": str(world.ids["home"]["run_id"])},
    "POST api:evaluation": lambda world: {
        "dataset_id": str(world.ids["home"]["set_id"]),
        "knowledge_base_id": str(world.ids["home"]["kb_id"]),
    },
    "POST api:evaluation-sets": lambda world: {"name": "More", "questions": [{"question": "Which pump?"}]},
    "POST api:evaluation-set-draw": lambda world: {"knowledge_base_id": str(world.ids["home"]["kb_id"]), "name": "Drawn"},
    "POST api:evaluation-runs": lambda world: {
        "set_id": str(world.ids["home"]["set_id"]),
        "knowledge_base_id": str(world.ids["home"]["kb_id"]),
    },
    "GET api:evaluation-compare": lambda world: {"with": str(world.ids["home"]["run_id"])},
    "GET evaluation-compare": lambda world: {"with": str(world.ids["home"]["run_id"])},
    "POST evaluation-set-new": lambda world: {"base": str(world.ids["home"]["kb_id"]), "name": "Drawn"},
    "POST evaluation-run-new": lambda world: {"set": str(world.ids["home"]["set_id"]), "base": str(world.ids["home"]["kb_id"])},
    "POST api:auth-register": lambda world: {"username": "fresh", "email": "fresh@example.com", "password": PASSWORD},
    "POST api:auth-login": lambda world: {"email": "member@example.com", "password": PASSWORD},
    "POST api:auth-refresh": lambda world: {"refreshToken": "nonsense"},
    "POST api:auth-change-password": lambda world: {"old_password": PASSWORD, "new_password": "brand-new-8"},
    "POST api:auth-invitation-lookup": lambda world: {"token": world.ids["home"]["token"]},
    "POST api:auth-register-by-invite": lambda world: {
        "token": world.ids["home"]["token"],
        "username": "fresh",
        "email": "fresh@example.com",
        "password": PASSWORD,
    },
    "PUT api:auth-preferences": lambda world: {"last_active_tenant_id": 0},
    "POST api:auth-switch-tenant": lambda world: {"tenant_id": world.home.pk},
    "POST api:tenants": lambda world: {"name": "Another"},
    "PUT api:tenant": lambda world: {"name": "Renamed"},
    "POST api:members": lambda world: {"email": "founder@example.com", "role": "contributor"},
    "PUT api:member": lambda world: {"role": "contributor"},
    "POST api:invitations": lambda world: {"email": "later@example.com", "role": "contributor"},
    "POST api:invite-links": lambda world: {"role": "contributor"},
    "POST api:api-keys": lambda world: {"name": "bot", "full_access": True},
    "PUT api:api-key": lambda world: {"name": "bot", "full_access": True},
    "POST api:my-invitation-accept-token": lambda world: {"token": world.ids["home"]["token"]},
    "POST space-new": lambda world: {"name": "Another"},
    "POST space-settings": lambda world: {"name": "Renamed"},
    "POST space-delete": lambda world: {"typed_name": world.home.name},
    "POST member-role": lambda world: {"role": "admin"},
    "POST invitations-page": lambda world: {"by": "link", "role": "member"},
    "POST api:models": lambda world: {"name": "m", "type": "Embedding", "parameters": {"base_url": "http://93.184.216.34/v1"}},
    "PUT api:model": lambda world: {"description": "What it is for"},
    "PUT api:model-credentials": lambda world: {"api_key": "sk-12345678"},
    "POST api:model-debug": lambda world: {"input": "pump"},
    "POST api:embedding-test": lambda world: {"source": "remote", "modelName": "m", "baseUrl": "http://127.0.0.1:9/v1"},
    "POST api:chat-check": lambda world: {"source": "remote", "modelName": "m", "baseUrl": "http://127.0.0.1:9/v1"},
    "POST api:rerank-check": lambda world: {"source": "remote", "modelName": "m", "baseUrl": "http://127.0.0.1:9/v1"},
    "POST keys-page": lambda world: {"name": "bot", "access": "full"},
    "POST profile": lambda world: {"username": "Somebody"},
    "POST appearance": lambda world: {"language": "en", "theme": "dark"},
}

#: bodies that name contents, by the ids of the space the route is asked in; "METHOD route" without a prefix for REST, with "page" for pages
CONTENTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "POST base-list": lambda ids: {"name": "Fresh"},
    "POST base-copy": lambda ids: {"source_id": str(ids["kb_id"]), "target_id": str(ids["other_kb_id"])},
    "POST base-trash-restore": lambda ids: {"ids": [str(ids["document_id"])]},
    "POST base-trash-purge": lambda ids: {"ids": [str(ids["document_id"])]},
    "PUT base": lambda ids: {"name": "Renamed"},
    "PUT base-settings": lambda ids: {"documentSplitting": {"chunkSize": 300}},
    "PUT image-info": lambda ids: {"image_info": "[]"},
    "PUT chunk": lambda ids: {"content": "The pump is replaced every six years."},
    "POST chunk-revert": lambda ids: {"revision": 0},
    "PUT chunk-questions": lambda ids: {"question": "How often is the pump replaced?"},
    "DELETE chunk-questions": lambda ids: {"question_id": "none"},
    "POST chunker-preview": lambda ids: {"text": "One. Two."},
    "PUT document": lambda ids: {"title": "Renamed"},
    "POST document-batch-delete": lambda ids: {"kb_id": str(ids["kb_id"]), "ids": [str(ids["document_id"])]},
    "POST document-batch-download": lambda ids: {"ids": [str(ids["document_id"])]},
    "POST document-batch-reparse": lambda ids: {"kb_id": str(ids["kb_id"]), "ids": [str(ids["document_id"])]},
    "POST document-folder": lambda ids: {"kb_id": str(ids["kb_id"]), "knowledge_ids": [str(ids["document_id"])], "folder_path": "a"},
    "POST document-manual": lambda ids: {"title": "Note", "content": "Text."},
    "PUT document-manual-update": lambda ids: {"title": "Note", "content": "Text."},
    "POST document-move": lambda ids: {
        "knowledge_ids": [str(ids["document_id"])],
        "source_kb_id": str(ids["kb_id"]),
        "target_kb_id": str(ids["other_kb_id"]),
        "mode": "reuse_vectors",
    },
    "PUT document-tags": lambda ids: {"updates": {str(ids["document_id"]): [str(ids["tag_id"])]}},
    "POST document-url": lambda ids: {"url": "https://example.com/page"},
    "PUT folders": lambda ids: {"from": "a", "to": "b"},
    "PUT chat-session": lambda ids: {"title": "Renamed"},
    "DELETE chat-session-batch": lambda ids: {"ids": [str(ids["session_id"])]},
    "POST chat-stop": lambda ids: {"message_id": str(ids["message_id"])},
    "GET chat-continue": lambda ids: {"message_id": str(ids["message_id"])},
    "PUT chat-rating": lambda ids: {"rating": "up"},
    "POST chat-follow-up-events": lambda ids: {"suggestion_set_id": f"of-{ids['message_id']}", "question_id": "q1", "event_type": "click"},
    "POST chat-message-search": lambda ids: {"query": "pump"},
    "POST knowledge-chat": lambda ids: {"query": "How often is the pump replaced?", "knowledge_base_ids": [str(ids["kb_id"])]},
    "POST agent-chat": lambda ids: {"query": "How often is the pump replaced?", "knowledge_base_ids": [str(ids["kb_id"])]},
    "POST page ask": lambda ids: {"text": "How often is the pump replaced?"},
    "POST page ask-session": lambda ids: {"text": "How often is the pump replaced?"},
    "POST page ask-rename": lambda ids: {"title": "Renamed"},
    "POST page ask-edit": lambda ids: {"text": "How often is the seal replaced?"},
    "POST page ask-rate": lambda ids: {"rating": "up"},
    "POST hybrid-search": lambda ids: {"query_text": "pump"},
    "POST knowledge-search": lambda ids: {"query": "pump", "knowledge_base_ids": [str(ids["kb_id"])]},
    "POST faq-entries": lambda ids: {"mode": "append", "entries": [{"standard_question": "Which pump?", "answers": ["The red one."]}]},
    "DELETE faq-entries": lambda ids: {"ids": [ids["entry_id"]]},
    "POST faq-entry-create": lambda ids: {"standard_question": "Which pump?", "answers": ["The red one."]},
    "PUT faq-entry": lambda ids: {"standard_question": "Which pump?", "answers": ["The red one."]},
    "POST faq-similar": lambda ids: {"similar_questions": ["When is the pump changed?"]},
    "PUT faq-fields": lambda ids: {"by_id": {str(ids["entry_id"]): {"is_enabled": False}}},
    "PUT faq-tags": lambda ids: {"updates": {str(ids["entry_id"]): None}},
    "POST faq-search": lambda ids: {"query_text": "pump"},
    "PUT faq-import-display": lambda ids: {"display_status": "close"},
    "POST wiki-pages": lambda ids: {"slug": "plant/valve", "title": "Valve"},
    "PUT wiki-page": lambda ids: {"content": "The pump is replaced every seven years."},
    "PUT wiki-move-page": lambda ids: {"slug": ids["page_slug"], "folder_id": str(ids["wiki_folder_id"])},
    "PUT wiki-rename-page": lambda ids: {"slug": ids["page_slug"], "new_slug": "plant/pump"},
    "POST wiki-revert": lambda ids: {"slug": ids["page_slug"], "version": 1},
    "POST wiki-folders": lambda ids: {"name": "People"},
    "PUT wiki-folder": lambda ids: {"name": "Crew"},
    "GET wiki-search": lambda ids: {"q": "pump"},
    "PUT wiki-issue-status": lambda ids: {"status": "resolved"},
    "POST wiki-proposal": lambda ids: {"decision": "accept"},
    "POST page wiki-new": lambda ids: {"title": "Valve"},
    "POST page wiki-edit": lambda ids: {"title": "Pump", "content": "Text."},
    "GET page wiki-move": lambda ids: {"ids": str(ids["wiki_page_id"])},
    "POST page wiki-move": lambda ids: {"ids": str(ids["wiki_page_id"]), "folder": str(ids["wiki_folder_id"])},
    "POST page wiki-rename": lambda ids: {"slug": "plant/pump"},
    "POST page wiki-folder-new": lambda ids: {"name": "People"},
    "POST page wiki-folder-edit": lambda ids: {"name": "Crew"},
    "GET page wiki-level": lambda ids: {"folder": str(ids["wiki_folder_id"])},
    "POST page wiki-links": lambda ids: {"keys": "nowhere", "do": "plain"},
    "POST page wiki-proposal-page": lambda ids: {"do": "accept"},
    "POST page wiki-issue-page": lambda ids: {"status": "resolved"},
    "POST page faq-new": lambda ids: {"standard_question": "Which pump?", "answer": "The red one."},
    "POST page faq-edit": lambda ids: {"standard_question": "Which pump?", "answer": "The red one."},
    "POST page faq-bulk": lambda ids: {"ids": str(ids["entry_id"])},
    "GET page faq-bulk-tag": lambda ids: {"ids": str(ids["entry_id"])},
    "POST page faq-bulk-tag": lambda ids: {"ids": str(ids["entry_id"])},
    "GET page faq-bulk-delete": lambda ids: {"ids": str(ids["entry_id"])},
    "POST page faq-bulk-delete": lambda ids: {"ids": str(ids["entry_id"])},
    "GET sources": lambda ids: {"kb_id": str(ids["kb_id"])},
    "POST sources": lambda ids: {"knowledge_base_id": str(ids["kb_id"]), "type": "rss", "name": "Feed"},
    "PUT source": lambda ids: {"name": "Renamed"},
    "POST source-check-credentials": lambda ids: {"type": "rss", "credentials": {"feed_urls": "http://127.0.0.1:9/feed.xml"}},
    "PUT source-credentials": lambda ids: {"credentials": {"auth_headers": "X-Key: 1"}},
    "POST source-ancestors": lambda ids: {"resource_ids": []},
    "POST source-held": lambda ids: {"decision": "keep"},
    "POST tag-list": lambda ids: {"name": "valves"},
    "PUT tag": lambda ids: {"name": "valves"},
    "GET document-batch": lambda ids: {"ids": str(ids["document_id"])},
    "GET document-search": lambda ids: {"keyword": "pump"},
    "GET page bulk-delete": lambda ids: {"ids": str(ids["document_id"])},
    "GET page bulk-folder": lambda ids: {"ids": str(ids["document_id"])},
    "GET page bulk-move": lambda ids: {"ids": str(ids["document_id"])},
    "POST page bulk-move": lambda ids: {"ids": str(ids["document_id"]), "target": str(ids["other_kb_id"]), "mode": "reuse_vectors"},
    "GET page bulk-zip": lambda ids: {"ids": str(ids["document_id"])},
    "POST page folder-new": lambda ids: {"name": "manuals"},
    "POST page folder-delete": lambda ids: {"folder": "empty"},
    "GET page bulk-reparse": lambda ids: {"ids": str(ids["document_id"])},
    "GET page bulk-tags": lambda ids: {"ids": str(ids["document_id"])},
    "POST page source-connect": lambda ids: {"name": "News", "full_text": "auto"},
    "POST page source-try": lambda ids: {"feed_urls": "http://127.0.0.1:9/feed.xml", "full_text": "auto"},
    "POST page source-connection": lambda ids: {"name": "News", "full_text": "auto"},
    "POST page source-scope": lambda ids: {"which": "all"},
    "POST page source-schedule": lambda ids: {
        "every": "daily",
        "at": "02:30",
        "day": "1",
        "sync_mode": "incremental",
        "conflict_strategy": "skip",
        "deletion_policy": "hold",
    },
    "POST page source-held": lambda ids: {"all": "1", "decision": "keep"},
    "POST page base-create": lambda ids: {"name": "Fresh"},
    "POST page base-clear": lambda ids: {"confirm": "Handbook"},
    "POST page base-copy": lambda ids: {"way": "contents", "target": str(ids["other_kb_id"])},
    "POST page base-delete": lambda ids: {"confirm": "Handbook", "typed_name": "Handbook", "name": "Handbook"},
    "POST page bulk-delete": lambda ids: {"ids": str(ids["document_id"])},
    "POST page bulk-folder": lambda ids: {"ids": str(ids["document_id"]), "folder_path": "a"},
    "POST page bulk-reparse": lambda ids: {"ids": str(ids["document_id"])},
    "POST page upload-confirm": lambda ids: {"files": '[{"path": "a.md", "size": 3}]'},
    "POST page bulk-tags": lambda ids: {"ids": str(ids["document_id"])},
    "POST page document-rename": lambda ids: {"title": "Renamed"},
    "POST page document-new": lambda ids: {"title": "Note", "content": "Text."},
    "POST page document-metadata": lambda ids: {"name": "year", "kind": "number", "value": "2024", "seen": NO_METADATA},
    "POST page document-summary-edit": lambda ids: {"description": "About pumps.", "seen": NO_SUMMARY},
    "POST page passage-questions": lambda ids: {"question": "How often is the pump replaced?"},
    "POST page passage-edit": lambda ids: {"content": "The pump is replaced every year.", "revision": 0},
    "POST page passage-revert": lambda ids: {"revision": 0},
    "POST page passage-state": lambda ids: {"enabled": "0", "revision": 0},
}


def values_for(world: World, name: str, whose: str = "home") -> dict[str, Any]:
    """Values of path parameters. `whose`: "home", "foreign", or "unknown" for ids that exist nowhere."""
    if whose == "home" and name.startswith("personal:"):
        whose = "personal"
    values = world.unknown if whose == "unknown" else world.ids[whose]
    return {**values, **(KWARGS[name](world) if name in KWARGS else {})}


def body_for(world: World, method: str, name: str) -> dict[str, Any]:
    """The body; both knowledge families share those of `contents:` with the upstream one."""
    prefix, _colon, rest = name.rpartition(":")
    ids = values_for(world, name)
    if prefix and f"{method} {rest}" in CONTENTS:
        return CONTENTS[f"{method} {rest}"](ids)
    if not prefix and f"{method} page {name}" in CONTENTS:
        return CONTENTS[f"{method} page {name}"](ids)
    made = BODIES.get(f"{method} {name}")
    return made(world) if made else {}
