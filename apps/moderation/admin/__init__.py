from apps.moderation.admin import bases, documents, people, searches, sources, spaces, trail  # noqa: F401
