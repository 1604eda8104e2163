"""The settings of the measured web process: the real ones, on a database of the bench's own server."""

import os

from memadmin.settings import *  # noqa: F403
from memadmin.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["MEMADMIN_BENCH_DATABASE"]
