"""Pages of the data map: the list with its counters, exports, the record of processing, and the form of its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.contrib import messages
from django.core.paginator import InvalidPage, Paginator
from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.timezone import now

from memadmin.erasure.data_map import checking, exporting, services
from memadmin.erasure.data_map.forms import DataMapFilter, ProcessingRecordForm
from memadmin.erasure.data_map.places import Location, Place, count_columns, places, totals_of
from memadmin.erasure.permissions import CHANGE_RECORD, VIEW_MAP
from memadmin.web.downloads import as_download
from memadmin.web.pages import operator_page
from memadmin.web.paging import BadCursor
from memadmin.web.requests import OperatorRequest

PAGE = 25


@dataclass(frozen=True, slots=True)
class Group:
    """Places of one location on a page. `count` is that of all its matching columns, also on other pages."""

    location: Location
    count: int
    rows: Sequence[Place]


@dataclass(frozen=True, slots=True)
class DataMapPage:
    """A page of the list, with the numbers of the adjacent pages; empty if there is none."""

    groups: Sequence[Group]
    newer: str
    older: str


def page_at(chosen: Sequence[Place], number: str) -> DataMapPage:
    """The page with this number, the first without one. Raises InvalidPage."""
    page = Paginator(chosen, PAGE).page(number or 1)
    counts = {location: count_columns(place for place in chosen if place.location is location) for location in Location}
    return DataMapPage(
        [
            Group(location, counts[location], list(group))
            for location, group in groupby(page, lambda place: place.location)
        ],
        newer=str(page.previous_page_number()) if page.has_previous() else "",
        older=str(page.next_page_number()) if page.has_next() else "",
    )


@operator_page(VIEW_MAP)
def data_map(request: OperatorRequest) -> HttpResponse:
    """Counters, the filtered list, and the head of the record."""
    filters = DataMapFilter(request.GET)
    known = places()
    chosen = filters.apply(known)
    context = {
        "filters": filters,
        "totals": totals_of(known),
        "comparison": checking.compare(known),
        "chosen": totals_of(chosen),
        "record": services.current_record(),
        "may_change": request.user.has_perm(CHANGE_RECORD),
    }
    status = 200
    if filters.problems:
        # What was typed is not repeated on a page with an error.
        filters.data, filters.cleaned_data, status = QueryDict(), {}, 400
    try:
        context["page"] = page_at(chosen, request.GET.get("cursor", ""))
    except InvalidPage:
        context["bad_cursor"], status = str(BadCursor()), 400
    return render(request, "data_map/map.html", context, status=status)


@operator_page(VIEW_MAP)
def export_csv(request: OperatorRequest) -> HttpResponseBase:
    """All columns as a table, whatever the filters."""
    return as_download(exporting.as_table(places()), f"data-map-{now():%Y-%m-%d}.csv", "text/csv")


@operator_page(VIEW_MAP)
def export_json(request: OperatorRequest) -> HttpResponseBase:
    """All columns and the head of the record as JSON, whatever the filters."""
    parts = exporting.as_json(places(), services.current_record(), now())
    return as_download(parts, f"data-map-{now():%Y-%m-%d}.json", "application/json")


@operator_page(VIEW_MAP)
def processing_record(request: OperatorRequest) -> HttpResponse:
    """The record of processing activities as one page for printing: article 30 (1) (a) to (g), and every place."""
    record = services.current_record()
    personal = [place for place in places() if place.is_personal]
    context = {
        "record": record,
        "heads": exporting.record_heads(record, places()),
        "groups": [(location, list(group)) for location, group in groupby(personal, lambda place: place.location)],
        "at": now(),
    }
    return render(request, "data_map/record.html", context)


@operator_page(CHANGE_RECORD, methods="GET, POST")
def change_record(request: OperatorRequest) -> HttpResponse:
    """The form of the head of the record."""
    record = services.current_record()
    if request.method != "POST":
        seen = record.changed_at.isoformat() if record else ""
        return form_page(request, ProcessingRecordForm(instance=record, initial={"seen": seen}))
    form = ProcessingRecordForm(request.POST)
    if not form.is_valid():
        return form_page(request, form, status=422)
    values = {name: value for name, value in form.cleaned_data.items() if name != "seen"}
    try:
        services.change_record(values, by=request.user, seen=form.cleaned_data["seen"])
    except services.RecordChanged as problem:
        return form_page(request, form, problem=str(problem), status=409)
    messages.success(request, "The record of processing was saved.")
    return redirect("data_map:map")


def form_page(
    request: OperatorRequest, form: ProcessingRecordForm, *, problem: str = "", status: int = 200
) -> HttpResponse:
    return render(request, "data_map/change.html", {"form": form, "problem": problem}, status=status)
