from django.urls import path

from memadmin.audit.views import event, log

app_name = "audit"
urlpatterns = [
    path("", log.log, name="list"),
    path("newer/", log.newer, name="newer"),
    path("about/", log.about, name="about"),
    path("<uuid:event_id>/", event.event, name="event"),
]
