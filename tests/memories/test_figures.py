"""Precision of the rules, recall and false alarms of the screening, on labelled texts; docs/ shows the same figures.

Half of the texts was used to write rules and lists. The other half was labelled or written afterwards, and nothing was
changed for it.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from memories_app.learning.distillers.rules import found_in
from memories_app.learning.distillers.types import SessionMessage
from tests.memories import figures
from tests.memories.figures import DOCS, Precision, labelled_messages, precision, rates_of

TRANSCRIPTS = os.environ.get("MEMADMIN_TRANSCRIPTS")
FIRST_OR_SECOND = re.compile(r"\b(?:i|i'm|me|my|mine|myself|we|us|our|you|your)\b", re.IGNORECASE)
IDENTIFIER = re.compile(r"\d{4}|\w_\w|@")


@pytest.fixture(scope="module")
def messages() -> list[figures.LabelledMessage]:
    return list(labelled_messages(TRANSCRIPTS))


@pytest.mark.parametrize(("half", "floor"), [("dev", 0.85), ("held", 0.75)])
def test_most_proposals_of_the_rules_are_sensible(
    messages: list[figures.LabelledMessage], half: str, floor: float
) -> None:
    whole = sum((one for (_, of_half), one in precision(messages).items() if of_half == half), Precision())
    assert whole.messages >= 500
    assert whole.proposed >= 25, "the rules say nothing"
    assert whole.sensible / whole.proposed >= floor


def test_no_proposal_has_the_first_or_second_person_or_an_identifier(
    messages: list[figures.LabelledMessage],
) -> None:
    statements = [one.statement for each in messages for one in found_in(SessionMessage("1", "user", each.text))]
    assert len(statements) > 50
    assert [one for one in statements if FIRST_OR_SECOND.search(one) or IDENTIFIER.search(one)] == []


def test_support_conversations_are_no_noise() -> None:
    if not TRANSCRIPTS:
        pytest.skip("MEMADMIN_TRANSCRIPTS names no file: THE RULES WERE NOT TRIED ON SUPPORT. See CONTRIBUTING.md.")
    support = [one for one in labelled_messages(TRANSCRIPTS) if one.kind == "airline"]
    whole = sum(precision(support).values(), Precision())
    assert whole.messages == 730
    assert 0 < whole.proposed <= 5
    assert whole.sensible >= whole.proposed - 1


FLAGS = sorted(rates_of("phrases-held"))


def test_there_are_forty_texts_of_each_kind() -> None:
    development, held, values = rates_of("phrases-development"), rates_of("phrases-held"), rates_of("values")
    assert development.keys() == held.keys()
    for flag, rates in development.items():
        assert min(rates.risky + held[flag].risky, rates.harmless + held[flag].harmless) >= 80, flag
    assert all(min(rates.risky, rates.harmless) >= 40 for rates in values.values())


@pytest.mark.parametrize(
    ("name", "recall", "alarms"), [("phrases-development", 0.9, 0.05), ("phrases-held", 0.8, 0.05)]
)
@pytest.mark.parametrize("flag", FLAGS)
def test_risks_are_found_and_harmless_texts_are_not_flagged(flag: str, name: str, recall: float, alarms: float) -> None:
    rates = rates_of(name)[flag]
    assert rates.recall >= recall
    assert rates.false_alarms <= alarms


def test_memories_as_people_keep_them_raise_few_alarms() -> None:
    cases = json.loads((figures.DATA / "recall-cases.json").read_text(encoding="utf-8"))
    kept = [text for subject in cases["subjects"] for text in subject["memories"].values()]
    flagged = [text for text in kept if {"instruction", "authority", "price"} & figures.flags_of(text)]
    assert len(kept) > 100
    assert flagged == ["Has a discount of ten percent as a teacher."]


@pytest.mark.parametrize("flag", sorted(rates_of("values")))
def test_values_are_found_in_any_sentence(flag: str) -> None:
    rates = rates_of("values")[flag]
    assert (rates.recall, rates.false_alarms) == (1, 0)


def test_real_conversations_raise_few_alarms(messages: list[figures.LabelledMessage]) -> None:
    """What people say to assistants is rarely an instruction to them, and is no claim of rights."""
    texts = [one.text for one in messages if one.kind != "airline"]
    flagged = [text for text in texts if {"instruction", "authority", "price"} & figures.flags_of(text)]
    assert len(flagged) <= 0.01 * len(texts)


def test_the_documentation_has_these_figures(messages: list[figures.LabelledMessage]) -> None:
    written = (DOCS / "screening.md").read_text()
    assert figures.with_table(written, figures.screening_table()) == written, "python -m tests.memories.figures"
    table = figures.distiller_table(precision(messages))
    of_rules = (DOCS / "distilling.md").read_text()
    assert [line for line in table.split("\n") if line not in of_rules] == [], "python -m tests.memories.figures"
