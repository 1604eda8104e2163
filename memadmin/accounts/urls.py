from django.urls import include, path

from memadmin.accounts.content_access.views import purpose
from memadmin.accounts.oidc import PROVIDER_ID
from memadmin.accounts.people import views as people
from memadmin.accounts.views import account, company, confirm, login, second_factor

own_pages = [
    path("login/", login.SignIn.as_view(), name="login"),
    path("logout/", login.sign_out, name="logout"),
    path("grants/", include("memadmin.accounts.grants.urls")),
    path("roles/", include("memadmin.accounts.role_requests.urls")),
    path("invitation/<str:token>/", people.invitation, name="invitation"),
    path("", account.account, name="account"),
    path("sessions/<int:session_id>/end/", account.end_session, name="session-end"),
    path("sessions/end-others/", account.end_other_sessions, name="sessions-end-others"),
    path("times/", account.choose_times, name="times"),
    path("confirm/", confirm.confirm, name="confirm"),
    path("purpose/", purpose, name="purpose"),
    path("second-factor/", second_factor.second_factor, name="second-factor"),
    path("second-factor/<int:factor_id>/remove/", second_factor.remove, name="second-factor-remove"),
]

# Names that django-allauth expects.
allauth_pages = [
    path("login/", login.SignIn.as_view(), name="account_login"),
    path("logout/", login.sign_out, name="account_logout"),
    path("login/second-factor/", second_factor.CheckSecondFactor.as_view(), name="mfa_authenticate"),
    path("login/passkey/", second_factor.SignInWithPasskey.as_view(), name="mfa_login_webauthn"),
    path("company/login/", company.begin, {"provider_id": PROVIDER_ID}, name="openid_connect_login"),
    path("company/login/callback/", company.come_back, {"provider_id": PROVIDER_ID}, name="openid_connect_callback"),
    path("password/", account.ChangePassword.as_view(), name="account_change_password"),
    path("", account.account, name="mfa_index"),
    path("second-factor/app/", second_factor.SetUpApp.as_view(), name="mfa_activate_totp"),
    path("", account.account, name="mfa_deactivate_totp"),
    path("second-factor/passkey/", second_factor.AddPasskey.as_view(), name="mfa_add_webauthn"),
    path("recovery-codes/", second_factor.RecoveryCodes.as_view(), name="mfa_view_recovery_codes"),
    path("recovery-codes/new/", second_factor.NewRecoveryCodes.as_view(), name="mfa_generate_recovery_codes"),
]

urlpatterns = [path("", include((own_pages, "accounts"))), *allauth_pages]
