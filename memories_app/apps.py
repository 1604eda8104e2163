from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    """Learned memories: their models, gate and review queue live here; there are none yet."""

    name = "memories_app"
    verbose_name = "Memories"
