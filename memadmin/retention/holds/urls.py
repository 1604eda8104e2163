from django.urls import path

from memadmin.retention.holds import views

app_name = "retention"
urlpatterns = [
    path("", views.hold_list, name="holds"),
    path("preview/", views.preview, name="hold-preview"),
    path("place/", views.place, name="hold-place"),
    path("<uuid:hold_id>/", views.hold, name="hold"),
    path("<uuid:hold_id>/change/", views.change, name="hold-change"),
    path("<uuid:hold_id>/request-release/", views.request_release, name="hold-request-release"),
    path("<uuid:hold_id>/release/", views.release, name="hold-release"),
    path("<uuid:hold_id>/reject-release/", views.reject_release, name="hold-reject-release"),
]
