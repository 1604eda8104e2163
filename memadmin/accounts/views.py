"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django_htmx.http import HttpResponseClientRefresh


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        # The session ended while a page was open, and a refresh of a part of it was sent here: the part would show
        # a login form. Loading the page again leads here with the way back.
        if request.htmx and not request.htmx.boosted:  # type: ignore[attr-defined]
            return HttpResponseClientRefresh()
        return super().dispatch(request, *args, **kwargs)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=422)
