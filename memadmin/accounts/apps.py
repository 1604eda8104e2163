from allauth.usersessions import apps as usersessions
from django.apps import AppConfig, apps
from django.contrib.admin import apps as admin


class AccountsConfig(AppConfig):
    name = "memadmin.accounts"
    label = "accounts"

    def ready(self) -> None:
        from memadmin.accounts import home_parts, reauth_views, signals

        name_in_our_words()


def name_in_our_words() -> None:
    """Gives Django's users and groups the names that the console has for them, for the pages of Django admin.

    Only the names that pages show: migrations and permissions have those of Django.
    """
    auth = apps.get_app_config("auth")
    auth.verbose_name = "Accounts"
    for model, name in (("User", "account"), ("Group", "role")):
        options = auth.get_model(model)._meta
        options.verbose_name, options.verbose_name_plural = name, f"{name}s"


class OpenSessionsConfig(usersessions.UserSessionsConfig):  # type: ignore[misc]  # allauth has no types
    """allauth's table of open sign-ins without its receivers, which would store the keys of sessions in it."""

    default = False

    def ready(self) -> None:
        """Connects none: `memadmin.accounts.signals` records sign-ins."""


class RawEditsConfig(admin.AdminConfig):
    """Django admin with our own site."""

    default = False
    default_site = "memadmin.accounts.admin_site.RawEditsSite"
