from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "memadmin.web"
    label = "web"

    def ready(self) -> None:
        from memadmin.instants import read_instants_quickly
        from memadmin.web import checks  # noqa: F401  # registers them

        read_instants_quickly()
