from django.urls import path

from memadmin.retention.policies import views

app_name = "policies"
urlpatterns = [
    path("", views.policy_list, name="list"),
    path("explain/", views.explain_session, name="explain"),
    path("new/", views.new_policy, name="new"),
    path("<uuid:policy_id>/", views.policy, name="policy"),
    path("<uuid:policy_id>/change/", views.change_policy, name="change"),
    path("<uuid:policy_id>/end/", views.end_policy, name="end"),
    path("<uuid:policy_id>/versions/<int:version_number>/preview/", views.preview_change, name="preview-change"),
    path("<uuid:policy_id>/versions/<int:version_number>/approve/", views.approve_change, name="approve-change"),
    path("<uuid:policy_id>/versions/<int:version_number>/stop/", views.stop_change, name="stop-change"),
]
