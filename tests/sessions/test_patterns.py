"""What a session id says about its subject and ticket."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.models import SessionRecord, SubjectAlias
from sessions_app.patterns import FIELD_LENGTHS, Pattern, PatternError, PatternMatch
from tests.cases import for_each


@for_each(
    ("pattern", "session_id", "match"),
    [
        ("customer_{subject}:ticket_{ticket}", "customer_48213:ticket_T-9", PatternMatch("48213", "T-9")),
        ("customer_{subject}:ticket_{ticket}", "customer_a:ticket_b:ticket_c", PatternMatch("a", "b:ticket_c")),
        ("customer_{subject}:ticket_{ticket}", "x-customer_1:ticket_2", None),
        ("customer_{subject}:ticket_{ticket}", "Customer_1:ticket_2", None),
        ("customer_{subject}:ticket_{ticket}", "customer_:ticket_2", None),
        ("customer_{subject}:ticket_{ticket}", "customer_1:ticket_", None),
        ("customer_{subject}", "customer_1:ticket_2", PatternMatch("1:ticket_2")),
        ("{agent}/{*}/{subject}/{*}", "tutor/2026/maja/7", PatternMatch("maja", agent="tutor")),
        ("{subject}@x", "me@x@x", PatternMatch("me@x")),
        ("{subject}-{ticket}-end", "a-b-end", PatternMatch("a", "b")),
        ("{subject}-{ticket}-end", "a-end", None),
        ("{subject}aa{ticket}", "xaaay", PatternMatch("x", "ay")),
        ("a{subject}a", "aa", None),
        ("a{subject}a", "a", None),
        ("ticket.{ticket}", "ticket.5", PatternMatch(ticket="5")),
        ("ticket.{ticket}", "ticketX5", None),
        ("{{{subject}}}", "{me}", PatternMatch("me")),
        ("élan_{subject}", "élan_zoë\n2", PatternMatch("zoë\n2")),
        ("{subject}", "s" * FIELD_LENGTHS["subject"], PatternMatch("s" * FIELD_LENGTHS["subject"])),
        ("{subject}", "s" * (FIELD_LENGTHS["subject"] + 1), None),
        ("{subject}#{ticket}", "me#" + "t" * (FIELD_LENGTHS["ticket"] + 1), None),
        ("{*}:{subject}", "x" * 10_000 + ":me", PatternMatch("me")),
        ("customer_{subject}:ticket_{ticket}", "customer_ :ticket_2", None),
        ("customer_{subject}:ticket_{ticket}", "customer_1:ticket_\n", None),
    ],
)
def test_a_session_id_is_read(pattern: str, session_id: str, match: PatternMatch | None) -> None:
    assert Pattern.parse(pattern).match(session_id) == match


@for_each(
    ("pattern", "sentence"),
    [
        ("customer_{name}", "“{name}” is not a field"),
        ("{}", "“{}” is not a field"),
        ("{subject!r}", "is not a field"),
        ("{subject:>3}", "is not a field"),
        ("{subject}{ticket}", "{subject} and {ticket} are adjacent"),
        ("{*}{subject}", "{*} and {subject} are adjacent"),
        ("{subject}-{subject}", "{subject} appears twice"),
        ("{agent}", "needs {subject} or {ticket}"),
        ("plain text", "needs {subject} or {ticket}"),
        ("", "needs {subject} or {ticket}"),
        ("customer_{subject", "A brace is not closed"),
        ("customer_}subject", "A brace is not closed"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused_with_a_reason(pattern: str, sentence: str) -> None:
    with pytest.raises(PatternError) as refusal:
        Pattern.parse(pattern)
    assert sentence in str(refusal.value)


letters = st.text("ab:", max_size=9)


@given(before=letters, between=st.text("ab:", min_size=1, max_size=3), after=letters, session_id=st.text("ab:"))
def test_it_reads_what_the_shortest_regular_expression_reads(
    before: str, between: str, after: str, session_id: str
) -> None:
    expected = re.fullmatch(
        f"{re.escape(before)}(.+?){re.escape(between)}(.+?){re.escape(between)}(.+?){re.escape(after)}", session_id
    )
    read = Pattern.parse(f"{before}{{agent}}{between}{{subject}}{between}{{ticket}}{after}").match(session_id)
    assert (read and (read.agent, read.subject, read.ticket)) == (expected and expected.groups())


def test_fields_are_as_long_as_their_columns() -> None:
    columns = {
        "subject": SubjectAlias._meta.get_field("key"),
        "ticket": SessionRecord._meta.get_field("ticket"),
        "agent": SessionRecord._meta.get_field("agent"),
    }
    assert {name: column.max_length for name, column in columns.items()} == FIELD_LENGTHS
