"""The settings of the measured web process: the real ones, on a database of the bench's own server."""

import os
from datetime import timedelta

from memadmin.settings import *  # noqa: F403
from memadmin.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["MEMADMIN_BENCH_DATABASE"]

# Somebody signs in before the other size is prepared, which may take an hour.
IDLE_LIMIT = SESSION_LIMIT = timedelta(days=1)
SESSION_COOKIE_AGE = int(SESSION_LIMIT.total_seconds())

# Who measures reads more than one person may, and for no purpose.
PURPOSE_REQUIRED = False
READ_LIMIT = 1_000_000
