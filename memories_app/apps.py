from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MemoriesConfig(AppConfig):
    name = "memories_app"
    verbose_name = "Memories"

    def ready(self) -> None:
        from memadmin.web.navigation import WAITING
        from memories_app import panels
        from memories_app.review import home_parts
        from memories_app.review.queue import count_waiting
        from memories_app.services import redacting
        from memories_app.vector_column import make_when_possible

        post_migrate.connect(make_when_possible, sender=self)
        WAITING["reviews:list"] = count_waiting
