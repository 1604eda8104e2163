"""Django admin, here "raw edits": the same login as everywhere, and a door that asks for a permission."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib.admin import AdminSite
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator

from memadmin.web import navigation

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class RawEditsSite(AdminSite):
    """What is behind the door is decided row by row by Django's own permissions.

    `is_staff` decides nothing here: it is a flag on a person, and rights come with a role.
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
            return opened(request, *args, **kwargs)

        return cast(View, door)

    @method_decorator(login_not_required)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect("admin:index")
        return redirect_to_login(request.GET.get("next", reverse("admin:index")))
