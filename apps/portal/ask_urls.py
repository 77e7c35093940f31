"""Pages of asking: `/s/<space>/ask/...`."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import ask

_ASK = "s/<int:space_id>/ask"
_SESSION = f"{_ASK}/<uuid:session_id>"
_MESSAGE = f"{_SESSION}/messages/<uuid:message_id>"

urlpatterns = [
    path(_ASK, ask.AskView.as_view(), name="ask"),
    path(f"{_ASK}/list", ask.AskListView.as_view(), name="ask-list"),
    path(f"{_ASK}/ideas", ask.AskIdeasView.as_view(), name="ask-ideas"),
    path(f"{_ASK}/clear", ask.AskClearView.as_view(), name="ask-clear"),
    path(_SESSION, ask.AskSessionView.as_view(), name="ask-session"),
    path(f"{_SESSION}/watch", ask.AskWatchView.as_view(), name="ask-watch"),
    path(f"{_SESSION}/export", ask.AskExportView.as_view(), name="ask-export"),
    path(f"{_SESSION}/rename", ask.AskRenameView.as_view(), name="ask-rename"),
    path(f"{_SESSION}/pin", ask.AskPinView.as_view(), name="ask-pin"),
    path(f"{_SESSION}/delete", ask.AskDeleteView.as_view(), name="ask-delete"),
    path(f"{_MESSAGE}/stream", ask.AskStreamView.as_view(), name="ask-stream"),
    path(f"{_MESSAGE}/stop", ask.AskStopView.as_view(), name="ask-stop"),
    path(f"{_MESSAGE}/again", ask.AskAgainView.as_view(), name="ask-again"),
    path(f"{_MESSAGE}/edit", ask.AskEditView.as_view(), name="ask-edit"),
    path(f"{_MESSAGE}/follow", ask.AskFollowView.as_view(), name="ask-follow"),
    path(f"{_MESSAGE}/rate", ask.AskRateView.as_view(), name="ask-rate"),
    path(f"{_MESSAGE}/sources/<int:number>", ask.AskCiteView.as_view(), name="ask-cite"),
]
