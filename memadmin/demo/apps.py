from django.apps import AppConfig


class DemoConfig(AppConfig):
    name = "memadmin.demo"
    label = "demo"
