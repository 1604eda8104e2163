"""Denied approvals are recorded where no transaction is open, as in a request."""

from __future__ import annotations

import pytest

from memadmin.accounts.approvals.services import NotAllowed
from memadmin.audit.models import AuditEvent
from memadmin.retention.holds.services import release_hold, request_release
from memadmin.retention.policies.services import ApprovedByProposer, approve_change
from tests.approvals import shown
from tests.builders import make_subject
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import in_force, proposed


@pytest.mark.django_db(transaction=True)
def test_own_change_and_own_release_are_denied_and_recorded() -> None:
    officer = person("compliance")
    with pytest.raises(ApprovedByProposer):
        approve_change(proposed(in_force("Chats", days=365), by=officer), by=officer)
    hold = request_release(make_hold(make_subject("cust_1"), by=officer), reason="settled", by=officer)
    with pytest.raises(NotAllowed):
        release_hold(hold, by=officer, shown=shown(hold))
    for name in ("retention.change_denied", "approval.decided"):
        assert AuditEvent.objects.get(type=name).outcome == "denied"
