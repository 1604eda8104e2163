"""Page of one event with its proof."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from memadmin.audit.audit_events import EVENT_PROOF_EXPORTED, EVENT_VIEWED
from memadmin.audit.log.erasing import ErasureReason, details_within, name_erasure, why_name_stays
from memadmin.audit.log.event_details import details_of
from memadmin.audit.log.label_registry import Names
from memadmin.audit.log.recording import before_showing
from memadmin.audit.models import ActorKind, AuditActor, AuditEvent
from memadmin.audit.pages import access
from memadmin.audit.pages.listing import further_records, listed
from memadmin.audit.transparency import checkpoints
from memadmin.audit.transparency.proofs import EventProof, NotProvableYet, proof_of
from memadmin.audit.transparency.tree_store import TreeDamaged
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

SHOWN_RECORDS = 50
SHOWN_ROWS = 50


@operator_page("audit.view_auditevent")
def event(request: OperatorRequest, event_id: UUID) -> HttpResponse:
    return event_page(request, access.event_for(request.user, event_id))


def event_page(request: OperatorRequest, shown: AuditEvent, *, problem: str = "", status: int = 200) -> HttpResponse:
    """The page of one event. Details may contain personal data, so opening it is recorded."""
    before, after = AuditEvent.objects.around(shown)
    before_showing(EVENT_VIEWED, by=request.user, target=shown, subject=shown.subject_ref)
    latest = checkpoints.latest()
    signed_size = latest.size if latest else 0
    names = Names(request.user)
    refs = further_records(shown)
    names.want_any(refs[:SHOWN_RECORDS])
    (row,) = listed([shown], names, signed_size=signed_size)
    parts = list(AuditEvent.objects.rows_of(shown)[: SHOWN_ROWS + 1])
    context = {
        "event": shown,
        "row": row,
        "also_shown": [(names.of_any(ref), ref) for ref in refs[:SHOWN_RECORDS]],
        "not_listed": len(refs[SHOWN_RECORDS:]),
        "details": details_of(shown, request.user),
        "parts": listed(parts[:SHOWN_ROWS], names, signed_size=signed_size),
        "has_more_parts": len(parts) > SHOWN_ROWS,
        "before": before,
        "after": after,
        "problem": problem,
        "name_erased": name_erasure(shown.actor_ref) if row.who.is_erased else None,
    }
    if request.user.has_perm("audit.erase_beside_log"):
        context |= what_may_go(shown)
    try:
        proof = proof_of(shown)
    except (NotProvableYet, TreeDamaged) as problem:
        context["not_provable"] = problem
    else:
        context |= {
            "proof": proof,
            "anchored": bool(proof.anchors),
            "steps": steps_of(proof),
            "leaf": proof.leaf.hex(),
            "root": proof.checkpoint.root.hex(),
        }
    return render(request, "audit/event.html", context, status=status)


def what_may_go(shown: AuditEvent) -> dict[str, object]:
    """Erasable data of an event. Three queries."""
    actor = AuditActor.objects.filter(ref=shown.actor_ref, kind=ActorKind.PERSON).first()
    return {
        "erasable_details": details_within(shown).count(),
        "erasable_name": actor,
        "why_name_stays": why_name_stays(actor) if actor else "",
        "erasure_reasons": ErasureReason.choices,
    }


@operator_page("audit.view_auditevent")
def proof(request: OperatorRequest, event_id: UUID) -> HttpResponse:
    """The proof as a file for the stand-alone verifier; without details, which may contain personal data."""
    shown = access.event_for(request.user, event_id)
    before_showing(EVENT_PROOF_EXPORTED, by=request.user, target=shown, subject=shown.subject_ref)
    try:
        proof = proof_of(shown)
    except (NotProvableYet, TreeDamaged) as problem:
        messages.warning(request, str(problem))
        return redirect(shown)
    response = HttpResponse(proof.as_file(), content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{proof.file_name}"'
    return response


@dataclass(frozen=True, slots=True)
class ProofStep:
    """One hash on the path from a leaf to the root, and its side."""

    side: str
    hash: str


def steps_of(proof: EventProof) -> list[ProofStep]:
    """The steps of RFC 9162 (2.1.3.2) along the path."""
    steps = []
    position, last = proof.index, proof.checkpoint.size - 1
    for sibling in proof.path:
        is_left = bool(position & 1) or position == last
        steps.append(ProofStep("left" if is_left else "right", sibling.hex()))
        while is_left and not position & 1 and position:
            position, last = position >> 1, last >> 1
        position, last = position >> 1, last >> 1
    return steps
