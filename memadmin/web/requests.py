"""Type of a request after the middleware of login and htmx."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class OperatorRequest(HttpRequest):
    """A request that passed the login: `user` is the signed-in operator. Only a type, never constructed."""

    user: User
    htmx: HtmxDetails
