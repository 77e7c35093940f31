from apps.moderation.admin import bases, documents, pairs, people, searches, sources, spaces, trail, wiki  # noqa: F401
