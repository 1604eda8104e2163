"""What agents would be told if a proposal was approved, beside what they are told now, as a reviewer sees it: masked.

The question is what the person said from whom the proposal came, as far as its reader may see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.client import recalling
from memories_app.models import Memory
from memories_app.pages.view_models import ShownQuote, quotes_for
from memories_app.recall.preview import Comparison, preview_approval
from memories_app.review.context import SHOWN_EVIDENCE
from sessions_app.masking import Masker

PLACES_SHOWN = 6
"""Of the memories beside the proposal, besides those that agents would be told no more."""

LONGEST_QUESTION = 1000


@dataclass(frozen=True, slots=True)
class RankChange:
    """A memory's place without the proposal and with it; None where agents are not told, then with why."""

    memory_id: UUID
    statement: str
    is_this: bool
    now: int | None
    after: int | None
    tokens: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """`more` is how many further ones agents would be told, behind those of `places`."""

    question: str
    is_own_words: bool
    told: str
    places: list[RankChange]
    more: int
    agent: str
    embedder: str
    seen: set[UUID]


def foresee(memory: Memory, *, reader: User, question: str = "") -> Foreseen:
    """For this question, else for what was said, else for the proposal's own words. About nine queries.

    The embedder is loaded where it is the first time in this process: about half a second and 80 MB with the offline
    one, and with a hosted one each call is a request to it. So pages ask for this after themselves.
    """
    masker = Masker()
    said = question or question_in(quotes_for(reader, list(memory.evidence.order_by("said_at", "pk")[:SHOWN_EVIDENCE])))
    asked = said or masker.text(memory.statement)
    compared = preview_approval(memory, asked)
    places = places_of(compared, memory, masker)
    shown = [place for place in places if place.after is None or place.after <= PLACES_SHOWN or place.is_this]
    return Foreseen(
        asked,
        not said,
        told(memory, compared, now()),
        shown,
        len(places) - len(shown),
        compared.agent,
        compared.embedder,
        {place.memory_id for place in shown},
    )


def question_in(quotes: Sequence[ShownQuote]) -> str:
    """What the person said, rather than what an agent or a tool did; empty where nothing may be shown."""
    texts = sorted((quote.evidence.speaker != "user", number) for number, quote in enumerate(quotes) if quote.text)
    return quotes[texts[0][1]].text[:LONGEST_QUESTION] if texts else ""


def places_of(compared: Comparison, memory: Memory, masker: Masker) -> list[RankChange]:
    """As agents would read them; after them what they read now and would read no more, and the proposal always."""
    before = {each.memory.id: each.place for each in compared.now.chosen}
    reasons = {each.memory.id: each.reason for each in compared.after.left_out}
    if memory.replaces_id:
        reasons[memory.replaces_id] = "Replaced by this proposal."
    places = [
        RankChange(
            each.memory.id,
            masker.text(each.memory.statement),
            each.memory.id == compared.this,
            before.pop(each.memory.id, None),
            each.place,
            each.tokens,
        )
        for each in compared.after.chosen
    ]
    gone = [each for each in compared.now.chosen if each.memory.id in before]
    places += [
        RankChange(
            each.memory.id,
            masker.text(each.memory.statement),
            False,
            each.place,
            None,
            each.tokens,
            reasons.get(each.memory.id, ""),
        )
        for each in gone
    ]
    if not any(place.is_this for place in places):
        tokens = recalling.count_tokens(recalling.as_line(memory.statement)) + 1
        why = reasons.get(compared.this, "Not relevant to this query.")
        places.append(RankChange(memory.pk, masker.text(memory.statement), True, None, None, tokens, why))
    return places


def told(memory: Memory, compared: Comparison, moment: datetime) -> str:
    """What it comes to, in a sentence."""
    if memory.valid_until and memory.valid_until <= moment:
        return f"Expired on {memory.valid_until:%-d %B %Y}: even if approved, agents do not recall it."
    since = f"From {memory.valid_from:%-d %B %Y} on, " if memory.valid_from and memory.valid_from > moment else ""
    place = next((each.place for each in compared.after.chosen if each.memory.id == compared.this), None)
    if place is None:
        return (
            f"{since}agents would not recall it for this query."
            if since
            else "Agents would not recall this proposal for this query."
        )
    many = len(compared.after.chosen)
    sentence = (
        f"agents would read it first, of {many}." if place == 1 else f"agents would read it as {place} of {many}."
    )
    if many == 1:
        sentence = "agents would read only this memory."
    return f"{since}{sentence}" if since else sentence.capitalize()
