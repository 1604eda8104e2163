"""Where the review queue is measured, and what there is to decide about. In a process of its own, on the bench's
database."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.urls import reverse

from memadmin.web.paging import sign_cursor, sort_keys
from memories_app.models import Memory
from memories_app.review.views.queue import PROPOSALS
from tests.benchmarks.prepare import PLACES, cookie_of


def tell(decisions: int) -> dict[str, Any]:
    """Where the pages are, so many proposals to decide about, each with what is read of it, and the cookie of a
    reviewer."""
    reviewer = User.objects.get_or_create(username="bench-reviewer")[0]
    reviewer.groups.set([Group.objects.get(name="reviewer")])
    # The oldest, as a reviewer meets them; of risky ones the first decision would only wait for a second.
    simple = Memory.objects.awaiting_review().filter(risk_flags=[], subject__isnull=False)
    proposals = [
        (str(pk), reverse("reviews:review", args=[pk]), {"content_hash": content_hash})
        for pk, content_hash in simple.values_list("pk", "content_hash")[:decisions]
    ]
    return {
        "cookie": cookie_of(reviewer, settings.AUTHENTICATION_BACKENDS[0]),
        "pages": addresses(),
        "proposals": proposals,
    }


def addresses() -> dict[str, list[str]]:
    queue = reverse("reviews:list")
    waiting = Memory.objects.awaiting_review()
    keys = sort_keys(waiting)
    count = waiting.count()
    deep = [waiting[count * place // (PLACES + 1)] for place in range(1, PLACES + 1)]
    return {
        "first page": [queue],
        "deep": [f"{queue}?cursor={sign_cursor('older', each, keys, PROPOSALS.salt)}" for each in deep],
        "as a table": [f"{queue}?as=table"],
        "one proposal": [reverse("reviews:review", args=[each.pk]) for each in deep],
    }
