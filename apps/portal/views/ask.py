"""Asking: the conversation, its list, and what can be done with a question, an answer, a source."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from apps.chat.models import ChatSession, Message
from apps.chat.selectors import (
    citation_get,
    message_get,
    message_list,
    question_count,
    session_get,
    session_list,
    session_version,
)
from apps.chat.services import sessions, turns
from apps.chat.services.follow_ups import follow_ups_make
from apps.common.errors import DomainError, InvalidInput
from apps.common.text import archive_name
from apps.portal.asking.drawing import cited_context, exported, shown
from apps.portal.asking.pages import AskedWith, ideas_context, page_context, talk_context
from apps.portal.asking.stream import drawn
from apps.portal.views.forms import put_error
from apps.portal.web import DialogView, PageView, go, is_htmx

EXPORTED = 2000


def _url(session: ChatSession) -> str:
    return reverse("ask-session", args=[session.space_id, session.uid])


class AskView(PageView):
    """A new conversation; `?base=` chooses a base, `?q=` fills in a question without asking it."""

    actions = {"GET": "chat.read", "POST": "chat.ask"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self.page("portal/ask.html", page_context(self.actor, None, AskedWith.read(request.GET)))

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        asked = AskedWith.read(request.POST)
        try:
            asked.check()
            session = sessions.session_create(actor=self.actor)
            try:
                turns.turn_start(actor=self.actor, session=session, asked=asked.as_asked())
            except DomainError:
                sessions.sessions_delete(actor=self.actor, sessions=[session])
                raise
        except InvalidInput as error:
            context = {**page_context(self.actor, None, asked), "ask_error": str(error.message)}
            return self.fragment_or_page("portal/ask.html", {"composer": "portal/_ask_composer.html"}, context, status=422)
        return go(request, _url(session))


class AskSessionView(PageView):
    """A conversation, its last messages first of all; POST asks on."""

    actions = {"GET": "chat.read", "POST": "chat.ask"}

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        asked = AskedWith.of_session(session, request.GET.get("q", ""))
        context = page_context(self.actor, session, asked, whole="all" in request.GET)
        if "cite" in request.GET:
            context |= self._open(session, request.GET)
        return self.fragment_or_page("portal/ask.html", {"talk": "portal/_ask_talk.html"}, context)

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        asked = AskedWith.read(request.POST)
        try:
            turns.turn_start(actor=self.actor, session=session, asked=asked.as_asked())
        except InvalidInput as error:
            context = {**page_context(self.actor, session, asked), "ask_error": str(error.message)}
            return self.fragment_or_page("portal/ask.html", {"composer": "portal/_ask_composer.html"}, context, status=422)
        if not is_htmx(request):
            return redirect(_url(session))
        context = {**page_context(self.actor, session, AskedWith.of_session(session)), "asked_now": True}
        return render(request, "portal/_ask_asked.html", context)

    def _open(self, session: ChatSession, query: Any) -> dict[str, Any]:
        number = query["cite"]
        message = message_get(actor=self.actor, session=session, message_id=query.get("of", ""))
        passage = citation_get(actor=self.actor, message=message, number=int(number) if number.isdigit() and len(number) < 6 else 0)
        return {"dock_open": True, "cited": True, **cited_context(self.actor, session, message, passage)}


class AskListView(PageView):
    """The list of conversations; `?q=` looks through titles and messages, `?page=` goes on."""

    actions = {"GET": "chat.read"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        current = request.GET.get("current", "")
        context = page_context(self.actor, None, AskedWith(), list_query=request.GET.get("q", "")[:200], current=current)
        return render(request, "portal/_ask_sessions.html", context)


class AskIdeasView(PageView):
    """Questions the chosen bases answer."""

    actions = {"GET": "chat.read"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return render(request, "portal/_ask_ideas.html", ideas_context(self.actor, AskedWith.read(request.GET).bases))


class AskWatchView(PageView):
    """Whether a conversation is as the page shows it (`?seen=`); a page that is behind is told to read it again."""

    actions = {"GET": "chat.read"}

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        if session_version(actor=self.actor, session=session) == request.GET.get("seen"):
            return HttpResponse(status=204)
        response = render(
            request, "portal/_ask_watch.html", {"session": session, "seen": session_version(actor=self.actor, session=session)}
        )
        response["HX-Trigger"] = "kb:talk-changed"
        return response


class AskStreamView(PageView):
    """The answer as it is written, for the browser's own reader of events."""

    actions = {"GET": "chat.read"}

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponseBase:
        session = session_get(actor=self.actor, session_id=session_id)
        message = message_get(actor=self.actor, session=session, message_id=message_id)
        turns.connections_release(actor=self.actor)
        response = StreamingHttpResponse(drawn(self.actor, message, get_language() or "en"), content_type="text/event-stream")
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Accel-Buffering"] = "no"
        return response  # type: ignore[return-value]


class _MessageView(PageView):
    def found(self, session_id: uuid.UUID, message_id: uuid.UUID) -> Message:
        session = session_get(actor=self.actor, session_id=session_id)
        return message_get(actor=self.actor, session=session, message_id=message_id)

    def talk(self, session: ChatSession) -> HttpResponse:
        if not is_htmx(self.request):
            return redirect(_url(session))
        return render(self.request, "portal/_ask_talk.html", talk_context(self.actor, session))


class AskStopView(_MessageView):
    actions = {"POST": "chat.ask"}

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
        message = self.found(session_id, message_id)
        turns.turn_stop(actor=self.actor, message=message)
        return HttpResponse(status=204) if is_htmx(request) else redirect(_url(message.session))


class AskAgainView(_MessageView):
    """Another answer to the question of this one; `force` looks it up whatever the rules say."""

    actions = {"POST": "chat.ask"}

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
        message = self.found(session_id, message_id)
        question = message.parent or message
        chosen = request.POST.get("model")
        turns.turn_again(actor=self.actor, question=question, model_id=chosen, force=True if request.POST.get("force") else None)
        return self.talk(message.session)


class AskFollowView(_MessageView):
    """The questions offered after an answer."""

    actions = {"POST": "chat.ask"}

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
        message = self.found(session_id, message_id)
        follow_ups_make(actor=self.actor, message=message)
        if not is_htmx(request):
            return redirect(_url(message.session))
        row = shown(self.actor, message.session, [message])[0]
        row.follow_ups = row.follow_ups or []
        return render(request, "portal/_ask_follow.html", {"row": row, "session": message.session, "space_id": space_id})


class AskRateView(_MessageView):
    actions = {"POST": "chat.manage"}

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
        message = self.found(session_id, message_id)
        rating = request.POST.get("rating", "")
        turns.message_rate(actor=self.actor, message=message, rating="" if rating == message.rating else rating)
        if not is_htmx(request):
            return redirect(_url(message.session))
        row = shown(self.actor, message.session, [message])[0]
        return render(request, "portal/_ask_actions.html", {"row": row, "session": message.session, "space_id": space_id})


class AskCiteView(_MessageView):
    """The passage behind a mark, in the dock; without script the conversation with the dock open."""

    actions = {"GET": "chat.read"}

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID, number: int) -> HttpResponse:
        message = self.found(session_id, message_id)
        passage = citation_get(actor=self.actor, message=message, number=number)
        if not is_htmx(request):
            return redirect(f"{_url(message.session)}?cite={number}&of={message.uid}")
        return render(request, "portal/_ask_source.html", cited_context(self.actor, message.session, message, passage))


class AskExportView(PageView):
    actions = {"GET": "chat.read"}

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        rows = shown(self.actor, session, message_list(actor=self.actor, session=session, limit=EXPORTED))
        response = HttpResponse(exported(session, rows), content_type="text/markdown; charset=utf-8")
        name = archive_name(f"{session.title or _('Conversation')}.md")
        response["Content-Disposition"] = f"attachment; filename=\"conversation.md\"; filename*=UTF-8''{quote(name)}"
        return response


class TitleForm(forms.Form):
    title = forms.CharField(label=gettext_lazy("Title"), required=False)


class EditForm(forms.Form):
    text = forms.CharField(label=gettext_lazy("Question"), required=False, widget=forms.Textarea(attrs={"rows": 4}))


class AskRenameView(DialogView):
    actions = {"GET": "chat.manage", "POST": "chat.manage"}
    template = "portal/_ask_rename.html"

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        return self._form(session, TitleForm(initial={"title": session.title}))

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        form = TitleForm(request.POST)
        if not form.is_valid():
            return self._form(session, form, status=422)
        try:
            if not form.cleaned_data["title"].strip():
                raise InvalidInput(_("Give the conversation a title."), field="title")
            sessions.session_update(actor=self.actor, session=session, title=form.cleaned_data["title"])
        except InvalidInput as error:
            put_error(form, error)
            return self._form(session, form, status=422)
        return self.done(_("Renamed"), back=_url(session))

    def _form(self, session: ChatSession, form: TitleForm, status: int = 200) -> HttpResponse:
        return self.show(_("Rename the conversation"), {"form": form, "session": session}, status=status, back=_url(session))


class AskEditView(DialogView):
    actions = {"GET": "chat.ask", "POST": "chat.ask"}
    template = "portal/_ask_edit.html"

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
        message = self._question(session_id, message_id)
        return self._form(message, EditForm(initial={"text": message.content}))

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
        message = self._question(session_id, message_id)
        form = EditForm(request.POST)
        if not form.is_valid():
            return self._form(message, form, status=422)
        try:
            turns.turn_edit(actor=self.actor, question=message, text=form.cleaned_data["text"])
        except DomainError as error:
            if isinstance(error, InvalidInput):
                error.field = "text"
            put_error(form, error)
            return self._form(message, form, status=422)
        return go(request, _url(message.session))

    def _question(self, session_id: uuid.UUID, message_id: uuid.UUID) -> Message:
        session = session_get(actor=self.actor, session_id=session_id)
        message = message_get(actor=self.actor, session=session, message_id=message_id)
        return message.parent if message.parent is not None else message

    def _form(self, message: Message, form: EditForm, status: int = 200) -> HttpResponse:
        later = question_count(actor=self.actor, session=message.session, after=message)
        context = {"form": form, "message": message, "session": message.session, "later": later}
        return self.show(_("Ask it differently"), context, status=status, back=_url(message.session))


class AskPinView(PageView):
    actions = {"POST": "chat.manage"}

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        sessions.session_pin(actor=self.actor, session=session, is_pinned=session.pinned_at is None)
        if not is_htmx(request):
            return redirect(_url(session))
        response = HttpResponse(status=204)
        response["HX-Trigger"] = "kb:changed"
        return response


class AskDeleteView(DialogView):
    actions = {"GET": "chat.manage", "POST": "chat.manage"}
    template = "portal/_ask_delete.html"

    def get(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        count = question_count(actor=self.actor, session=session)
        context = {"session": session, "count": count, "action": reverse("ask-delete", args=[space_id, session_id])}
        return self.show(_("Delete this conversation?"), context, back=_url(session))

    def post(self, request: HttpRequest, space_id: int, session_id: uuid.UUID) -> HttpResponse:
        session = session_get(actor=self.actor, session_id=session_id)
        sessions.sessions_delete(actor=self.actor, sessions=[session])
        return go(request, reverse("ask", args=[space_id]))


class AskClearView(DialogView):
    """All conversations of one's own."""

    actions = {"GET": "chat.manage", "POST": "chat.manage"}
    template = "portal/_ask_delete.html"

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        context = {"all": True, "count": session_list(actor=self.actor).count(), "action": reverse("ask-clear", args=[space_id])}
        return self.show(_("Delete all your conversations?"), context, back=reverse("ask", args=[space_id]))

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        sessions.sessions_delete(actor=self.actor, sessions=None)
        return go(request, reverse("ask", args=[space_id]))
