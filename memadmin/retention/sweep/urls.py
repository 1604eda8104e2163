from django.urls import path

from memadmin.retention.sweep import views

app_name = "sweeps"
urlpatterns = [
    path("runs/", views.run_list, name="list"),
    path("runs/<int:run_number>/", views.run, name="run"),
    path("tables/", views.tables, name="tables"),
]
