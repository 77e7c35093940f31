"""Settings by environment: `DJANGO_SETTINGS_MODULE` may name another of these modules; the default is dev or prod by `KB_DEBUG`."""

from kbportal import env

if env.DEBUG:
    from kbportal.settings.dev import *  # noqa: F403
else:
    from kbportal.settings.prod import *  # noqa: F403
