"""The bench's settings, with the plain admin in the place of the console."""

from tests.benchmarks.settings import *  # noqa: F403
from tests.benchmarks.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.benchmarks.plain_admin"]
ROOT_URLCONF = "tests.benchmarks.plain_admin.urls"
