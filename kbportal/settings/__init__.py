"""Settings by environment: `DJANGO_SETTINGS_MODULE` may name another of these modules; the default is dev or prod by `KB_DEBUG`."""

import os

# Whoever names a module of this package gets that one alone: a test run must not open, let alone write to, the portal's data folder.
if os.environ.get("DJANGO_SETTINGS_MODULE", __name__) == __name__:
    from kbportal import env

    if env.DEBUG:
        from kbportal.settings.dev import *  # noqa: F403
    else:
        from kbportal.settings.prod import *  # noqa: F403
