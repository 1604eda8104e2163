"""Pages of redaction: form, preview, approval, progress.

The text is sent by POST and is in the page only. A redaction needs the preview of exactly the same form and the same
items: after a change the next submit is another preview, which tells the differences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import salted_hmac

from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.services import ApprovalError
from memadmin.accounts.content_access import rules
from memadmin.runs.services import ChunkUnderWay, InvalidRunState
from memadmin.runs.view_models import view_of
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.audit_events import RedactReason
from sessions_app.forms import RedactForm, RedactionApprovalForm
from sessions_app.models import Redaction, SessionRecord, Subject
from sessions_app.redaction import TextToRedact, services
from sessions_app.redaction.outcome import LeftReason, RedactionOutcome
from sessions_app.redaction.previews import RedactionPreview, find_places, record_preview
from sessions_app.redaction.shown import ShownItems
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.views import read_audit
from sessions_app.views.refusals import store_away

READ = "sessions_app.read_content"


@dataclass(frozen=True)
class Target:
    """Item, session or subject from which the text is redacted."""

    records: Callable[[], Iterable[SessionRecord]]
    """The sessions, the newest first."""
    ask: Callable[[services.RedactionRequest], Redaction]
    record: SessionRecord | None = None
    subject: Subject | None = None
    item_id: str = ""

    def form_mark(self, form: RedactForm) -> str:
        """Changes with the form and the target; the confirmation and the reason do not count."""
        about = self.record.pk if self.record else self.subject and self.subject.pk
        parts = (about, self.item_id, form.cleaned_data["text"], form.cleaned_data["takes_compactions"])
        return salted_hmac("sessions_app.views.redaction", repr(parts), algorithm="sha256").hexdigest()

    def search(self, request: OperatorRequest, form: RedactForm, **limits: Any) -> RedactionPreview:
        """Raises UnknownItem."""
        text = form.cleaned_data["text"]
        return find_places(
            self.records(),
            TextToRedact.parse(text) if text else None,
            by=request.user,
            granted=access.granted_to(request.user),
            item_id=self.item_id,
            **limits,
        )


@dataclass(frozen=True)
class SeenPreview:
    """Signed digest of a preview, which the form of the page sends back."""

    form: str
    digest: str
    places: int
    items: int
    searched: int
    is_cut_short: bool
    marks: list[str]
    """Beginnings of the marks of the items on the page."""

    @classmethod
    def at(cls, preview: RedactionPreview, form_mark: str) -> SeenPreview:
        marks = list(dict.fromkeys(each.mark for each in preview.contexts))
        shown = preview.shown.digest
        return cls(form_mark, shown, preview.places, preview.items, preview.searched, preview.is_cut_short, marks)

    def signed(self) -> str:
        return signing.dumps(vars(self), salt="sessions_app.views.redaction", compress=True)

    @classmethod
    def from_signed(cls, text: str) -> SeenPreview | None:
        """None for a text that is no signed preview."""
        try:
            return cls(**signing.loads(text, salt="sessions_app.views.redaction"))
        except signing.BadSignature:
            return None


def step_of(request: HttpRequest) -> str:
    """The step that the submitted form asks for: the preview changes nothing."""
    return "redact text in sessions" if "redact" in request.POST else "preview a redaction"


@operator_page(READ, services.REDACT, methods="GET, POST")
@recently_authenticated(doing=step_of)
def redact_item(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    """Redacts one item: all its text, or one text in it."""
    record = access.session_for(request.user, record_id)

    try:
        services.require_item(record, item_id)
        return redact(
            request,
            Target(
                lambda: [record],
                partial(services.redact_item, record, item_id),
                record=record,
                item_id=item_id,
            ),
        )
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return store_away(request, record, away)


@operator_page(READ, services.REDACT, methods="GET, POST")
@recently_authenticated(doing=step_of)
def redact_session(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Redacts a text in all items of a session."""
    record = access.session_for(request.user, record_id)
    return redact(request, Target(lambda: [record], partial(services.redact_in_session, record), record=record))


@operator_page(READ, services.REDACT, methods="GET, POST")
@recently_authenticated(doing=step_of)
def redact_subject(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    """Redacts a text in all sessions of a subject."""
    subject = access.subject_for(request.user, subject_id)
    records = SessionRecord.objects.on_record().about(subject).newest_first().with_names()
    every = partial(records.iterator, chunk_size=100)
    return redact(request, Target(every, partial(services.redact_about, subject), subject=subject))


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
    takes, status = form.cleaned_data["takes_compactions"], 200
    seen = SeenPreview.from_signed(request.POST.get("looked", "")) if "redact" in request.POST else None
    if seen is None:
        preview = target.search(request, form)
    else:
        # As far as the person looked, however long that takes now.
        most = seen.searched if seen.is_cut_short else None
        preview = target.search(request, form, seconds=None, most=most)
        if seen.form == target.form_mark(form) and seen.digest == preview.shown.digest:
            try:
                return redirect(target.ask(form.request_by(request.user, preview)))
            except services.ConfirmationMismatch as problem:
                form.add_error("typed", str(problem))
                status = 422
        else:
            context["changed_form"] = seen.form != target.form_mark(form)
            context["before"] = seen
    show_preview(request, preview, subject=target.subject, record=target.record if target.item_id else None)
    # The form is filled in: what comes next is the preview, or the confirmation below it.
    form.fields["text"].widget.attrs.pop("autofocus", None)
    context |= {
        "preview": preview,
        "token": SeenPreview.at(preview, target.form_mark(form)).signed(),
        "has_changed": "before" in context or ("redact" in request.POST and seen is None),
        "size": preview.size(takes_compactions=takes),
        "confirmation": services.confirmation(preview.size(takes_compactions=takes)),
        "must_be_typed": services.must_be_typed(preview, takes_compactions=takes),
        "needs_second_person": services.needs_second_person(preview, takes_compactions=takes),
        "alone_limit": settings.REDACT_ALONE_PLACES,
    }
    return render(request, "sessions/redact.html", context, status=status)


def show_preview(
    request: OperatorRequest, preview: RedactionPreview, *, subject: Subject | None, record: SessionRecord | None
) -> None:
    """Records the texts that the page shows; of the whole text of an item as of the page of that item.

    Raises what `rules` raise, and AuditUnavailable.
    """
    purpose = rules.opening(request, record.pk) if record else rules.purpose_of(request)
    read_audit.snippets(
        request, {each.record.pk: each.record for each in preview.contexts}.values(), access.granted_to(request.user)
    )
    record_preview(preview, by=request.user, subject=subject, purpose=purpose)


@operator_page(READ, services.REDACT)
def redaction(request: OperatorRequest, redaction_id: UUID) -> HttpResponse:
    """Approval of a redaction, its progress, and its result with exceptions at the end. Reloads itself until then."""
    return redaction_page(request, access.redaction_for(request.user, redaction_id))


def redaction_page(
    request: OperatorRequest, asked: Redaction, *, form: RedactionApprovalForm | None = None, problem: str = ""
) -> HttpResponse:
    """The page, with the places only where the whole page is shown: a refresh of the progress needs no search."""
    outcome = RedactionOutcome.of(asked.run)
    context: dict[str, Any] = {
        "redaction": asked,
        "item": view_of(asked.run, request.user),
        "reason": dict(RedactReason.choices).get(asked.reason, asked.reason),
        "outcome": outcome,
        "left": [(sentence_of(why), store, count) for (why, store), count in sorted(outcome.reasons.items())],
        "record": services.sessions_of(asked).with_names().first() if asked.record_id else None,
        "problem": problem,
    }
    if asked.is_awaiting and not request.htmx:
        steps = approvals.steps_for(asked, request.user)
        first = RedactionApprovalForm(auto_id="approve-%s", initial={"shown": steps.shown})
        context |= {
            "steps": steps,
            "preview": preview_of(request, asked),
            "confirmation": services.confirmation(asked.shown_places),
            "form": (form or first) if steps.decide else None,
            "alone_limit": settings.REDACT_ALONE_PLACES,
        }
    status = 422 if form else 409 if problem else 200
    return render_page_or_fragment(request, "sessions/redaction.html", context, fragment="state", status=status)


def preview_of(request: OperatorRequest, asked: Redaction) -> RedactionPreview:
    """Places of the requester's preview that are unchanged, for the person who approves them."""
    try:
        preview = find_places(
            services.sessions_of(asked).newest_first().with_names().iterator(chunk_size=100),
            TextToRedact.parse(asked.text) if asked.text else None,
            by=request.user,
            granted=access.granted_to(request.user),
            item_id=asked.item_id,
            only=ShownItems.from_json(asked.shown),
        )
    except UnknownItem:
        preview = RedactionPreview()
    record = services.sessions_of(asked).first() if asked.item_id else None
    show_preview(request, preview, subject=asked.subject, record=record)
    return preview


@operator_page(READ, services.REDACT, methods="POST")
@recently_authenticated(doing="approve a redaction")
def approve(request: OperatorRequest, redaction_id: UUID) -> HttpResponse:
    """Approves a redaction as the second person."""
    asked = access.redaction_for(request.user, redaction_id)
    form = RedactionApprovalForm(request.POST, auto_id="approve-%s")
    if not form.is_valid():
        return redaction_page(request, asked, form=form)
    try:
        services.approve_redaction(asked, by=request.user, **form.cleaned_data)
    except services.ConfirmationMismatch as problem:
        form.add_error("typed", str(problem))
        return redaction_page(request, asked, form=form)
    except ApprovalError as problem:
        return redaction_page(request, access.redaction_for(request.user, redaction_id), problem=str(problem))
    messages.success(request, "The redaction was approved. It begins now.")
    return redirect(asked)


@operator_page(READ, services.REDACT, methods="POST")
def decline(request: OperatorRequest, redaction_id: UUID) -> HttpResponse:
    """Ends a redaction that awaits approval; nothing was redacted, and its text is deleted."""
    asked = access.redaction_for(request.user, redaction_id)
    try:
        services.decline_redaction(asked, by=request.user)
    except (ApprovalError, InvalidRunState, ChunkUnderWay) as problem:
        return redaction_page(request, access.redaction_for(request.user, redaction_id), problem=str(problem))
    messages.success(request, "The redaction was declined. Nothing was redacted.")
    return redirect(asked)


def sentence_of(why: str) -> str:
    return dict(LeftReason.choices).get(why, why)
