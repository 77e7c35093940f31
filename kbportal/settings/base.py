"""Everything that is the same in every shape; the values that differ come from `kbportal.env`."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.utils.translation import gettext_lazy as _

from apps.common.logs import logging_config
from kbportal import databases, env, storages
from kbportal.admin_look import UNFOLD  # noqa: F401 - a setting

# Before any numeric library is imported: two threads in libgomp plus a fork hang for ever, and one is faster on busy cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

BASE_DIR = env.BASE_DIR
DATA_DIR = env.DATA_DIR
for folder in ("", "files", "index", "broker", "run", "logs", "tmp"):
    (DATA_DIR / folder).mkdir(parents=True, exist_ok=True)

SECRET_KEY = env.secret_key()
DEBUG = env.DEBUG
ALLOWED_HOSTS = env.ALLOWED_HOSTS
CSRF_TRUSTED_ORIGINS = env.TRUSTED_ORIGINS
KB_BASE_URL = env.BASE_URL
VERSION = "0.1.0"

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "apps.moderation.admin_app.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_htmx",
    "django_celery_beat",
    "apps.common",
    "apps.accounts",
    "apps.spaces",
    "apps.llm",
    "apps.knowledge",
    "apps.retrieval",
    "apps.ingestion",
    "apps.faq",
    "apps.sources",
    "apps.wiki",
    "apps.chat",
    "apps.evaluation",
    "apps.portal",
    "apps.moderation",
    "apps.operations",
]

MIDDLEWARE = [
    "apps.common.middleware.RequestIdMiddleware",
    "apps.common.measures.MeasureMiddleware",
    "apps.common.middleware.NulMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "apps.common.middleware.ContentSecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "apps.common.middleware.LanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "apps.spaces.middleware.ActorMiddleware",
    "apps.common.middleware.DomainErrorMiddleware",
]

ROOT_URLCONF = "kbportal.urls"
ASGI_APPLICATION = "kbportal.asgi.application"
WSGI_APPLICATION = "kbportal.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.portal.context.shell",
            ],
        },
    }
]


try:
    _database = (
        databases.postgres(env.DATABASE_URL, pooled=env.DATABASE_CONNECTIONS)
        if env.DATABASE_URL
        else databases.sqlite(DATA_DIR / "kbportal.sqlite3")
    )
except ValueError as error:
    raise SystemExit(f"KB_DATABASE_URL is not usable: {error}; leave it empty for SQLite.") from None
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# People
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "apps.accounts.passwords.PasswordPolicy"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/account/login/"
ACCOUNT_ADAPTER = "apps.portal.account.AccountAdapter"
ACCOUNT_FORMS = {"signup": "apps.portal.forms.account.SignupForm", "login": "apps.portal.forms.account.LoginForm"}
ALLAUTH_TRUSTED_PROXY_COUNT = env.PROXIES
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "optional"
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # nobody gets mail because a stranger typed their address
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/5m/key", "login": env.THROTTLE_SIGN_IN + "/ip", "signup": "20/m/ip"}
REGISTRATION = env.REGISTRATION

_mail = urlsplit(env.EMAIL_URL)
if _mail.scheme == "smtp":
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST = _mail.hostname or "localhost"
    EMAIL_PORT = _mail.port or 25
    EMAIL_HOST_USER = unquote(_mail.username or "")
    EMAIL_HOST_PASSWORD = unquote(_mail.password or "")
    EMAIL_USE_TLS = parse_qs(_mail.query).get("tls") == ["1"]
    EMAIL_USE_SSL = parse_qs(_mail.query).get("ssl") == ["1"]
else:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
DEFAULT_FROM_EMAIL = env.EMAIL_FROM
EMAIL_TIMEOUT = 20

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "kb_session"
CSRF_COOKIE_NAME = "kb_csrf"
CSRF_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.SECURE_COOKIES
CSRF_FAILURE_VIEW = "apps.portal.views.errors.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "SAMEORIGIN"
if env.TRUSTED_ORIGINS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Language and time
LANGUAGE_CODE = env.LANGUAGE
LANGUAGES = [("zh-hans", _("Simplified Chinese")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_NAME = "kb_language"
TIME_ZONE = env.TIME_ZONE
USE_TZ = True
USE_I18N = True

# Static files and uploads
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [("dist", BASE_DIR / "static" / "dist")] if (BASE_DIR / "static" / "dist").is_dir() else []
try:
    _files = (
        storages.objects(env.STORAGE_URL, access_key=env.S3_ACCESS_KEY, secret_key=env.S3_SECRET_KEY)
        if env.STORAGE_URL
        else storages.folder(DATA_DIR / "files")
    )
except ValueError as error:
    raise SystemExit(f"KB_STORAGE_URL is not usable: {error}; leave it empty for a folder.") from None
STORAGES = {
    "default": _files,
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
MAX_FILE_SIZE = env.MAX_FILE_SIZE_MB * 1024 * 1024
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FILES = 1000
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
TEMP_DIR = DATA_DIR / "tmp"
FILE_UPLOAD_TEMP_DIR = None  # the handler knows the folder
FILE_UPLOAD_HANDLERS = ["apps.common.uploads.UploadHandler"]
DISK_WARN_BYTES = int(env.DISK_WARN_GB * 1024**3)
DISK_REFUSE_BYTES = int(env.DISK_REFUSE_GB * 1024**3)

# REST
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.common.api.auth.ActorAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["apps.common.api.auth.ActionDeclared"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.common.api.parsers.StrictJSONParser", "rest_framework.parsers.MultiPartParser"],
    "DEFAULT_SCHEMA_CLASS": "apps.common.api.schema.OperationSchema",
    "DEFAULT_THROTTLE_CLASSES": ["apps.common.api.throttle.ActorThrottle"],
    "EXCEPTION_HANDLER": "apps.common.api.errors.handle",
    "UNAUTHENTICATED_USER": None,
    "NUM_PROXIES": env.PROXIES,  # otherwise anybody could write themselves a new address for every attempt
    "DEFAULT_THROTTLE_RATES": {"actor": env.THROTTLE_API, "sign-in": env.THROTTLE_SIGN_IN},
}
SPECTACULAR_SETTINGS = {
    "TITLE": "kbportal",
    "DESCRIPTION": "Knowledge bases, documents, passages and search. Three prefixes serve the same views: `/api/v1`, "
    "`/v1/knowledge` (personal space) and `/v1/tenants/{tenant_id}/knowledge` (an organization). Roles of the contract map onto two: "
    "owner and admin are `admin`, contributor is `member`; `viewer` is a read-only grant of API keys.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": ["apps.common.api.auth.Public"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": r"/(api/)?v1/",
    "SORT_OPERATIONS": True,
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
    },
    "SECURITY": [{"bearer": []}, {"apiKey": []}],
    "ENUM_NAME_OVERRIDES": {},
}

# Limits of requests are counted here: for all processes together in Redis, else in the memory of the one web process
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "apps.common.cache.SharedCache", "LOCATION": env.BROKER_URL, "KEY_PREFIX": "kbportal"}
    if env.BROKER_URL.startswith(("redis://", "rediss://"))
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

# Background work
BROKER_FOLDER = DATA_DIR / "broker"
CELERY_BROKER_URL = env.BROKER_URL or "folder://localhost"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = (
    {"visibility_timeout": 3600}
    if env.BROKER_URL
    else {
        "data_folder_in": str(BROKER_FOLDER / "queue"),
        "data_folder_out": str(BROKER_FOLDER / "queue"),
        "control_folder": str(BROKER_FOLDER / "control"),
        "polling_interval": 0.1,
    }
)
if not env.BROKER_URL:
    for folder in ("queue", "control"):
        (BROKER_FOLDER / folder).mkdir(parents=True, exist_ok=True)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_TASK_DEFAULT_QUEUE = "maintenance"
CELERY_TASK_CREATE_MISSING_QUEUES = True
CELERY_BEAT_SCHEDULER = "apps.common.jobs.schedule:Scheduler"
CELERY_BEAT_SCHEDULE = {
    "reconcile": {"task": "apps.retrieval.tasks.reconcile_all", "schedule": 3600.0},
    "retrieval-log": {"task": "apps.retrieval.tasks.trim_log", "schedule": 3600.0},
    "storage-figures": {"task": "apps.moderation.tasks.measure_storage", "schedule": 6 * 3600.0},
    "forget-passwords": {"task": "apps.ingestion.tasks.forget_passwords", "schedule": 600.0},
    "housekeeping": {"task": "apps.common.jobs.tasks.housekeeping", "schedule": 900.0},
    "conversations": {"task": "apps.chat.tasks.upkeep", "schedule": 60.0},
    "trash": {"task": "apps.knowledge.tasks.trash_upkeep", "schedule": 3600.0},
    "vectors": {"task": "apps.ingestion.tasks.vectors_upkeep", "schedule": 1800.0},
    "sources": {"task": "apps.sources.tasks.start_due", "schedule": 20.0},
    "sources-history": {"task": "apps.sources.tasks.sources_upkeep", "schedule": 3600.0},
}
RETRIEVAL_LOG_DAYS = env.RETRIEVAL_LOG_DAYS
ACTIVITY_DAYS = env.ACTIVITY_DAYS
RETRIEVAL_LOG_FLUSH_S: float | None = 0.5  # None: rows wait until somebody calls for them
CHAT_INLINE = False  # answers are written in threads of their own; True: while who asked waits (tests)
WORKER_QUEUES = env.WORKER_QUEUES
PARSE_CONCURRENCY = env.PARSE_CONCURRENCY
PARSE_MEMORY_BYTES = env.PARSE_MEMORY_MB * 1024 * 1024
PARSE_TIMEOUT_S = env.PARSE_TIMEOUT_S
OCR_ENABLED = env.OCR
FETCH_ALLOW = env.FETCH_ALLOW
SOURCE_FOLDERS = env.SOURCE_FOLDERS

# Models
EMBEDDER = env.EMBEDDER
EMBEDDING_ENDPOINT: dict[str, Any] = {
    "base_url": env.EMBEDDING_BASE_URL,
    "api_key": env.EMBEDDING_API_KEY,
    "model": env.EMBEDDING_MODEL,
    "dimension": env.EMBEDDING_DIMENSION,
}
MODEL_ALLOW = env.MODEL_ALLOW
ENCRYPTION_KEYS = env.ENCRYPTION_KEYS
EMBED_REMOTE_CONCURRENCY = env.EMBED_REMOTE_CONCURRENCY
EMBED_PATIENCE_S = env.EMBED_PATIENCE_S
VECTORS_KEEP_DAYS = env.VECTORS_KEEP_DAYS
TRASH_DAYS = env.TRASH_DAYS
SEARCH_BACKEND = env.SEARCH_BACKEND or ("postgres" if env.DATABASE_URL else "sqlite")
if SEARCH_BACKEND == "postgres" and not env.DATABASE_URL:
    raise SystemExit("KB_SEARCH_BACKEND=postgres needs KB_DATABASE_URL: the index stands in the portal's own database.")

METRICS_TOKEN = env.METRICS_TOKEN
LOGGING = logging_config(env.LOG_FORMAT, env.LOG_LEVEL)
