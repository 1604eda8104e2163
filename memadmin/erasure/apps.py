from django.apps import AppConfig


class ErasureConfig(AppConfig):
    name = "memadmin.erasure"
    label = "erasure"

    def ready(self) -> None:
        from memadmin.erasure import erasures_before_holds, home_parts, panels
        from memadmin.erasure.querysets import count_to_approve
        from memadmin.erasure.suppression.entering import reason_not_to_serve
        from memadmin.web.health import also_check
        from memadmin.web.navigation import WAITING

        WAITING["erasure:requests"] = count_to_approve

        def reasons() -> list[str]:
            reason = reason_not_to_serve()
            return [reason] if reason else []

        also_check(reasons)
