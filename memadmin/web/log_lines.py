"""Formatters of the log: a refused request is one line, and only a fault has a traceback. As text or as JSON.

No line has personal data. Messages of exceptions are left out, because they repeat values: a traceback has the places
in our code, the class of each exception, and the SQLSTATE of the database. An address that is no page is left out too.
"""

from __future__ import annotations

import copy
import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from memadmin import log_context, tracing
from memadmin.log_context import LogContext
from memadmin.web.request_ids import FAULTS, PROBE_PATHS, page_of

WITH_VALUES = ("22", "P0")
"""Prefixes of SQLSTATEs whose message repeats values: wrong data, and errors that functions raise."""


class TextLines(logging.Formatter):
    """A line of text; a fault has its traceback in further lines.

    Django logs permission denied, bad requests and wrong host names with a traceback, which any client can cause.
    """

    def format(self, record: logging.LogRecord) -> str:
        # A copy: other handlers get the record with its exception.
        brief = copy.copy(record)
        brief.msg, brief.args = message_of(record), ()
        brief.exc_info = brief.exc_text = brief.stack_info = None
        context = context_of(record)
        brief.context = (context and (context.request_id or context.job)) or "-"
        line = super().format(brief)
        error = fault_of(record)
        return f"{line}\n{traceback_of(error)}" if error else line


class JsonLines(logging.Formatter):
    """An object in one line: time, level, logger, message, the id of a request or job, and the traceback of a fault."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": message_of(record),
        }
        context = context_of(record)
        if context:
            line |= {
                "request_id": context.request_id,
                "job": context.job,
                "job_id": context.job_id,
                "audit_events": context.events,
            }
        line["trace_id"] = tracing.trace_id()
        request = getattr(record, "request", None)
        page = page_of(request) if isinstance(request, HttpRequest) else None
        line["page"] = getattr(record, "page", page)
        line["status"] = getattr(record, "status_code", None)
        line["milliseconds"] = getattr(record, "milliseconds", None)
        if error := fault_of(record):
            line |= {"error": name_of(error), "sqlstate": sqlstate_of(error), "traceback": traceback_of(error)}
        return json.dumps(
            {name: value for name, value in line.items() if value is not None and value != "" and value != []}
        )


def context_of(record: logging.LogRecord) -> LogContext | None:
    """What a line belongs to. Django logs most refusals once the request's own block has ended."""
    request_id = getattr(getattr(record, "request", None), "request_id", "")
    return log_context.current() or (LogContext(request_id) if request_id else None)


def message_of(record: logging.LogRecord) -> str:
    """The message in one line."""
    request = getattr(record, "request", None)
    is_page = not isinstance(request, HttpRequest) or request.resolver_match or request.path_info in PROBE_PATHS
    arguments = record.args
    if not is_page and isinstance(arguments, tuple) and arguments:
        # Django's own lines about a response; their last argument is the path.
        record = copy.copy(record)
        record.args = (*arguments[:-1], "an unknown address")
    message = record.getMessage()
    if record.name == "django.security.DisallowedHost":
        message = naming_our_setting(message)
    return " ".join(message.split("\n"))


def naming_our_setting(message: str) -> str:
    """Django's message about an unknown Host, with the name of the environment variable and what a proxy has to do."""
    return message.replace(
        " to ALLOWED_HOSTS.",
        " to MEMADMIN_ALLOWED_HOSTS. Behind a proxy, let it pass the Host header of the browser's request.",
    )


def fault_of(record: logging.LogRecord) -> BaseException | None:
    """The exception, unless it is only a refusal."""
    is_fault = getattr(record, "status_code", FAULTS) >= FAULTS
    return record.exc_info[1] if record.exc_info and is_fault else None


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception and of its causes, the first cause first."""
    return "\nThe above exception led to:\n".join(
        "".join(["Traceback (most recent call last):\n", *traceback.format_tb(each.__traceback__), describe(each)])
        for each in reversed(list(chain_of(error)))
    )


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, the last one first."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)


def describe(error: BaseException) -> str:
    """Class of an exception, with the SQLSTATE and the database's sentence if that has no values."""
    if settings.DEBUG:
        return f"{name_of(error)}: {error}"
    state = getattr(error, "sqlstate", None)
    if not state:
        return name_of(error)
    sentence = getattr(getattr(error, "diag", None), "message_primary", None)
    return f"{name_of(error)}: {state}" + (f" {sentence}" if sentence and not state.startswith(WITH_VALUES) else "")


def name_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def sqlstate_of(error: BaseException) -> str | None:
    """The SQLSTATE of the exception or of a cause of it."""
    return next((state for each in chain_of(error) if (state := getattr(each, "sqlstate", None))), None)
