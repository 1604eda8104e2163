"""Denied approvals are recorded where no transaction is open, as in a request."""

from __future__ import annotations

import pytest

from memadmin.accounts.approvals.services import NotAllowed
from memadmin.audit.models import AuditEvent
from memadmin.retention.holds.services import release_hold, request_release
from tests.approvals import shown
from tests.builders import make_subject
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import approve_change, in_force, proposed


@pytest.mark.django_db(transaction=True)
def test_own_change_and_own_release_are_denied_and_recorded() -> None:
    officer = person("compliance")
    with pytest.raises(NotAllowed):
        approve_change(proposed(in_force("Chats", days=365), by=officer), by=officer)
    hold = request_release(make_hold(make_subject("cust_1"), by=officer), reason="settled", by=officer)
    with pytest.raises(NotAllowed):
        release_hold(hold, by=officer, shown=shown(hold))
    assert list(AuditEvent.objects.filter(type="approval.decided").values_list("outcome")) == [("denied",)] * 2
