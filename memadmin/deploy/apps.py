from django.apps import AppConfig


class DeployConfig(AppConfig):
    name = "memadmin.deploy"
    label = "deploy"

    def ready(self) -> None:
        from functools import partial

        from memadmin.deploy.missing_rights import PROCESSES, reasons_not_to_work
        from memadmin.deploy.system import home_parts
        from memadmin.web.health import also_check

        for process in PROCESSES:
            also_check(partial(reasons_not_to_work, process), process=process)
