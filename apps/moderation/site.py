"""The moderators' admin site: one door that asks for a moderator, lifts the tenant filter for the page, and nothing else."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern
from unfold.sites import UnfoldAdminSite

from apps.common.actor import Actor, Role
from apps.common.scope import unscoped


class ModeratorSite(UnfoldAdminSite):
    """`is_staff` is what makes a moderator; everyone else is sent to the sign-in page or refused."""

    index_template = "moderation/dashboard.html"

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """SECURITY: the filter is lifted after the site has asked who it is, and closed again once the page is rendered."""

        @wraps(view)
        def everywhere(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            with unscoped("moderator admin"):
                answer = view(request, *args, **kwargs)
                if isinstance(answer, SimpleTemplateResponse) and not answer.is_rendered:
                    answer.render()
                return answer

        return super().admin_view(everywhere, cacheable)

    def extra_urls(self) -> list[URLPattern]:
        from apps.moderation.urls import pages

        return pages(self)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        from apps.moderation.selectors.dashboard import dashboard

        return super().index(request, {**(extra_context or {}), **dashboard(actor=moderator(request))})


def moderator(request: Any, space_id: int | None = None, *, reason: str = "") -> Actor:
    """The signed-in moderator as an actor, in a space if one is given: services act, and activity says who it was."""
    return Actor(
        kind="moderator",
        user_id=request.user.pk,
        space_id=space_id,
        role=Role.ADMIN if space_id else None,
        language=request.user.language,
        reason=reason,
        is_moderator=True,
    )
