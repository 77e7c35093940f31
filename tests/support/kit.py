"""A space with a base, files in, and the worker's work done in this process: for tests below the doors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.files.base import ContentFile

from apps.common.actor import Actor, Role
from apps.common.jobs.claims import claim_next
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.services import Arrival, base_create, document_upload
from apps.spaces.models import Space


@dataclass
class Kit:
    """`actor` is an admin of `space`; the base is empty to begin with."""

    space: Space
    actor: Actor
    base: KnowledgeBase

    def upload(self, name: str, data: bytes | str, **arrival: Any) -> Document:
        """The document row of a fresh upload."""
        content = ContentFile(data.encode() if isinstance(data, str) else data, name=name)
        with space_scope(self.space.pk):
            stored = document_upload(actor=self.actor, base=self.base, upload=content, file_name=name, arrival=Arrival(**arrival))
            return stored.document

    def reload(self, document: Document) -> Document:
        with unscoped("tests look at every space"):
            return Document.objects.select_related("kb").get(pk=document.pk)


def make_kit(name: str = "Team", **base: Any) -> Kit:
    space = Space.objects.create(name=name, kind=Space.Kind.ORGANIZATION)
    actor = Actor(kind="user", space_id=space.pk, space_kind="organization", role=Role.ADMIN)
    with space_scope(space.pk):
        return Kit(space, actor, base_create(actor=actor, values={"name": "Base", **base}))


def work_all(*kinds: str, limit: int = 200) -> int:
    """Do what a worker would: every runnable row of these kinds (all of them by default) until none is left; how many."""
    done = 0
    names = kinds or tuple(job_kinds.names())
    while done < limit:
        claims = [claim for claim in (claim_next(job_kinds.get(name)) for name in names) if claim is not None]
        if not claims:
            return done
        for claim in claims:
            work(claim)
        done += len(claims)
    raise AssertionError(f"work did not end after {limit} runs")
