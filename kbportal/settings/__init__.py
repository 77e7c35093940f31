"""Settings by environment: `DJANGO_SETTINGS_MODULE` may name another of these modules; the default is dev or prod by `KB_DEBUG`.

Only when this package itself is asked for: a module in it that changes the environment first (test) must be the first to read it.
"""

import os

if os.environ.get("DJANGO_SETTINGS_MODULE", __name__) == __name__:
    from kbportal import env

    if env.DEBUG:
        from kbportal.settings.dev import *  # noqa: F403
    else:
        from kbportal.settings.prod import *  # noqa: F403
