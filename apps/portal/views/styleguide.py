"""The style guide: every component in its states, for people who build pages."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language

from apps.portal.styleguide import sample_context


@login_not_required
def styleguide(request: HttpRequest) -> HttpResponse:
    return render(request, "portal/styleguide.html", sample_context(get_language() or "en"))
