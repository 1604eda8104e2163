from django.urls import path

from memadmin.audit.pages.views import erasing, event, exports, log

app_name = "audit"
urlpatterns = [
    path("", log.log, name="list"),
    path("newer/", log.newer, name="newer"),
    path("volume/", log.by_day, name="volume"),
    path("health/", log.health_now, name="health"),
    path("about/", log.about, name="about"),
    path("verify/", log.verify, name="verify"),
    path("verifier.py", exports.download_verifier, name="verifier"),
    path("log.jsonl", exports.export_log, name="export-log"),
    path("export.jsonl", exports.export_jsonl, name="export-jsonl"),
    path("export.csv", exports.export_csv, name="export-csv"),
    path("<uuid:event_id>/", event.event, name="event"),
    path("<uuid:event_id>/details/erase/", erasing.erase_details, name="erase-details"),
    path("<uuid:event_id>/name/erase/", erasing.erase_name, name="erase-name"),
    path("<uuid:event_id>/proof.json", event.proof, name="proof"),
]
