from django.urls import include, path

from memadmin.accounts.views import login

own_pages = [
    path("login/", login.SignIn.as_view(), name="login"),
    path("logout/", login.sign_out, name="logout"),
    path("grants/", include("memadmin.accounts.grants.urls")),
]

urlpatterns = [
    path("", include((own_pages, "accounts"))),
    # The names by which django-allauth finds its pages.
    path("login/", login.SignIn.as_view(), name="account_login"),
    path("logout/", login.sign_out, name="account_logout"),
]
