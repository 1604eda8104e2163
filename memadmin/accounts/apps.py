from django.apps import AppConfig
from django.contrib.admin import apps as admin


class AccountsConfig(AppConfig):
    name = "memadmin.accounts"
    label = "accounts"

    def ready(self) -> None:
        from memadmin.accounts import reauth_views, signals  # noqa: F401  # they say so to whom it concerns


class RawEditsConfig(admin.AdminConfig):
    """Django admin behind a door of our own."""

    default = False
    default_site = "memadmin.accounts.admin_site.RawEditsSite"
