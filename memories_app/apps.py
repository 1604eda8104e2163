from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    name = "memories_app"
    verbose_name = "Memories"

    def ready(self) -> None:
        from memadmin.web.navigation import WAITING
        from memories_app import panels  # noqa: F401  # registers them
        from memories_app.review import home_parts  # noqa: F401
        from memories_app.review.queue import count_waiting
        from memories_app.services import redacting  # noqa: F401  # registers it

        WAITING["reviews:list"] = count_waiting
