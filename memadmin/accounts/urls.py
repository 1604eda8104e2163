from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import path

from memadmin.accounts.views import SignIn

app_name = "accounts"
urlpatterns = [
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", login_not_required(LogoutView.as_view()), name="logout"),
]
