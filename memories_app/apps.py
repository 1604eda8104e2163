from django.apps import AppConfig


class MemoriesConfig(AppConfig):
    name = "memories_app"
    verbose_name = "Memories"
