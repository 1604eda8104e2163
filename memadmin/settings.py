"""Django settings. Values that an operator may change come from the environment: `memadmin.variables` lists them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import platformdirs
from csp.constants import NONE, SELF

from memadmin import environment

PACKAGE_DIR = Path(__file__).resolve().parent
CHECKOUT_DIR = PACKAGE_DIR.parent
IS_CHECKOUT = (CHECKOUT_DIR / "manage.py").exists()
# In the wheel the templates and static files travel inside the package.
ASSETS_DIR = CHECKOUT_DIR if IS_CHECKOUT else PACKAGE_DIR / "assets"

DATA_DIR = environment.data_folder(
    "MEMADMIN_DATA_DIR", CHECKOUT_DIR / ".memadmin" if IS_CHECKOUT else platformdirs.user_data_path("memadmin")
)

DEBUG = environment.yes_or_no("MEMADMIN_DEBUG")
SECRET_KEY = environment.secret_key("MEMADMIN_SECRET_KEY", kept=DATA_DIR / "secret-key")
# Values signed or encrypted with an earlier key stay readable.
SECRET_KEY_FALLBACKS = environment.words("MEMADMIN_OLD_SECRET_KEYS")
ALLOWED_HOSTS = environment.hosts("MEMADMIN_ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = environment.origins("MEMADMIN_TRUSTED_ORIGINS")
IS_HTTPS = environment.yes_or_no("MEMADMIN_HTTPS")
IS_BEHIND_PROXY = environment.yes_or_no("MEMADMIN_BEHIND_PROXY")

CONNECT_TIMEOUT_SECONDS = environment.positive_integer("MEMADMIN_CONNECT_TIMEOUT_SECONDS")

# A server that is cut off closes no connection. With the operating system's defaults a thread waits for it for a
# quarter of an hour, and serves no other request. The first value (milliseconds) is for data that was sent; the others
# (seconds, seconds, number) are for a connection that waits for a result.
TCP_TIMEOUTS = {
    "tcp_user_timeout": 20_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}


def with_our_options(database: dict[str, Any]) -> dict[str, Any]:
    """A database with our defaults, which its URL may override."""
    return {
        **database,
        "CONN_MAX_AGE": 0,
        # Costs a round trip at each request, and spares the people whose requests come after a restart of the
        # database an error page for every pooled connection that died.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "application_name": "memadmin",
            **TCP_TIMEOUTS,
            **database.get("OPTIONS", {}),
        },
    }


EMBEDDED_DATABASE = {
    "ENGINE": "memadmin.embedded",
    "NAME": "memadmin",
    "DATA_DIR": str(DATA_DIR),
    # Role to connect as, once `db_roles` created it; without, as the administrator.
    "ROLE": environment.embedded_role("MEMADMIN_DATABASE_ROLE"),
}
# The registry and the agents' tables.
DATABASES = {"default": with_our_options(environment.database("DATABASE_URL") or EMBEDDED_DATABASE)}
# A streaming replica for lists, searches and reports; the router decides for each read (memadmin/replica.py).
if replica := environment.database("MEMADMIN_REPLICA_URL"):
    DATABASES["replica"] = with_our_options(replica)
DATABASE_ROUTERS = ["memadmin.replica.ReplicaRouter"]
# Options that the web server adds (wsgi.py).
DATABASE_POOL = {
    "min_size": 1,
    "max_size": environment.positive_integer("MEMADMIN_POOL_SIZE"),
    "timeout": CONNECT_TIMEOUT_SECONDS,
    # Time for retrying a lost connection; the next request tries again. By itself the pool doubles its pauses,
    # up to minutes, in which no request is served although the database is back.
    "reconnect_timeout": CONNECT_TIMEOUT_SECONDS,
}
# The worker's connection that bypasses a transaction pooler, behind which notifications would never arrive; empty
# if it connects like all others.
WORKER_DATABASE = environment.database("MEMADMIN_WORKER_DATABASE_URL")

# Signs the audit log's checkpoints; only the worker needs it. On the embedded database a key is made when first needed.
SIGNING_KEY = environment.signing_key("MEMADMIN_SIGNING_KEY")
SIGNING_KEY_BEFORE = environment.signing_key("MEMADMIN_SIGNING_KEY_BEFORE")
SIGNING_KEY_KEPT = DATA_DIR / "signing-key" if DATABASES["default"]["ENGINE"] == "memadmin.embedded" else None
# Public keys to trust where no key signed in the other: after a loss, the lost and the new one.
TRUSTED_KEYS = environment.public_keys("MEMADMIN_TRUSTED_KEYS")

# Destinations of checkpoints: a file on another volume, an HTTPS receiver, a bucket with object lock; any of them.
ANCHOR_PATH = environment.anchor_path(
    "MEMADMIN_ANCHOR_PATH", DATA_DIR / "audit-anchor.jsonl" if SIGNING_KEY_KEPT else None
)
ANCHOR_URL = environment.receiver("MEMADMIN_ANCHOR_URL")
ANCHOR_TOKEN = environment.text("MEMADMIN_ANCHOR_TOKEN")
ANCHOR_BUCKET = environment.bucket("MEMADMIN_ANCHOR_BUCKET")
ANCHOR_KEEP_DAYS = environment.positive_integer("MEMADMIN_ANCHOR_KEEP_DAYS")
LOG_VERIFIED_EVERY = timedelta(hours=environment.positive_integer("MEMADMIN_VERIFY_LOG_HOURS"))

# The main store: the tables that the agents' SDK keeps in this database.
AGENT_SESSIONS_TABLE = environment.table_name("AGENT_SESSIONS_TABLE")
AGENT_MESSAGES_TABLE = environment.table_name("AGENT_MESSAGES_TABLE")
AGENT_TIMEZONE = environment.time_zone("AGENT_TIMEZONE")
# Kinds of stores that are not built in, as dotted paths; docs/own-kind.md describes how to write one.
STORE_KINDS = environment.words("MEMADMIN_STORE_KINDS")

# Keys with which agents encrypt their sessions, by the names that stores use: for each NAME in MEMADMIN_KEYRING the
# key in MEMADMIN_SESSION_KEY_NAME, exactly as the agents' EncryptedSession is given it.
SESSION_KEYS = environment.named_secrets("MEMADMIN_KEYRING", "MEMADMIN_SESSION_KEY")
# Folder of the keys of subjects, which it shares with the agents; no part of any backup of content.
SUBJECT_KEYS_DIR = environment.key_folder(
    "MEMADMIN_SUBJECT_KEYS_DIR",
    DATA_DIR / "subject-keys" if DATABASES["default"]["ENGINE"] == "memadmin.embedded" else None,
)

# Token of Prometheus; without one there are no metrics. And where the processes of a web server add up their counts.
METRICS_TOKEN = environment.bearer_token("MEMADMIN_METRICS_TOKEN")
METRICS_DIR = Path(environment.text("MEMADMIN_METRICS_DIR") or DATA_DIR / "metrics").expanduser()

# Of the `demo` command.
PORT = environment.port("MEMADMIN_PORT")
DEMO_PASSWORD = environment.text("MEMADMIN_DEMO_PASSWORD")

# Whether a second person approves a grant; without, it opens on request, and is only reviewed afterwards.
GRANT_APPROVAL = not environment.yes_or_no("MEMADMIN_GRANTS_WITHOUT_APPROVAL")

# Mail server, sender, and address of the console for the links in mail. Off without a server.
MAIL_SERVER = environment.mail_server("MEMADMIN_MAIL_URL")
globals().update(MAIL_SERVER)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = environment.mail_sender("MEMADMIN_MAIL_FROM")
CONSOLE_URL = environment.https_address("MEMADMIN_URL") or environment.required_with(
    "MEMADMIN_URL", "MEMADMIN_MAIL_URL"
)
# Whether content is shown only for a stated purpose, and how long a purpose is valid.
PURPOSE_REQUIRED = environment.choice("MEMADMIN_PURPOSE", "required", "optional") == "required"
PURPOSE_LIMIT = timedelta(hours=environment.positive_integer("MEMADMIN_PURPOSE_HOURS"))
# Sessions that one user opens within an hour before compliance staff is notified, and before further ones are refused.
READ_NOTICE = environment.at_most("MEMADMIN_READ_NOTICE", "MEMADMIN_READ_LIMIT")
READ_LIMIT = environment.positive_integer("MEMADMIN_READ_LIMIT")
READ_WINDOW = timedelta(hours=1)
# Review target: a proposed memory that waits longer is late.
# Time for which a proposal must have been on a reviewer's screen before a decision counts.
REVIEW_AFTER = timedelta(milliseconds=environment.whole_number("MEMADMIN_REVIEW_AFTER_MILLISECONDS"))
REVIEW_WITHIN = timedelta(hours=environment.positive_integer("MEMADMIN_REVIEW_HOURS"))
# Time after which an undecided proposal expires; zero: never.
PROPOSAL_LIFETIME = timedelta(days=environment.whole_number("MEMADMIN_PROPOSAL_DAYS"))
# Hour, in UTC, of the daily digest for reviewers: by e-mail, and to a webhook of the operator's, with
# the key that signs it. Without addresses, all reviewers whose address the company's sign-in vouches for.
DIGEST_HOUR = environment.hour("MEMADMIN_DIGEST_HOUR")
DIGEST_TO = environment.mail_addresses("MEMADMIN_DIGEST_TO")
DIGEST_URL = environment.receiver("MEMADMIN_DIGEST_URL")
DIGEST_SECRET = environment.webhook_secret("MEMADMIN_DIGEST_SECRET", "MEMADMIN_DIGEST_URL")
# Addresses notified of grants; without, all users who may decide on them and whose address the company vouches for.
NOTICES_TO = environment.mail_addresses("MEMADMIN_NOTICES_TO")

# Countries whose phone numbers are masked without a country code, too.
PHONE_REGIONS = environment.phone_regions("MEMADMIN_PHONE_REGIONS")

SEARCH_LIFETIME = timedelta(hours=environment.positive_integer("MEMADMIN_SEARCH_HOURS"))
SEARCH_SCAN_SECONDS = environment.positive_integer("MEMADMIN_SEARCH_SCAN_SECONDS")

# Places that one person may redact without the approval of a second one.
REDACT_ALONE_PLACES = environment.whole_number("MEMADMIN_REDACT_ALONE_PLACES")

# Requests of people: time to cancel an approved erasure, how long backups keep what was erased, and how long a copy of
# a person's data is kept.
CANCEL_WINDOW = timedelta(minutes=environment.positive_integer("MEMADMIN_CANCEL_MINUTES"))
SUPPRESSION_LEDGER = environment.anchor_path(
    "MEMADMIN_SUPPRESSION_LEDGER", DATA_DIR / "suppressions.jsonl" if SIGNING_KEY_KEPT else None
)
RESCAN_AFTER = timedelta(minutes=environment.positive_integer("MEMADMIN_RESCAN_MINUTES"))
RETENTION_GRACE = timedelta(hours=environment.positive_integer("MEMADMIN_RETENTION_GRACE_HOURS"))
RETENTION_WINDOW = timedelta(hours=environment.positive_integer("MEMADMIN_RETENTION_WINDOW_HOURS"))
RETENTION_HOUR = environment.hour("MEMADMIN_RETENTION_HOUR")
RETENTION_REPLICA_LAG = timedelta(seconds=environment.whole_number("MEMADMIN_RETENTION_REPLICA_SECONDS"))
RETENTION_DEAD_ROWS = environment.whole_number("MEMADMIN_RETENTION_DEAD_ROWS")
BACKUP_DAYS = environment.positive_integer("MEMADMIN_BACKUP_DAYS")
ACCESS_COPY_FOLDER = DATA_DIR / "access-copies"
ACCESS_COPY_LIFETIME = timedelta(days=environment.positive_integer("MEMADMIN_ACCESS_COPY_DAYS"))

# Embedder of memories. Agents use the same one, or find by words alone.
EMBEDDER = environment.embedder("MEMADMIN_EMBEDDER")
# Vector index for similarity search. The database has the vectors in any case.
VECTOR_INDEX = environment.vector_index("MEMADMIN_VECTOR_INDEX")
VECTOR_INDEX_KEY = environment.text("MEMADMIN_VECTOR_INDEX_KEY")

# Distiller of quiet sessions. Locked and encrypted ones only if this says so.
DISTILLER = environment.distiller("MEMADMIN_DISTILLER")
DISTIL_AFTER = timedelta(minutes=environment.positive_integer("MEMADMIN_DISTIL_AFTER_MINUTES"))
DISTIL_LOCKED = environment.yes_or_no("MEMADMIN_DISTIL_LOCKED")

# Migrations do not repeat the triggers that models declare: an operation installs them (memadmin/migrating.py).
PGTRIGGER_MIGRATIONS = False

INSTALLED_APPS = [
    "pgtrigger",
    "memadmin.web",
    "memadmin.home",
    "memadmin.audit",
    "memadmin.accounts",
    "memadmin.runs",
    "sessions_app",
    "memories_app",
    "memadmin.retention",
    "memadmin.erasure",
    "memadmin.deploy",
    "memadmin.demo",
    "memadmin.accounts.apps.RawEditsConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "memadmin.accounts.apps.OpenSessionsConfig",
    "django_htmx",
    "template_partials",
    "csp",
    "procrastinate.contrib.django",
]

MIDDLEWARE = [
    "memadmin.web.request_ids.identify_requests",
    "memadmin.deploy.counts.requests.count_requests",
    "django.middleware.security.SecurityMiddleware",
    "memadmin.web.health.answer_probes",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "memadmin.web.zones.reader_zone",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "memadmin.audit.log.middleware.AuditMiddleware",
    "memadmin.erasure.middleware.RefuseRestoredDatabase",
    "memadmin.accounts.middleware.SessionLimits",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "memadmin.web.errors.explain_refused_methods",
    "memadmin.accounts.middleware.SecondFactor",
    "memadmin.accounts.content_access.views.ContentAccess",
    "sessions_app.views.locked.LockedSessions",
]

ROOT_URLCONF = "memadmin.urls"
WSGI_APPLICATION = "memadmin.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ASSETS_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [ASSETS_DIR / "templates" / "jinja2"],
        "OPTIONS": {"environment": "memadmin.web.jinja2.environment"},
    },
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ACCOUNT_ADAPTER = "memadmin.accounts.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]  # requested nowhere; a check compares them
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = False
# By address, and by name and address together (see AccountAdapter): so a named user cannot be locked out for all.
ACCOUNT_RATE_LIMITS = {"login": "30/m/ip", "login_failed": "20/m/ip,5/300s/key", "reauthenticate": "10/m/user"}
# The proxy in front of us appends the address of the client.
ALLAUTH_TRUSTED_PROXY_COUNT = 1 if IS_BEHIND_PROXY else 0
# Off only where nothing is confidential, as in the demo.
SECOND_FACTOR_REQUIRED = environment.choice("MEMADMIN_SECOND_FACTOR", "required", "optional") == "required"
MFA_ADAPTER = "memadmin.accounts.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_ALLOW_UNVERIFIED_EMAIL = True  # no address is verified here: administrators make the accounts
# The company's own sign-in by OpenID Connect; off without an issuer.
OIDC_ISSUER = environment.https_address("MEMADMIN_OIDC_ISSUER")
OIDC_NAME = environment.text("MEMADMIN_OIDC_NAME")
# Domains whose users come in without an account here, and get one without a role.
OIDC_DOMAINS = [domain.lower() for domain in environment.words("MEMADMIN_OIDC_DOMAINS")]
SOCIALACCOUNT_ADAPTER = "memadmin.accounts.oidc.CompanyAdapter"
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "company",
                "name": OIDC_NAME,
                "client_id": environment.required_with("MEMADMIN_OIDC_CLIENT_ID", "MEMADMIN_OIDC_ISSUER"),
                "secret": environment.required_with("MEMADMIN_OIDC_CLIENT_SECRET", "MEMADMIN_OIDC_ISSUER"),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ],
    }
}
# Shared by all processes and machines: counts of failed attempts, and used codes.
CACHES = {"default": {"BACKEND": "memadmin.accounts.db_cache.TableCache"}}
# In the session and not in a cookie: a message may repeat the user's input.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "accounts:login"

LANGUAGE_CODE = "en"
USE_I18N = False
FORMAT_MODULE_PATH = "memadmin.web.formats"
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_DIRS = [ASSETS_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Idle time limit, and total time limit of a session.
IDLE_LIMIT = timedelta(minutes=environment.positive_integer("MEMADMIN_IDLE_MINUTES"))
SESSION_LIMIT = timedelta(hours=environment.positive_integer("MEMADMIN_SESSION_HOURS"))
SESSION_COOKIE_AGE = int(SESSION_LIMIT.total_seconds())
SESSION_ENGINE = "memadmin.accounts.session_store"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_HTTPS
if IS_HTTPS:
    # A browser takes a cookie of this name from this very host alone.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-session", "__Host-csrf"
SECURE_SSL_REDIRECT = IS_HTTPS
# Probes and scrapes come from inside, by plain HTTP.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds()) if IS_HTTPS else 0
# They bind other sites of the domain, and the second one for months after it is withdrawn: choices, which Django's
# checks would demand.
SECURE_HSTS_INCLUDE_SUBDOMAINS = environment.yes_with("MEMADMIN_HSTS_SUBDOMAINS", "MEMADMIN_HTTPS")
SECURE_HSTS_PRELOAD = environment.yes_with("MEMADMIN_HSTS_PRELOAD", "MEMADMIN_HSTS_SUBDOMAINS")
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if IS_BEHIND_PROXY else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "memadmin.web.errors.csrf_failure"

# Tabler draws its arrows and ticks from data: URIs; nothing else may come from another origin. What may become HTML
# by a script is in static/trusted-types.js, and for Django admin in static/trusted-types-admin.js.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["default"],
        # Not `report-to`: it takes HTTPS, and lets browsers wait for minutes.
        "report-uri": ["/policy-report/"],
    }
}

# Heartbeat and stall limit are not flags of the worker command (see sessions_app.jobs for what retries stalled jobs).
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = "jobs"
PROCRASTINATE_WORKER_DEFAULTS = {
    # Periodic jobs alone are 35,000 a day.
    "delete_jobs": "successful",
    "concurrency": environment.positive_integer("MEMADMIN_WORKER_CONCURRENCY"),
    "update_heartbeat_interval": 5.0,
    "stalled_worker_timeout": 20.0,
    # Longer than any chunk of work; a job that is still running then is retried by another worker.
    "shutdown_graceful_timeout": 15.0,
}

LOG_LEVEL = environment.choice("MEMADMIN_LOG_LEVEL", "info", "warning", "error").upper()
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "class": "memadmin.web.log_lines.TextLines",
            "format": "%(asctime)s %(levelname)s %(name)s %(context)s %(message)s",
        },
        "json": {"class": "memadmin.web.log_lines.JsonLines"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": environment.choice("MEMADMIN_LOG_FORMAT", "text", "json"),
        }
    },
    "root": {"handlers": ["stderr"], "level": "ERROR" if LOG_LEVEL == "ERROR" else "WARNING"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "ERROR" if LOG_LEVEL == "ERROR" else "WARNING", "propagate": False},
    },
}
if LOG_LEVEL == "INFO":
    # Not those of libraries, whose lines may have addresses and content.
    for name in ("memadmin", "sessions_app", "memories_app"):
        LOGGING["loggers"][name] = {"level": "INFO"}
