from apps.moderation.admin import bases, documents, people, searches, sources, spaces, trail, wiki  # noqa: F401
