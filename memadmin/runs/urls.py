from django.urls import path

from memadmin.runs import views

app_name = "runs"
urlpatterns = [
    path("", views.run_list, name="list"),
    path("<int:run_id>/", views.run, name="detail"),
    path("<int:run_id>/pause/", views.pause, name="pause"),
    path("<int:run_id>/resume/", views.resume, name="resume"),
    path("<int:run_id>/cancel/", views.cancel, name="cancel"),
    path("<int:run_id>/speed/", views.limit_speed, name="speed"),
]
