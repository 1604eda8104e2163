from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "sessions_app"
    verbose_name = "Sessions"

    def ready(self) -> None:
        from sessions_app.encryption import checks  # noqa: F401  # registers them
        from sessions_app.stores import checks as checks_of_stores  # noqa: F401
        from sessions_app.views import home_parts  # noqa: F401
