"""The demo places a legal hold, so that its page is not empty on the first visit."""

from __future__ import annotations

import pytest

from memadmin.demo import preparing
from memadmin.demo.stories.support import WHERE_IS_MY_ORDER
from memadmin.retention.models import LegalHold
from tests.builders import make_session

pytestmark = pytest.mark.release


@pytest.mark.django_db
def test_one_session_is_held_however_often_the_demo_starts() -> None:
    preparing.make_logins("demo")
    preparing.hold_a_session()
    assert not LegalHold.objects.exists()
    record = make_session(WHERE_IS_MY_ORDER.session_id)
    preparing.hold_a_session()
    preparing.hold_a_session()
    hold = LegalHold.objects.get()
    assert (hold.record_id, str(hold.placed_by)) == (record.pk, "compliance")
