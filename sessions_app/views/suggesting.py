"""Suggestions of subjects while a person types an ID: the options below the field."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.forms import SuggestForm
from sessions_app.models import SubjectAlias
from sessions_app.search.identifiers import aliases_like
from sessions_app.views import read_audit

MOST_SUGGESTED = 8


@operator_page("sessions_app.view_subject", methods="POST")
def suggest_subjects(request: OperatorRequest) -> HttpResponse:
    """The closest IDs that contain the text; a short text has to be the whole ID.

    By POST, as an ID may be a name: it is in no address. One query along an index, and one for the event.
    """
    form = SuggestForm(request.POST)
    found: list[SubjectAlias] = []
    if form.is_valid() and (typed := form.cleaned_data["q"]):
        found = list(aliases_like(typed)[:MOST_SUGGESTED])
    read_audit.places(found, [], [])
    return render(request, "sessions/_subject_options.html", {"aliases": found})
