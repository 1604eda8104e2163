from typing import Any

from django.apps import AppConfig
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class AuditConfig(AppConfig):
    name = "memadmin.audit"
    label = "audit"

    def ready(self) -> None:
        # Every app declares its event types in a module of the first name, and the labels of its records in one of
        # the second.
        autodiscover_modules("audit_events", "audit_labels")
        from memadmin.audit.log import proofs
        from memadmin.audit.log.row_triggers import declare_row_events
        from memadmin.audit.pages import home_parts
        from memadmin.web import health

        declare_row_events()
        connection_created.connect(_name_actors, dispatch_uid="memadmin.audit")
        post_migrate.connect(proofs.share_keys, sender=self)
        health.also_check(proofs.reasons_not_to_serve)


def _name_actors(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    from memadmin.audit.log import actors

    actors.name_actors_on(connection)
