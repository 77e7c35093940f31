"""Whether a base has a wiki."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.knowledge.models import KnowledgeBase


def has_wiki(base: KnowledgeBase) -> bool:
    """Whether the wiki is turned on in the settings of a base."""
    return bool((base.indexing_strategy or {}).get("wiki_enabled")) and base.type != KnowledgeBase.Type.FAQ


def check_wiki(base: KnowledgeBase) -> None:
    """Raises: InvalidInput when the base has no wiki (contract content 5)."""
    if not has_wiki(base):
        raise InvalidInput(_("This knowledge base has no wiki. An admin can turn it on in its settings."), code="wiki_off", api_code=1000)
