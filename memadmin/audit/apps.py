from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class AuditConfig(AppConfig):
    name = "memadmin.audit"
    label = "audit"

    def ready(self) -> None:
        # Every app declares its event types and its governed tables in a module of this name.
        autodiscover_modules("audited")
