"""Addresses below that of a request; included by the package's own addresses, under its name."""

from django.urls import path

from memadmin.erasure.access_copy import views

urlpatterns = [
    path("<uuid:access_id>/copy/build/", views.build, name="copy-build"),
    path("<uuid:access_id>/copy/ask/", views.ask, name="copy-ask"),
    path("<uuid:access_id>/copy/approve/", views.approve, name="copy-approve"),
    path("<uuid:access_id>/copy/leave-out/", views.leave_out, name="copy-leave-out"),
    path("<uuid:access_id>/copy/link/", views.link, name="copy-link"),
    path("<uuid:access_id>/copy/hand-over/", views.hand_over, name="copy-hand-over"),
    path("<uuid:access_id>/copy/<str:token>/", views.fetch, name="copy-fetch"),
]
