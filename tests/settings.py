"""The settings of the test suite: the real ones, without what a test run has no use for."""

import os
from datetime import timedelta
from pathlib import Path

from memadmin.embedded import cluster
from memadmin.settings import *  # noqa: F403
from memadmin.settings import CHECKOUT_DIR, DATA_DIR, DATABASES, STORAGES, TEMPLATES

# Nothing here has to survive a power cut.
DATABASES["default"]["OPTIONS"]["options"] = "-c synchronous_commit=off"
cluster.SETTINGS["fsync"] = "off"

# Another PostgreSQL in place of the embedded one, of the operating system's packages: the folder of its programs.
if PROGRAMS := os.environ.get("POSTGRES_OF_TESTS", ""):
    cluster._program = lambda name: Path(PROGRAMS, name)
    # Older ones know no provider of their own.
    cluster.LOCALE = ("--locale=C.UTF-8",)

# A key that everybody may know, and no place that would remember the logs of other tests.
SIGNING_KEY = bytes(range(32))
ANCHOR_PATH = None
ANCHOR_URL = ANCHOR_TOKEN = ANCHOR_BUCKET = ""

# Tests of restored databases have a ledger of their own.
SUPPRESSION_LEDGER = None

# Tests that have keys of subjects make a folder for them.
SUBJECT_KEYS_DIR = None

# Copies of an installation in this checkout belong to no row of a test's database.
ACCESS_COPY_FOLDER = DATA_DIR / "access-copies-of-tests"

# Tests decide at once; those of decisions without reading set the time.
REVIEW_AFTER = timedelta(0)

# Nobody outside is told of the queues of tests.
DIGEST_URL, DIGEST_SECRET, DIGEST_TO = "", b"", []

# Pages render without `collectstatic`.
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
# Otherwise each `Client` reads all static files when it is created.
WHITENOISE_AUTOREFRESH = True

# Emptied after each test (see conftest.py); the real one has a test of its own.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# Most tests sign people in without a word; those of the second factor ask for it.
SECOND_FACTOR_REQUIRED = False
PURPOSE_REQUIRED = False
# A code of the last half minute too: between making and sending one the clock may tick.
MFA_TOTP_TOLERANCE = 1

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

# Pages that only tests have.
TEMPLATES[0]["DIRS"] += [CHECKOUT_DIR / "tests" / "templates"]
