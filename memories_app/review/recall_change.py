"""Recall preview of a proposal for reviewers: recalls after its approval and now, masked.

The query is the user message from which the proposal came, if the reviewer may see it.
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
"""Maximum of memories shown besides the proposal and those that agents would no longer recall."""

LONGEST_QUESTION = 1000


@dataclass(frozen=True, slots=True)
class RankChange:
    """A memory's rank without the proposal and with it; None with a reason if agents do not recall it."""

    memory_id: UUID
    statement: str
    is_this: bool
    now: int | None
    after: int | None
    tokens: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class RecallChange:
    """The preview. `more` is the number of further memories after those in `places`."""

    question: str
    is_own_words: bool
    summary: str
    places: list[RankChange]
    more: int
    agent: str
    embedder: str
    seen: set[UUID]


def recall_change(memory: Memory, *, reader: User, question: str = "") -> RecallChange:
    """The preview for this query, else for the quoted message, else for the proposal's text. About nine queries.

    The first call in a process loads the embedder: about half a second and 80 MB for the offline one; a hosted one gets
    a request for each call. So pages load this fragment separately.
    """
    masker = Masker()
    said = question or question_in(quotes_for(reader, list(memory.evidence.order_by("said_at", "pk")[:SHOWN_EVIDENCE])))
    asked = said or masker.text(memory.statement)
    compared = preview_approval(memory, asked)
    places = places_of(compared, memory, masker)
    shown = [place for place in places if place.after is None or place.after <= PLACES_SHOWN or place.is_this]
    return RecallChange(
        asked,
        not said,
        summary(memory, compared, now()),
        shown,
        len(places) - len(shown),
        compared.agent,
        compared.embedder,
        {place.memory_id for place in shown},
    )


def question_in(quotes: Sequence[ShownQuote]) -> str:
    """The quote of a user, preferred to those of agents or tools; empty if none may be shown."""
    texts = sorted((quote.evidence.speaker != "user", number) for number, quote in enumerate(quotes) if quote.text)
    return quotes[texts[0][1]].text[:LONGEST_QUESTION] if texts else ""


def places_of(compared: Comparison, memory: Memory, masker: Masker) -> list[RankChange]:
    """Ranks in prompt order; then memories that would no longer be recalled, and always the proposal."""
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


def summary(memory: Memory, compared: Comparison, moment: datetime) -> str:
    """Summary of the preview, in a sentence."""
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
