from django.urls import path

from memadmin.deploy.metrics import views

urlpatterns = [path("", views.metrics, name="metrics")]
