from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "Sessions"

    def ready(self) -> None:
        from sessions_app.encryption import checks
        from sessions_app.stores import checks as checks_of_stores
        from sessions_app.views import home_parts
