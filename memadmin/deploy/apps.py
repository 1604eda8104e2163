from django.apps import AppConfig


class DeployConfig(AppConfig):
    name = "memadmin.deploy"
    label = "deploy"

    def ready(self) -> None:
        from memadmin.deploy.system import home_parts
