"""Subject filter of the session list, by a part of an id; the address contains the subject's own id only."""

from __future__ import annotations

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.filters import SessionFilter
from sessions_app.forms import SubjectSearchForm
from sessions_app.models import SubjectAlias
from sessions_app.search.identifiers import aliases_like
from sessions_app.services.subjects import merge_target
from sessions_app.views import read_audit
from sessions_app.views.refusals import refused

MOST_OFFERED = 10


@operator_page("sessions_app.read_content", "sessions_app.view_subject", methods="POST")
def filter_by_subject(request: OperatorRequest) -> HttpResponse:
    """Adds a subject to the filters of the list; if several IDs contain the input, the page offers the closest ones."""
    form = SubjectSearchForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    typed = form.cleaned_data["about"]
    filters = SessionFilter(QueryDict(form.cleaned_data["filters"]))
    found = list(aliases_like(typed)[: MOST_OFFERED + 1])
    read_audit.places(found, [], [])
    exact = [alias for alias in found if alias.key == typed]
    if not found:
        return refused(request, f"No subject has “{typed}” in one of its IDs.")
    if len(exact or found) == 1:
        return redirect(address_of(*(exact or found), filters=filters))
    offered = [(alias, address_of(alias, filters=filters)) for alias in found[:MOST_OFFERED]]
    context = {"offered": offered, "has_more": len(found) > MOST_OFFERED}
    return render(request, "sessions/filter_by_subject.html", context)


def address_of(alias: SubjectAlias, *, filters: SessionFilter) -> str:
    """Address of the list under the current filters, with this subject in place of any other subject filter."""
    query = QueryDict(filters.query_string(without="subject"), mutable=True)
    query.pop("without_subject", None)
    query["subject"] = str(merge_target(alias.subject).pk)
    return f"{reverse('sessions:list')}?{query.urlencode()}"
