from django.urls import path

from memadmin.deploy.system import views

app_name = "system"

urlpatterns = [
    path("", views.system, name="system"),
    path("check/", views.check, name="check"),
]
