from apps.moderation.admin import bases, documents, people, searches, spaces, trail  # noqa: F401
