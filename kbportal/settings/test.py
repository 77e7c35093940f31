"""The test run: its own data folder, fast hashes, no throttles; otherwise what production runs, database engine included."""

import os
import tempfile
from pathlib import Path

from apps.common.temp import folder_in

# removed when the run ends, or by the next one when it is killed
os.environ["KB_DATA_DIR"] = os.environ.get("KB_TEST_DATA_DIR") or str(folder_in(Path(tempfile.gettempdir()), prefix="kb-test-"))
os.environ.setdefault("KB_SECRET_KEY", "only-for-the-test-run-and-long-enough-for-hs256")
os.environ.setdefault("KB_DISK_WARN_GB", "0")
os.environ.setdefault("KB_DISK_REFUSE_GB", "0")

from kbportal.settings.base import *  # noqa: F403
from kbportal.settings.base import DATA_DIR, DATABASES, REST_FRAMEWORK, STORAGES

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
STORAGES = {**STORAGES, "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
REST_FRAMEWORK = {**REST_FRAMEWORK, "DEFAULT_THROTTLE_CLASSES": [], "DEFAULT_THROTTLE_RATES": {"actor": None, "sign-in": None}}
ACCOUNT_RATE_LIMITS = False  # type: ignore[assignment]
DATABASES["default"].setdefault("TEST", {})
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"]["NAME"] = str(Path(DATA_DIR) / "test.sqlite3")  # a file, not memory: production's engine and locks
WHITENOISE_AUTOREFRESH = True  # every test client loads the middleware anew; reading the whole static folder each time took most of the run
RETRIEVAL_LOG_FLUSH_S = None  # a thread of its own would not see the transaction of a test
CHAT_INLINE = True  # the same holds for the thread of an answer
