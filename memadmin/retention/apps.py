from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class RetentionConfig(AppConfig):
    name = "memadmin.retention"
    label = "retention"

    def ready(self) -> None:
        from memadmin.retention.holds import guard, panels
        from memadmin.retention.models.querysets import count_changes_to_decide, count_to_decide
        from memadmin.retention.policies import panels as policy_panels
        from memadmin.retention.sweep import home_parts
        from memadmin.retention.targets import audit_details, items, memories, sessions
        from memadmin.web.navigation import WAITING

        # Upper apps add targets of their own.
        autodiscover_modules("retention_targets")
        WAITING["retention:holds"] = count_to_decide
        WAITING["policies:list"] = count_changes_to_decide
