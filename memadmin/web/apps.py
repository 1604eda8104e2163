from typing import Any

from django.apps import AppConfig
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils.module_loading import autodiscover_modules


class WebConfig(AppConfig):
    name = "memadmin.web"
    label = "web"

    def ready(self) -> None:
        from memadmin.web import checks

        autodiscover_modules("palette_options")
        connection_created.connect(_clamp_times, dispatch_uid="memadmin.web")


def _clamp_times(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    from memadmin import clamped_times

    clamped_times.clamp_times_on(connection)
