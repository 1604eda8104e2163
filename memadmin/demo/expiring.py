"""Retention policies of the demo shop, one change that waits for a second person, and the first runs.

The runs are real: they delete old tickets that the preparation has told for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from memadmin.accounts.approvals.services import shown_now
from memadmin.demo import agents
from memadmin.demo.script import Exchange, Story, says
from memadmin.demo.stories.support import ticket
from memadmin.retention.models import RetentionPolicy
from memadmin.retention.policies import services
from memadmin.retention.policies.drafts import content_from
from memadmin.retention.sweep.starting import request_sweep
from memadmin.runs import engine
from sessions_app.models import SessionRecord
from sessions_app.services.sessions import label_sessions

CLOSED, DISPUTE = "closed", "dispute"

CLOSED_TICKETS = "Closed tickets"

POLICIES: dict[str, dict[str, Any]] = {
    CLOSED_TICKETS: {
        "target": "sessions",
        "label": CLOSED,
        "action": "delete",
        "length": "180 days",
        "note": "Half a year is enough for questions about an order.",
    },
    "Payment disputes": {
        "target": "sessions",
        "label": DISPUTE,
        "action": "keep",
        "minimum": "13 months",
        "minimum_reference": "Card scheme rules: time limit of chargebacks",
    },
    "Preferences": {
        "target": "memories",
        "kind": "preference",
        "clock": "recalled",
        "action": "revalidate",
        "length": "180 days",
        "note": "What a customer liked half a year ago may have changed.",
    },
}
"""By name, in the values of `memadmin.retention.policies.drafts`."""


def old(number: str, days: int, question: str, answer: str) -> Story:
    return ticket(f"cust_6{number[-4:]}", number, timedelta(days=days, hours=1), Exchange(question, [[says(answer)]]))


FIRST, SECOND, LATER = (
    (
        old("T-80102", 420, "Is the shop open on Whit Monday?", "No, we are back on Tuesday at nine."),
        old("T-80117", 391, "My invoice has the wrong company name.", "Here is a corrected one."),
        old("T-80125", 340, "Can I pick the parcel up myself?", "Yes, at the harbour, from ten to six."),
    ),
    (
        old("T-80211", 262, "The grinder is louder than the old one.", "It has a stronger motor; that is normal."),
        old("T-80230", 215, "Do you ship to Norway?", "Yes, within a week."),
    ),
    (
        old("T-80254", 240, "I was charged twice for one order.", "The second charge is on its way back to you."),
        old("T-80302", 150, "Which filter fits the small dripper?", "Size 1, in paper or cloth."),
        old("T-80311", 95, "Please cancel the subscription of beans.", "Done; the last parcel came in August."),
    ),
)
"""Tickets that the first run deletes, those that the second deletes, and those that stay for now."""

DISPUTED = LATER[0]


def keep_policies(*, role: str = "") -> int:
    """Puts the policies in force, proposes a change and runs them twice, unless there is any policy; returns how many.

    Without the old tickets, as when a real model did not respond, nothing is done, and the next start continues.
    """
    if RetentionPolicy.objects.filter(is_default=False).exists():
        return 0
    officer, second = User.objects.get(username="compliance"), User.objects.get(username="compliance-2")
    if not tell(FIRST, by=officer, role=role):
        return 0
    put_in_force(by=officer, second=second)
    sweep()
    tell(SECOND, by=officer, role=role)
    sweep()
    tell(LATER, by=officer, role=role)
    propose_a_change(by=second)
    return len(POLICIES)


def tell(stories: Sequence[Story], *, by: User, role: str) -> int:
    """Plays old tickets and labels their sessions; returns how many there are."""
    agents.run_all(stories, role=role)
    ids = [story.session_id for story in stories]
    records = list(SessionRecord.objects.on_record().filter(session_id__in=ids))
    label_sessions(records, CLOSED, by=by)
    label_sessions([record for record in records if record.session_id == DISPUTED.session_id], DISPUTE, by=by)
    return len(records)


@transaction.atomic
def put_in_force(*, by: User, second: User) -> None:
    """The policies through the same change control as everywhere; only the grace period is left out."""
    for name, values in POLICIES.items():
        version = services.propose_policy(name, content_from(values, stores=[]), reason="Start of the shop", by=by)
        if version.awaits_approval:
            services.approve_change(version, by=second, shown=shown_now(version), confirmation=name, after=timedelta(0))


def sweep() -> None:
    engine.carry_out(request_sweep())


def propose_a_change(*, by: User) -> None:
    """A shorter time, which waits for the other compliance officer."""
    policy = RetentionPolicy.objects.get(name=CLOSED_TICKETS)
    content = content_from({**POLICIES[CLOSED_TICKETS], "length": "90 days"}, stores=[])
    services.propose_change(policy, content, reason="Questions about old orders come within three months", by=by)
