"""The Django admin site "raw edits": the common login, and a required permission."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core import checks
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.decorators import method_decorator

from memadmin.accounts.raw_edits import PREFIX, ReasonedEdits, WhyMissing, why_form
from memadmin.accounts.reauth_views import typed
from memadmin.audit.log.actors import is_governed
from memadmin.web import navigation

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class RawEditsSite(AdminSite):
    """Access to the site needs a permission; access to rows follows Django's own permissions.

    `is_staff` is not used: it is a flag of a user, and rights come with a role.
    """

    site_header = site_title = "memadmin raw edits"
    index_title = "Raw edits"

    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_active and navigation.may_see(request.user, navigation.RAW_EDITS)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        opened = super().admin_view(view, cacheable)

        @wraps(opened)
        def door(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.is_authenticated and not self.has_permission(request):
                raise PermissionDenied
            try:
                return opened(request, *args, **kwargs)
            except WhyMissing:
                return self.ask_why(request)
            except ValidationError as problem:
                # An invalid id in the address, for which Django's "view on site" raises an error.
                raise Http404("No such object.") from problem

        return cast(View, door)

    def ask_why(self, request: HttpRequest) -> HttpResponse:
        """A page that asks for the reason and keeps the submitted values for the repeated request."""
        kept = [(name, value) for name, value in typed(request) if not name.startswith(f"{PREFIX}-")]
        context = {**self.each_context(request), "title": "Reason for the change", "kept": kept}
        response = render(request, "admin/why.html", context, status=422)
        add_never_cache_headers(response)
        return response

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "why": why_form(request)}

    def check(self, app_configs: Any) -> list[checks.CheckMessage]:
        unasked = [
            checks.Error(
                f"{type(model_admin).__name__} allows changes to a governed table without a reason.",
                hint="Derive it from memadmin.accounts.raw_edits.ReasonedEdits.",
                obj=model,
                id="memadmin.E004",
            )
            for model, model_admin in self._registry.items()
            if is_governed(model._meta.db_table) and not isinstance(model_admin, ReasonedEdits)
        ]
        return [*super().check(app_configs), *unasked]

    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect("admin:index")
        return redirect_to_login(request.GET.get("next", reverse("admin:index")))
