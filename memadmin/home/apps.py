from django.apps import AppConfig


class HomeConfig(AppConfig):
    name = "memadmin.home"
    label = "home"
