"""Downloads of filtered events and of the whole log. Each is recorded before the first byte is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.timezone import now

from memadmin.audit.audit_events import LOG_EXPORTED
from memadmin.audit.log.recording import before_showing
from memadmin.audit.pages import exporting
from memadmin.audit.pages.forms import AuditFilter
from memadmin.audit.pages.views.log import base_context
from memadmin.audit.transparency import log_export, verifier
from memadmin.web.downloads import as_download
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest


@operator_page("audit.export_log")
@recently_authenticated(doing="download the log", file=True)
def export_jsonl(request: OperatorRequest) -> HttpResponseBase:
    """One event a line, newest first, each with its proof."""
    return export(request, "jsonl", "application/jsonl", exporting.as_json_lines)


@operator_page("audit.export_log")
@recently_authenticated(doing="download the log", file=True)
def export_csv(request: OperatorRequest) -> HttpResponseBase:
    """A table for reading, without proofs."""
    return export(request, "csv", "text/csv", exporting.as_table)


def export(
    request: OperatorRequest, extension: str, content_type: str, lines_of: Callable[[AuditFilter], Iterator[str]]
) -> HttpResponseBase:
    filters = AuditFilter(request.GET, request.user)
    if filters.problems:
        return render(request, "audit/list.html", base_context(filters), status=400)
    before_showing(
        LOG_EXPORTED,
        by=request.user,
        subject=filters.active.get("subject"),
        reason_code=extension,
        details={"filter": filters.in_full()},
    )
    return as_download(lines_of(filters), f"audit-log-{now():%Y-%m-%d}.{extension}", content_type)


@operator_page("audit.export_log")
@recently_authenticated(doing="download the log", file=True)
def export_log(request: OperatorRequest) -> HttpResponseBase:
    """The whole log in one snapshot for the stand-alone verifier; without details, which may contain personal data."""
    before_showing(LOG_EXPORTED, by=request.user, reason_code="whole")
    return as_download(log_export.as_json_lines(), f"audit-log-whole-{now():%Y-%m-%d}.jsonl", "application/jsonl")


@operator_page("audit.view_auditevent")
def download_verifier(request: OperatorRequest) -> HttpResponseBase:
    """The stand-alone verifier: one file without dependencies on memadmin."""
    return as_download([Path(verifier.__file__).read_text()], "verifier.py", "text/x-python")
