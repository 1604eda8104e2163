from django.apps import AppConfig


class ErasureConfig(AppConfig):
    name = "memadmin.erasure"
    label = "erasure"
