from django.urls import path

from memadmin.accounts.role_requests import views

urlpatterns = [
    path("", views.role_list, name="roles"),
    path("<uuid:request_id>/confirm/", views.confirm, name="role-confirm"),
    path("<uuid:request_id>/reject/", views.refuse, name="role-refuse"),
]
