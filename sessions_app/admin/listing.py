"""Shared parts of raw edits: lists that never count, sort or page through millions of rows, and read-only rows."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.functional import cached_property

LISTED = 1_000
"""Maximum number of rows of a list; others are found by the console's own search, whose addresses contain no words."""


class FirstPages(Paginator):  # type: ignore[type-arg]  # Django's own classes take no argument when they run
    """Pages of the first LISTED rows. Counting or skipping further would read every row before."""

    @cached_property
    def count(self) -> int:
        rows = cast("QuerySet[Model]", self.object_list)
        return rows.order_by().values("pk")[:LISTED].count()


class ShortList(admin.ModelAdmin):  # type: ignore[type-arg]
    paginator = FirstPages
    show_full_result_count = False
    list_max_show_all = 0
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    actions = None
    view_on_site = False


class OfOne(admin.SimpleListFilter):
    """Filter by one object, for links from its page; offers no choices."""

    parameter_name: str

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        chosen = self.used_parameters.get(self.parameter_name)
        return [(chosen, f"{self.title} {chosen}")] if chosen else []


class ShownRows:
    """Read-only rows: not added, changed or deleted here."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
