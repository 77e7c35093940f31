"""Routes of conversations."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.chat.api import asking, suggestions, views

_routes: list[URLPattern] = [
    path("sessions", views.SessionsView.as_view(), name="chat-sessions"),
    path("sessions/batch", views.SessionBatchView.as_view(), name="chat-session-batch"),
    path("sessions/continue-stream/<str:session_id>", asking.ContinueStreamView.as_view(), name="chat-continue"),
    path("sessions/<str:session_id>", views.SessionView.as_view(), name="chat-session"),
    path("sessions/<str:session_id>/messages", views.SessionMessagesView.as_view(), name="chat-session-messages"),
    path("sessions/<str:session_id>/pin", views.SessionPinView.as_view(), name="chat-session-pin"),
    path("sessions/<str:session_id>/generate_title", views.SessionTitleView.as_view(), name="chat-session-title"),
    path("sessions/<str:session_id>/stop", asking.StopView.as_view(), name="chat-stop"),
    path("sessions/<str:session_id>/messages/<str:message_id>/suggestions", suggestions.FollowUpsView.as_view(), name="chat-follow-ups"),
    path("sessions/<str:session_id>/suggestion-events", suggestions.FollowUpEventsView.as_view(), name="chat-follow-up-events"),
    path("agents/<str:agent_id>/suggested-questions", suggestions.SuggestedQuestionsView.as_view(), name="chat-suggested"),
    path("messages/search", views.MessageSearchView.as_view(), name="chat-message-search"),
    path("messages/chat-history-stats", views.ChatStatsView.as_view(), name="chat-stats"),
    path("messages/<str:session_id>/load", views.MessageLoadView.as_view(), name="chat-load"),
    path("messages/<str:session_id>/<str:message_id>", views.MessageView.as_view(), name="chat-message"),
    path("messages/<str:session_id>/<str:message_id>/rating", views.MessageRatingView.as_view(), name="chat-rating"),
    path("knowledge-chat/<str:session_id>", asking.KnowledgeChatView.as_view(), name="knowledge-chat"),
    path("agent-chat/<str:session_id>", asking.AgentChatView.as_view(), name="agent-chat"),
]
upstream: list[URLPattern] = [*_routes]
proxied: list[URLPattern] = [*_routes]
