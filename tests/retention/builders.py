"""Legal holds for tests."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.retention.holds.services import place_hold, release_hold, request_release
from memadmin.retention.models import LegalHold
from sessions_app.models import SessionRecord, Subject
from tests.approvals import shown


def make_hold(covers: Subject | SessionRecord | str, *, by: User, reason: str = "Claim 2026-0419") -> LegalHold:
    return place_hold(covers, reason=reason, owner=by, review_on=now().date() + timedelta(days=30), by=by)


def released(hold: LegalHold, *, by: User, second: User) -> LegalHold:
    asked = request_release(hold, reason="settled", by=by)
    return release_hold(asked, by=second, shown=shown(asked))
