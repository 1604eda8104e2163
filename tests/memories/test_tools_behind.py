"""Which tools may be behind what was learned, and what becomes of all of it when one is not to be trusted any more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memories_app.audit_events import RetireReason
from memories_app.learning.distillation import distil_session
from memories_app.learning.distillers.types import said_in
from memories_app.learning.evidence_linking import place_evidence
from memories_app.models import Evidence, Memory
from memories_app.services import retiring
from tests.agents import assistant as said_by_assistant
from tests.agents import run_sql, value_of
from tests.builders import make_session, make_subject
from tests.memories.queue import a_reviewer, approved, waiting
from tests.memories.test_distilling import a_session, answers, scripted, store
from tests.people import person, signed_in
from tests.sessions.timeline import items
from tests.sessions.timeline.items import assistant, call, output, user

__all__ = ["store"]

PAGE = reverse("memories:learned-by-tool")

SPEECHES: dict[str, tuple[list[list[Any]], list[tuple[str, tuple[str, ...]]]]] = {
    "nobody called anything": ([[user("Hi")], [assistant("Hello")]], [("Hi", ()), ("Hello", ())]),
    "after a call": (
        [[user("Where?")], [call("1", "track")], [output("1")], [assistant("There.")]],
        [("Where?", ()), ("There.", ("track",))],
    ),
    "before and after": (
        [[user("Where?")], [assistant("I look."), call("1", "track")], [output("1")], [assistant("There.")]],
        [("Where?", ()), ("I look.", ()), ("There.", ("track",))],
    ),
    "each once, in order": (
        [[user("Do")], [call("1", "b"), call("2", "a"), call("3", "b")], [output("1")], [assistant("Done.")]],
        [("Do", ()), ("Done.", ("b", "a"))],
    ),
    "the next run begins anew": (
        [[user("Do")], [call("1", "track")], [output("1")], [assistant("Done.")], [user("Thanks")], [assistant("Bye")]],
        [("Do", ()), ("Done.", ("track",)), ("Thanks", ()), ("Bye", ())],
    ),
    "an output whose call is not there names nothing": (
        [[user("Do")], [output("9")], [assistant("Done.")]],
        [("Do", ()), ("Done.", ())],
    ),
}


@pytest.mark.parametrize("case", SPEECHES)
def test_what_may_be_behind_what_was_said(case: str) -> None:
    batches, expected = SPEECHES[case]
    assert [(said.text, said.tools) for said in said_in(items.session(*batches))] == expected


LOOKED_UP = (
    "Where is my refund?",
    {"type": "function_call", "call_id": "c1", "name": "lookup_refund", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "Refunds go to order 4712."},
    said_by_assistant("Your refund goes to order 4712."),
    "I prefer refunds in cash.",
)


class TestIsNoted:
    def test_by_distillers(self, store: None) -> None:
        learned = answers(
            {"statement": "Refunds go to order 4712.", "quote": "refund goes to order 4712", "item": 2},
            {"statement": "Prefers refunds in cash.", "quote": "prefer refunds in cash", "item": 3},
            summary="Asked for a refund.",
        )
        distil_session(a_session(*LOOKED_UP), distiller=scripted(learned))
        found = dict(Evidence.objects.values_list("memory__statement", "tools"))
        assert found == {
            "Refunds go to order 4712.": ["lookup_refund"],
            "Prefers refunds in cash.": [],
            "Asked for a refund.": ["lookup_refund"],
        }
        by_user = Evidence.objects.filter(said_by_user=True).values_list("memory__statement", flat=True)
        assert set(by_user) == {"Prefers refunds in cash.", "Asked for a refund."}

    @pytest.mark.parametrize(
        ("quote", "tools"),
        [
            ("Refunds go to order 4712.", ["lookup_refund"]),
            ("Your refund goes to order 4712.", ["lookup_refund"]),
            ("I prefer refunds in cash.", []),
        ],
        ids=["output", "assistant", "user"],
    )
    @pytest.mark.parametrize("page", [100, 2])
    def test_where_an_agent_quoted(
        self, store: None, quote: str, tools: list[str], page: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where the call stands on the page before."""
        monkeypatch.setattr("memories_app.learning.evidence_linking.PAGE", page)
        record = a_session(*LOOKED_UP)
        memory = waiting("x", subject=record.subject, source="tool")
        Evidence.objects.create(memory=memory, record_id=record.pk, quote=quote, speaker="user")
        assert place_evidence() == 1
        evidence = Evidence.objects.get()
        assert evidence.item_id
        assert evidence.tools == tools
        # What the agent says of the speaker does not count.
        assert evidence.said_by_user == (not tools)
        assert place_evidence() == 0

    def test_and_what_an_agent_named_as_the_item_stays(self, store: None) -> None:
        record = a_session(*LOOKED_UP)
        memory = waiting("x", subject=record.subject, source="tool")
        quote = "Refunds go to order 4712."
        Evidence.objects.create(memory=memory, record_id=record.pk, quote=quote, item_id="mine")
        assert place_evidence() == 1
        assert [(one.item_id, one.tools) for one in Evidence.objects.all()] == [("mine", ["lookup_refund"])]


def learned_by(*tools: str, statement: str = "Refunds go to order 4712.", **values: Any) -> Memory:
    memory = waiting(statement, source="tool", **{"subject": make_subject()} | values)
    Evidence.objects.create(memory=memory, record_id=make_session().pk, quote="x", tools=list(tools))
    return memory


@pytest.mark.django_db
class TestTakingItBack:
    def test_all_that_a_tool_may_be_behind_goes_in_one_step(self) -> None:
        reviewer = a_reviewer()
        going = {learned_by("lookup", statement="One."), learned_by("other", "lookup", statement="Two.")}
        follows = waiting("One, and more.", replaces=None, subject=make_subject())
        staying = {learned_by("lookup_order", statement="Three."), approved("Drinks tea."), follows}
        assert set(retiring.learned_by_tool("lookup")) == going
        assert retiring.retire_learned_by_tool("lookup", by=reviewer, reason=RetireReason.POISONED) == 2
        assert set(Memory.objects.filter(status="retired")) == going
        assert not Memory.objects.filter(pk__in=[memory.pk for memory in staying], status="retired").exists()
        assert retiring.retire_learned_by_tool("lookup", by=reviewer, reason=RetireReason.POISONED) == 0

    def test_its_event_tells_how_many_and_the_tool_stands_beside_it(self) -> None:
        memory = learned_by("lookup")
        retiring.retire_learned_by_tool("lookup", by=a_reviewer(), reason=RetireReason.POISONED)
        event = AuditEvent.objects.get(type="memory.tool_retired")
        assert (event.reason_code, event.counters, event.shown) == ("poisoned", {"memories": 1}, [memory.pk])
        assert json.loads(event.detail.details) == {"tool": "lookup"}
        assert AuditEvent.objects.filter(type="memory.retired", object_ref=memory.pk).exists()

    def test_it_is_found_by_its_index(self) -> None:
        # Of an empty table any way is the shortest.
        for way in ("seqscan", "indexscan", "nestloop"):
            run_sql(f"SET LOCAL enable_{way} = off")
        assert "evidence_by_tool" in retiring.learned_by_tool("lookup").explain()
        assert value_of("SELECT count(*) FROM memories_app_evidence") == 0


@pytest.mark.django_db
class TestPage:
    @pytest.fixture
    def reviewer(self) -> Client:
        return signed_in(person("reviewer"))

    def test_asks_which_tool(self, reviewer: Client) -> None:
        page = reviewer.get(PAGE)
        assert page.status_code == 200
        assert "Name of the tool" in page.text
        assert "Retire" not in page.text

    def test_shows_what_would_go_and_takes_it(self, reviewer: Client) -> None:
        going, staying = learned_by("lookup", statement="Cash only."), learned_by("other", statement="Cards only.")
        page = reviewer.get(PAGE, {"tool": "lookup"})
        assert {shown.memory for shown in page.context["memories"]} == {going}
        assert "Cards only." not in page.text
        answer = reviewer.post(f"{PAGE}?tool=lookup", {"reason": "poisoned"}, follow=True)
        assert "1 memory retired" in answer.text
        assert "No memories from this tool" in answer.text
        assert Memory.objects.get(status="retired") == going
        assert Memory.objects.get(pk=staying.pk).status == "proposed"

    @pytest.mark.parametrize(
        ("query", "sent", "words"),
        [
            ({"tool": "lookup"}, {}, "Choose a reason."),
            ({"tool": "lookup"}, {"reason": "whim"}, "This reason does not exist. Choose one from the list."),
            ({"tool": "x" * 201}, {"reason": "poisoned"}, "at most 200 characters"),
            ({"tool": ""}, {"reason": "poisoned"}, "Enter a tool name."),
            ({"tool": "a\0b"}, {"reason": "poisoned"}, "Null characters are not allowed."),
            ({}, {"reason": "poisoned"}, "Name of the tool"),
        ],
    )
    def test_what_is_wrong_is_said_and_nothing_goes(
        self, reviewer: Client, query: dict[str, str], sent: dict[str, str], words: str
    ) -> None:
        learned_by("lookup")
        page = reviewer.post(PAGE, sent, query_params=query)
        assert page.status_code == 422
        assert words in page.text
        assert not Memory.objects.filter(status="retired").exists()

    def test_a_memory_leads_there_from_its_evidence(self, reviewer: Client) -> None:
        page = reviewer.get(learned_by("look up & pay").get_absolute_url())
        assert f'{PAGE}?tool=look%20up%20%26%20pay"' in page.text

    def test_who_only_reads_sees_and_takes_nothing(self, db: None) -> None:
        learned_by("lookup")
        support = signed_in(person("support"))
        assert "Retire" not in support.get(PAGE, {"tool": "lookup"}).text
        assert support.post(f"{PAGE}?tool=lookup", {"reason": "poisoned"}).status_code == 403
        assert not Memory.objects.filter(status="retired").exists()
