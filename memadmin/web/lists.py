"""Keyset list pages: the page at a cursor, the response to a bad cursor, and the number of newer rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from memadmin.web.filters import FilterForm
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.paging import BadCursor, Fetch, KeysetPage, count_ahead, page_of_union

Row = TypeVar("Row", bound=Model)

NEWER_CAP = 50


@dataclass(frozen=True, slots=True)
class ListPage:
    """The template of a list, its fragment for htmx (also the id of the element), and the number of rows a page.
    Cursors are signed with `salt`: one of another list is refused."""

    template: str
    salt: str
    fragment: str = ""
    size: int = 50

    def page(
        self, request: HttpRequest, *branches: QuerySet[Row], of: object = None, fetch: Fetch[Row] | None = None
    ) -> KeysetPage[Row]:
        """The rows at the request's cursor; none, and a `problem`, where the cursor is bad.

        The list is a queryset, or the union of several. `of` is the owner of the rows, if each owner has its own list.
        """
        salt = self.salt if of is None else f"{self.salt}:{of}"
        try:
            return page_of_union(branches, cursor=request.GET.get("cursor", ""), size=self.size, salt=salt, fetch=fetch)
        except BadCursor as problem:
            return KeysetPage([], newer="", older="", ahead="", problem=str(problem))

    def render(
        self,
        request: HttpRequest,
        context: Mapping[str, Any],
        page: KeysetPage[Any] | None = None,
        *,
        status: int = 200,
    ) -> HttpResponse:
        """The list with `page`, or with the problem of a bad cursor as `bad_cursor` and status 400."""
        if page and page.problem:
            context, status = {**context, "bad_cursor": page.problem}, 400
        else:
            context = {**context, "page": page}
        if not self.fragment:
            return render(request, self.template, context, status=status)
        return render_page_or_fragment(request, self.template, context, fragment=self.fragment, status=status)

    def newer(self, request: HttpRequest, filters: FilterForm, *branches: QuerySet[Row], address: str) -> HttpResponse:
        """Number of rows newer than those on an open page, under the same filters."""
        cursor = request.GET.get("cursor", "")
        try:
            count = count_ahead(branches, cursor=cursor, cap=NEWER_CAP, salt=self.salt)
        except BadCursor:
            return HttpResponse(status=400)
        if not count:
            # htmx leaves the page as it is.
            return HttpResponse(status=204)
        context = {
            "count": count,
            "cap": NEWER_CAP,
            "filters": filters,
            "address": address,
            "list": f"#{self.fragment}",
        }
        return render(request, "_newer.html", context)
