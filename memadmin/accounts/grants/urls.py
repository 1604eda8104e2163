from django.urls import path

from memadmin.accounts.grants import views

urlpatterns = [
    path("", views.grant_list, name="grants"),
    path("<uuid:grant_id>/", views.grant, name="grant"),
    path("<uuid:grant_id>/approve/", views.approve, name="grant-approve"),
    path("<uuid:grant_id>/refuse/", views.refuse, name="grant-refuse"),
    path("<uuid:grant_id>/end/", views.end, name="grant-end"),
    path("<uuid:grant_id>/review/", views.review, name="grant-review"),
]
