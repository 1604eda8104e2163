"""`@operator_page`: permissions and methods of a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from django.contrib.auth.decorators import permission_required
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

View = TypeVar("View", bound=Callable[..., HttpResponseBase])

METHODS = {"GET": ["GET", "HEAD"], "POST": ["POST"], "GET, POST": ["GET", "HEAD", "POST"]}


def operator_page(*permissions: str, methods: Literal["GET", "POST", "GET, POST"] = "GET") -> Callable[[View], View]:
    """A view for operators who have all of these permissions, or for every operator without any; never cached.

    A missing permission answers 403, another method 405.
    """

    def decorate(view: View) -> View:
        guarded = permission_required(permissions, raise_exception=True)(view) if permissions else view
        return require_http_methods(METHODS[methods])(never_cache(guarded))

    return decorate
