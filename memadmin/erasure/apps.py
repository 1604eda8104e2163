from django.apps import AppConfig


class ErasureConfig(AppConfig):
    name = "memadmin.erasure"
    label = "erasure"

    def ready(self) -> None:
        from memadmin.erasure import panels  # noqa: F401  # registers them
        from memadmin.erasure.querysets import count_to_approve
        from memadmin.web.navigation import WAITING

        WAITING["erasure:requests"] = count_to_approve
