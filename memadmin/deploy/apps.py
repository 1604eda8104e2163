from django.apps import AppConfig


class DeployConfig(AppConfig):
    name = "memadmin.deploy"
    label = "deploy"
