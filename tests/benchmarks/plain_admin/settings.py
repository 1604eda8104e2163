"""The bench's settings, with the plain admin in the place of the console."""

from tests.benchmarks.settings import *  # noqa: F403
from tests.benchmarks.settings import INSTALLED_APPS

# What a new project of Django has, without our own.
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
FORM_RENDERER = "django.forms.renderers.DjangoTemplates"

INSTALLED_APPS = [*INSTALLED_APPS, "tests.benchmarks.plain_admin"]
ROOT_URLCONF = "tests.benchmarks.plain_admin.urls"
