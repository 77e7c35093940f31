"""Every deployment, the one-command one included."""

from kbportal.settings.base import *  # noqa: F403
