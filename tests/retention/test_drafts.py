"""Drafts of policies: what can be said, and the sentence for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from memadmin.retention.models import PolicyVersion
from memadmin.retention.policies.drafts import DraftError, content_from, values_of
from tests.retention.policies import in_force

SESSIONS = {"target": "sessions", "action": "delete", "length": "90 days"}
MEMORIES = {"target": "memories", "action": "revalidate", "length": "6 months"}


def problems(**values: Any) -> dict[str, str]:
    """Mistakes in a policy of sessions with these values instead of its own, by field."""
    with pytest.raises(DraftError) as refused:
        content_from({**SESSIONS, **values}, stores=["main"], is_default=values.get("name") == "default")
    return dict(refused.value.problems)


def test_the_usual_clock_is_taken_where_none_is_given() -> None:
    assert content_from(SESSIONS, stores=[]) == {
        "target": "sessions",
        "clock": "last_activity",
        "action": "delete",
        "length_count": 90,
        "length_unit": "days",
    }


def test_every_field_has_its_column() -> None:
    values = {
        **SESSIONS,
        **{"store": "main", "session_pattern": "t-*", "agent": "bot", "label": "vip", "subject_kind": "user"},
        **{"is_encrypted": False, "clock": "created", "minimum": "13 months", "minimum_reference": "scheme rules"},
        "note": "first line\r\nsecond line",
    }
    content = content_from(values, stores=["main"])
    assert (content["minimum_count"], content["minimum_unit"], content["is_encrypted"]) == (13, "months", False)
    assert content["note"] == "first line\nsecond line"
    assert set(content) == set(PolicyVersion.CONTENT) - {"kind", "status", "is_end"}


@pytest.mark.django_db
def test_the_values_of_a_version_make_the_same_version() -> None:
    columns: dict[str, Any] = {
        "label": "vip",
        "minimum_count": 1,
        "minimum_unit": "years",
        "minimum_reference": "law",
        "note": "n",
    }
    version = in_force("VIP", days=1, **columns)
    content = content_from(values_of(version), stores=[])
    assert {name: getattr(version, name) for name in content} == content
    assert values_of(version)["length"] == "1 day"


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"colour": "red"}, "colour", 'There is no field "colour".'),
        ({"target": "chats"}, "target", 'There is no target "chats". Choose one of: '),
        ({"target": ["sessions"]}, "target", "There is no target"),
        ({"target": ""}, "target", "A policy needs a target."),
        ({"clock": "written"}, "clock", 'Sessions have no clock "written". Choose one of: last_activity, created.'),
        ({"action": "redact"}, "action", 'Sessions have no action "redact". Choose one of: keep, delete.'),
        ({"action": None}, "action", "A policy needs an action."),
        ({"length": "0 days"}, "length", "The length is between 1 and 36,600 days."),
        ({"length": "10000 years"}, "length", "The length is between 1 and 100 years."),
        ({"length": f"1{'0' * 5000} years"}, "length", "The length is between 1 and 100 years."),
        ({"length": "-1 days"}, "length", "The length is a number of days, months or years"),
        ({"length": 90}, "length", "The length is a number of days, months or years"),
        ({"length": ""}, "length", "A policy that takes something needs a length"),
        ({"action": "keep"}, "length", "A policy that keeps has no length."),
        ({"minimum": "1 year"}, "minimum", "A legal minimum needs its reference"),
        ({"minimum_reference": "law"}, "minimum", "no legal minimum"),
        (
            {"minimum": "0 years", "minimum_reference": "law"},
            "minimum",
            "The legal minimum is between 1 and 100 years.",
        ),
        ({"kind": "fact"}, "kind", "Sessions cannot be narrowed by kind."),
        ({"store": "mian"}, "store", 'There is no store "mian".'),
        ({"session_pattern": "**"}, "session_pattern", "matches every session"),
        ({"subject_kind": "robot"}, "subject_kind", 'There is no kind of subject "robot". Choose one of: user, '),
        ({"is_encrypted": "yes"}, "is_encrypted", "true or false"),
        ({"label": "x" * 51}, "label", "The label has more than 50 characters."),
        ({"label": 7}, "label", "The label is a text."),
        ({"label": "a\x00b"}, "label", "control character"),
        ({"label": "vip", "name": "default"}, "label", "The default policy is about everything"),
        ({"target": "memories", "name": "default"}, "target", "The default policy is about sessions."),
        ({**MEMORIES, "kind": "chat"}, "kind", 'There is no kind "chat".'),
        ({**MEMORIES, "status": "retired"}, "status", "Only approved memories expire"),
    ],
)
def test_each_mistake_has_its_sentence(values: dict[str, Any], field: str, sentence: str) -> None:
    assert sentence in problems(**values)[field]


def test_all_mistakes_are_found_at_once() -> None:
    assert set(problems(clock="never", length="soon", label=7)) == {"clock", "length", "label"}
