from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "memadmin.web"
    label = "web"

    def ready(self) -> None:
        from memadmin.web import checks  # noqa: F401  # registers them
