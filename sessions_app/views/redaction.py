"""Pages of redaction: form, preview, progress.

The text is sent by POST and is in the page only. A redaction needs the preview of exactly the same form: after a change
the next submit is another preview.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare, salted_hmac

from memadmin.runs.view_models import view_of
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.audit_events import RedactReason
from sessions_app.forms import RedactForm
from sessions_app.models import Redaction, SessionRecord, Subject
from sessions_app.redaction import TextToRedact, services
from sessions_app.redaction.previews import RedactionPreview, preview_redaction
from sessions_app.redaction.sessions import LeftReason, RedactionOutcome
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.views.refusals import store_away

READ = "sessions_app.read_content"


@dataclass(frozen=True)
class Target:
    """Item, session or subject from which the text is redacted."""

    records: Iterable[SessionRecord]
    ask: Callable[[services.RedactionRequest], Redaction]
    record: SessionRecord | None = None
    subject: Subject | None = None
    item_id: str = ""
    state: str = ""
    """Changes with the content of the item."""

    def token(self, form: RedactForm) -> str:
        """Signature of a preview: of this form for this target."""
        about = self.record.pk if self.record else self.subject and self.subject.pk
        parts = (about, self.item_id, self.state, form.cleaned_data["text"], form.cleaned_data["takes_compactions"])
        return salted_hmac("sessions_app.views.redaction", repr(parts), algorithm="sha256").hexdigest()


@operator_page(READ, services.REDACT, methods="GET, POST")
@recently_authenticated(doing="redact text in sessions")
def redact_item(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    """Redacts one item: all its text, or one text in it."""
    record = access.session_for(request.user, record_id)

    try:
        state = services.state_of_item(record, item_id)
        return redact(
            request,
            Target(
                [record], partial(services.redact_item, record, item_id), record=record, item_id=item_id, state=state
            ),
        )
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return store_away(request, record, away)


@operator_page(READ, services.REDACT, methods="GET, POST")
@recently_authenticated(doing="redact text in sessions")
def redact_session(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Redacts a text in all items of a session."""
    record = access.session_for(request.user, record_id)
    return redact(request, Target([record], partial(services.redact_in_session, record), record=record))


@operator_page(READ, services.REDACT, methods="GET, POST")
@recently_authenticated(doing="redact text in sessions")
def redact_subject(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    """Redacts a text in all sessions of a subject."""
    subject = access.subject_for(request.user, subject_id)
    records = SessionRecord.objects.on_record().about(subject).newest_first().with_names().iterator(chunk_size=100)
    return redact(request, Target(records, partial(services.redact_about, subject), subject=subject))


def redact(request: OperatorRequest, target: Target) -> HttpResponse:
    """The form; submitted, the preview; submitted again, the redaction is requested. Raises UnknownItem,
    StoreUnavailable.
    """
    form = RedactForm(request.POST or None, is_item=bool(target.item_id))
    context: dict[str, Any] = {"form": form, "target": target, "record": target.record, "subject": target.subject}
    if request.method != "POST":
        return render(request, "sessions/redact.html", context)
    if not form.is_valid():
        return render(request, "sessions/redact.html", context, status=422)
    token = target.token(form)
    if "redact" in request.POST and constant_time_compare(token, request.POST.get("looked", "")):
        return redirect(target.ask(form.request_by(request.user)))
    context |= {
        "preview": preview_of(request, target, form.cleaned_data["text"]),
        "token": token,
        "has_changed": "redact" in request.POST,
    }
    return render(request, "sessions/redact.html", context)


def preview_of(request: OperatorRequest, target: Target, text: str) -> RedactionPreview:
    return preview_redaction(
        target.records,
        TextToRedact.parse(text) if text else None,
        by=request.user,
        granted=access.granted_to(request.user),
        item_id=target.item_id,
        subject=target.subject,
    )


@operator_page(READ, services.REDACT)
def redaction(request: OperatorRequest, redaction_id: UUID) -> HttpResponse:
    """Progress of a redaction, and its result with exceptions at the end. Reloads itself until then."""
    asked = access.redaction_for(request.user, redaction_id)
    outcome = RedactionOutcome.of(asked.run)
    context = {
        "redaction": asked,
        "item": view_of(asked.run, request.user),
        "reason": dict(RedactReason.choices).get(asked.reason, asked.reason),
        "outcome": outcome,
        "left": [(sentence_of(why), store, count) for (why, store), count in sorted(outcome.reasons.items())],
        "record": services.sessions_of(asked).with_names().first() if asked.record_id else None,
    }
    return render_page_or_fragment(request, "sessions/redaction.html", context, fragment="state")


def sentence_of(why: str) -> str:
    return dict(LeftReason.choices).get(why, why)
