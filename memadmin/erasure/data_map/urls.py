from django.urls import path

from memadmin.erasure.data_map import views

app_name = "data_map"
urlpatterns = [
    path("", views.data_map, name="map"),
    path("export.csv", views.export_csv, name="export-csv"),
    path("export.json", views.export_json, name="export-json"),
    path("record/", views.processing_record, name="record"),
    path("record/change/", views.change_record, name="change-record"),
]
