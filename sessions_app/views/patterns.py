"""Actions on the patterns that read the subject from session ids: try, save, delete, reorder."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.forms import PatternForm
from sessions_app.models import SubjectKind
from sessions_app.patterns import PatternError
from sessions_app.services import patterns
from sessions_app.views.refusals import refused
from sessions_app.views.stores import store_context


@operator_page("sessions_app.change_sessionidpattern", methods="POST")
def try_pattern(request: OperatorRequest, name: str, pattern_id: int | None = None) -> HttpResponse:
    """Page of the store with the fields that the pattern reads from its newest sessions. Nothing is saved."""
    shown = access.store_for(request.user, name)
    form = PatternForm(request.POST)
    form.errors.pop("name", None)  # It takes no name to try one.
    context = store_context(shown) | {"form": form}
    if pattern_id is not None:
        context["edited"] = access.pattern_for(request.user, shown, pattern_id)
    try:
        context["trial"] = patterns.try_pattern(shown, request.POST.get("pattern", "").strip())
    except PatternError:
        # The form has the sentence.
        return render(request, "sessions/store.html", context, status=422)
    return render(request, "sessions/store.html", context)


@operator_page("sessions_app.change_sessionidpattern", methods="POST")
@recently_authenticated(doing="change a pattern")
def save_pattern(request: OperatorRequest, name: str, pattern_id: int | None = None) -> HttpResponse:
    """Adds a pattern, or changes the one with this id."""
    shown = access.store_for(request.user, name)
    edited = None if pattern_id is None else access.pattern_for(request.user, shown, pattern_id)
    form = PatternForm(request.POST)
    try:
        if form.is_valid():
            fields = form.cleaned_data
            kind = SubjectKind(fields["subject_kind"])
            if edited is None:
                patterns.add_pattern(
                    shown, name=fields["name"], text=fields["pattern"], subject_kind=kind, by=request.user
                )
            else:
                patterns.change_pattern(
                    edited, name=fields["name"], text=fields["pattern"], subject_kind=kind, by=request.user
                )
            messages.success(request, "Saved. The pattern is applied to sessions without a subject within seconds.")
            return redirect("sessions:store", name)
    except patterns.PatternNameTaken as taken:
        form.add_error("name", str(taken))
    except patterns.NoSuchPattern as gone:
        return refused(request, str(gone), status=409)
    context = store_context(shown) | {"form": form, "edited": edited}
    return render(request, "sessions/store.html", context, status=422)


@operator_page("sessions_app.change_sessionidpattern", methods="POST")
@recently_authenticated(doing="change a pattern")
def move_pattern_up(request: OperatorRequest, name: str, pattern_id: int) -> HttpResponse:
    pattern = access.pattern_for(request.user, access.store_for(request.user, name), pattern_id)
    try:
        patterns.move_pattern_up(pattern, by=request.user)
    except patterns.NoSuchPattern as gone:
        return refused(request, str(gone), status=409)
    return redirect("sessions:store", name)


@operator_page("sessions_app.delete_sessionidpattern", methods="POST")
@recently_authenticated(doing="delete a pattern")
def delete_pattern(request: OperatorRequest, name: str, pattern_id: int) -> HttpResponse:
    pattern = access.pattern_for(request.user, access.store_for(request.user, name), pattern_id)
    patterns.delete_pattern(pattern, by=request.user)
    messages.success(request, f"Deleted “{pattern.name}”. Sessions keep their subjects.")
    return redirect("sessions:store", name)
