from django.urls import path

from memadmin.web.help import views

app_name = "help"

urlpatterns = [
    path("", views.overview, name="overview"),
    path("tour/", views.tour, name="tour"),
    path("<slug:key>/", views.area, name="area"),
]
