"""Recall preview: memories that an agent would recall, with the reason for each rank."""

from __future__ import annotations

import time

from django.http import HttpResponse
from django.shortcuts import render

from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.pages import read_audit, view_models
from memories_app.pages.forms import RecallForm
from memories_app.recall.preview import preview_recall


@operator_page("memories_app.read_memory", methods="GET, POST")
def recall(request: OperatorRequest) -> HttpResponse:
    """The preview, by POST: messages must not be in addresses or logs."""
    form = RecallForm(
        request.POST if request.method == "POST" else None, initial={"subject": request.GET.get("of", "")}
    )
    if not form.is_valid():
        return render(request, "memories/recall.html", {"form": form}, status=422 if form.errors else 200)
    asked, began = form.cleaned_data, time.monotonic()
    alias = asked["subject"]
    preview = preview_recall(
        asked["query"],
        subject=alias and alias.subject,
        agent=asked["agent"],
        budget=asked["budget"],
        as_of=asked["as_of"],
    )
    context = {
        "form": form,
        "preview": preview,
        "subject": alias and alias.subject,
        "milliseconds": round((time.monotonic() - began) * 1000),
        **view_models.shown_preview(preview, alias.key if alias else ""),
    }
    read_audit.recalled(preview, alias and alias.subject)
    return render(request, "memories/recall.html", context)
