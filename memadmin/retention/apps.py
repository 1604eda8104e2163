from django.apps import AppConfig


class RetentionConfig(AppConfig):
    name = "memadmin.retention"
    label = "retention"

    def ready(self) -> None:
        from memadmin.retention import guard, panels  # noqa: F401  # registers them
        from memadmin.retention.querysets import count_to_decide
        from memadmin.web.navigation import WAITING

        WAITING["retention:holds"] = count_to_decide
