"""Pages of sweeps: the ledger of all runs, and one run."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from memadmin.retention.sweep.starting import RUN_KIND
from memadmin.runs.models import Run
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

VIEW = "retention.view_policy"


@operator_page(VIEW)
def run_list(request: OperatorRequest) -> HttpResponse:
    runs = Run.objects.filter(kind=RUN_KIND).order_by("-number")[:50]
    return render(request, "retention/runs.html", {"runs": runs})


@operator_page(VIEW)
def run(request: OperatorRequest, number: int) -> HttpResponse:
    shown = get_object_or_404(Run, kind=RUN_KIND, number=number)
    return render(request, "retention/run.html", {"run": shown})
