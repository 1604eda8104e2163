"""The demo opens requests of three customers, so that the pages of requests are not empty on the first visit."""

from __future__ import annotations

import pytest

from memadmin.demo import cases, preparing
from memadmin.demo.cases import AWAITING, ERASED, OPEN
from memadmin.erasure.models import SubjectRequest
from sessions_app.models import SessionRecord
from tests.agents import attach_main_store
from tests.erasure.builders import work_off

pytestmark = pytest.mark.release


def test_one_is_open_one_waits_for_the_second_person_and_one_is_erased(agent_tables: None) -> None:
    assert "compliance-2" in preparing.make_logins("demo")
    attach_main_store()
    assert cases.open_cases() == 3
    assert cases.open_cases() == 0
    states = {request.subject.label: request for request in SubjectRequest.objects.all()}
    assert {key: request.state for key, request in states.items()} == {
        OPEN: "received",
        AWAITING: "awaiting",
        ERASED: "approved",
    }
    assert states[AWAITING].preview["holders"][0]["details"]["sessions"] == 2
    work_off(states[ERASED])
    assert states[ERASED].state == "scanning"
    assert states[ERASED].receipt
    assert not SessionRecord.objects.filter(session_id__contains=ERASED).exists()
