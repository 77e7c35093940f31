"""ASGI entry point: `uvicorn kbportal.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbportal.settings")
_django = get_asgi_application()

from django.conf import settings  # noqa: E402 - settings and models are there from here on

from apps.common.bodies import BodyLimit  # noqa: E402
from apps.knowledge.api.multipart import ROOM_FOR_FIELDS  # noqa: E402
from apps.knowledge.intake import too_large  # noqa: E402

application = BodyLimit(_django, settings.MAX_FILE_SIZE + ROOM_FOR_FIELDS, too_large)
