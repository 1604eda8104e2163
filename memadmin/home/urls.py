from django.urls import path

from memadmin.home import views

app_name = "home"

urlpatterns = [
    path("", views.notifications, name="notifications"),
    path("read/", views.mark_read, name="notifications-read"),
]
