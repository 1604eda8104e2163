from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    name = "memories_app"
    verbose_name = "Memories"

    def ready(self) -> None:
        from memadmin.web.navigation import WAITING
        from memories_app import panels  # noqa: F401  # registers them
        from memories_app.queue import count_waiting

        WAITING["reviews:list"] = count_waiting
