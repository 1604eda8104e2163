"""Requests of three customers, so that an erasure can be followed from its receipt to its end with two browsers."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.accounts.approvals.services import shown_now
from memadmin.demo import agents
from memadmin.demo.script import Exchange, says
from memadmin.demo.stories.support import ticket
from memadmin.erasure import services
from memadmin.erasure.models import SubjectRequest
from sessions_app.models import Subject
from sessions_app.services.subjects import UnknownKey, known_subject

OPEN, AWAITING, ERASED = "cust_70012", "cust_70031", "cust_70044"
"""Customers: whose request has just come in, waits for the second person, and was carried out."""

STORIES = tuple(
    ticket(
        customer,
        number,
        timedelta(days=days, hours=1),
        Exchange(question, [[says(answer)]]),
    )
    for customer, number, days, question, answer in (
        (OPEN, "T-91002", 6, "Do you sell the blue kettle in green, too?", "Only in blue, but the cups come in green."),
        (AWAITING, "T-91013", 5, "My parcel was wet when it came.", "I am sorry. A new one leaves the shop today."),
        (AWAITING, "T-91020", 4, "The new parcel is here, and dry.", "Good to hear. I close both tickets."),
        (ERASED, "T-91031", 3, "Please change my delivery address.", "Done; the next parcel goes there."),
    )
)


def open_cases(*, role: str = "") -> int:
    """Tells the stories of three customers and opens their requests, unless there is any request; returns how many.

    The erasure of the last one is carried out by the worker.
    """
    if SubjectRequest.objects.exists():
        return 0
    agents.run_all(STORIES, role=role)
    try:
        subjects = [known_subject("user", key) for key in (OPEN, AWAITING, ERASED)]
    except UnknownKey:
        # A real model did not respond; the next start continues.
        return 0
    officer, second = User.objects.get(username="compliance"), User.objects.get(username="compliance-2")
    opened(subjects[0], days_ago=2, by=officer)
    awaiting(subjects[1], days_ago=19, by=officer)
    request = awaiting(subjects[2], days_ago=8, by=officer)
    services.approve_request(request, by=second, typed=ERASED, shown=shown_now(request), window=timedelta(0))
    return len(subjects)


def opened(subject: Subject, *, days_ago: int, by: User) -> SubjectRequest:
    request, _ = services.open_request(
        SubjectRequest.Kind.ERASURE,
        subject,
        by=by,
        channel=SubjectRequest.Channel.EMAIL,
        received_on=now().date() - timedelta(days=days_ago),
        ground=SubjectRequest.Ground.CONSENT,
    )
    return request


def awaiting(subject: Subject, *, days_ago: int, by: User) -> SubjectRequest:
    request = opened(subject, days_ago=days_ago, by=by)
    request = services.check_identity(request, note="called back under the number of the contract", by=by)
    services.make_preview(request, by=by)
    return services.request_approval(request, by=by)
