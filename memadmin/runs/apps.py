from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class RunsConfig(AppConfig):
    name = "memadmin.runs"
    label = "runs"

    def ready(self) -> None:
        from memadmin.runs import home_parts

        autodiscover_modules("run_kinds")
