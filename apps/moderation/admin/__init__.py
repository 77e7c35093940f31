from apps.moderation.admin import bases, documents, pairs, people, searches, sources, spaces, trail  # noqa: F401
