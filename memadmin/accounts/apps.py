from django.apps import AppConfig
from django.contrib.admin import apps as admin


class AccountsConfig(AppConfig):
    name = "memadmin.accounts"
    label = "accounts"

    def ready(self) -> None:
        from memadmin.accounts import reauth_views, signals  # noqa: F401  # they register themselves


class RawEditsConfig(admin.AdminConfig):
    """Django admin with our own site."""

    default = False
    default_site = "memadmin.accounts.admin_site.RawEditsSite"
