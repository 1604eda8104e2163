from allauth.usersessions import apps as usersessions
from django.apps import AppConfig
from django.contrib.admin import apps as admin


class AccountsConfig(AppConfig):
    name = "memadmin.accounts"
    label = "accounts"

    def ready(self) -> None:
        from memadmin.accounts import reauth_views, signals  # noqa: F401  # they register themselves


class OpenSessionsConfig(usersessions.UserSessionsConfig):  # type: ignore[misc]  # allauth has no types
    """allauth's table of open sign-ins without its receivers, which would store the keys of sessions in it."""

    default = False

    def ready(self) -> None:
        """Connects none: `memadmin.accounts.signals` records sign-ins."""


class RawEditsConfig(admin.AdminConfig):
    """Django admin with our own site."""

    default = False
    default_site = "memadmin.accounts.admin_site.RawEditsSite"
