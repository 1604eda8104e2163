from django.urls import path

from memadmin.accounts.people import views

app_name = "people"

urlpatterns = [
    path("", views.people, name="list"),
    path("new/", views.new, name="new"),
    path("<int:person_id>/", views.person, name="person"),
    path("<int:person_id>/roles/", views.roles, name="roles"),
    path("<int:person_id>/off/", views.switch_off, name="off"),
    path("<int:person_id>/on/", views.switch_on, name="on"),
    path("<int:person_id>/second-factor/", views.reset_second_factor, name="second-factor"),
    path("<int:person_id>/link/", views.make_link, name="link"),
    path("<int:person_id>/sign-out/", views.sign_out, name="sign-out"),
    path("<int:person_id>/sessions/<int:browser_id>/end/", views.end_session, name="session-end"),
]
