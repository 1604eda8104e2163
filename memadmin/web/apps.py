from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class WebConfig(AppConfig):
    name = "memadmin.web"
    label = "web"

    def ready(self) -> None:
        from memadmin.web import checks

        autodiscover_modules("palette_options")
