from django.urls import path

from memadmin.home import saved_view_pages

app_name = "views"

urlpatterns = [
    path("", saved_view_pages.save, name="save"),
    path("<uuid:view_id>/rename/", saved_view_pages.rename, name="rename"),
    path("<uuid:view_id>/default/", saved_view_pages.set_default, name="default"),
    path("<uuid:view_id>/delete/", saved_view_pages.delete, name="delete"),
]
