"""Made-up conversations: who talks when, and items that look like those an agent stores. The same on every run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

SEED = 7
FIRST_DAY = datetime(2025, 10, 1, tzinfo=UTC)
DAYS = 365

MOST_TEXTS = 2_000
"""Different texts of each kind of item; ids make every stored item unique."""

FULL_CUSTOMERS = 20
"""Customers with exactly 50 sessions of 40 items each: a full page of one subject, and sessions of a usual length."""

LEAST_SESSIONS = 120
"""So many that a page in the middle is a full page away from both ends of the list."""

COMMON_WORDS = """the a to of and you your order is for in it we can please with on have this our account not was be
refund delivery invoice payment customer ticket shipping address number status today tomorrow card error login
password reset email confirm cancel change date time product item return warehouse carrier tracking delay support
agent help thanks sorry issue resolved open closed pending billing subscription plan upgrade downgrade trial price
discount coupon region country policy legal contract team manager phone call message chat history note update
café señor größe übermorgen tracking database query result value field service request server token limit"""


A_MILLION_ITEMS = 41_000
"""In so many sessions."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is; everything but the page is a tenth when the size is a tenth."""

    sessions: int

    @property
    def database(self) -> str:
        return f"bench_{self.sessions}"

    @property
    def items(self) -> int:
        return self.sessions * 489 // 20

    @property
    def subjects(self) -> int:
        return self.sessions // 10

    @property
    def giants(self) -> list[int]:
        """Six sessions hold nearly a tenth of all items, and are the ones that were written last."""
        return [self.sessions // 2] * 3 + [self.sessions // 4] * 3

    @property
    def thousands(self) -> list[int]:
        return [1_000] * max(1, self.sessions // 400)

    @property
    def full_customers(self) -> int:
        return max(1, self.sessions * FULL_CUSTOMERS // SIZES["full"].sessions)

    def a_million_items_at_most(self) -> Size:
        """Never a size that other figures are taken on, for these tables get no registry."""
        return Size(min(self.sessions, A_MILLION_ITEMS) - 1)

    def tenth(self) -> Size:
        return Size(max(self.sessions // 10, LEAST_SESSIONS))


SIZES = {"full": Size(200_000), "small": Size(20_000), "tiny": Size(LEAST_SESSIONS + 10)}


@dataclass(frozen=True, slots=True)
class Conversation:
    session_id: str
    item_count: int
    is_giant: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """Items that were written together, hence at one instant."""

    written_at: datetime
    conversation: int
    number: int
    kinds: tuple[str, ...]


def conversations(size: Size, random: Random) -> list[Conversation]:
    """All sessions of a size: the giants, some of a thousand items, and mostly such of 4 to 40."""
    counts = [*size.giants, *size.thousands]
    steady = size.full_customers * 50
    ordinary = size.sessions - len(counts) - steady
    mean = (size.items - sum(counts) - steady * 40) / ordinary
    # A log-normal length with this spread has a mean of 1.163 times its middle.
    counts += [max(2, min(80, round(random.lognormvariate(0, 0.55) * mean / 1.163))) for _ in range(ordinary)]
    made = [Conversation(f"customer_{1 + n // 50}:ticket_{n}", 40) for n in range(steady)]
    for ticket, count in enumerate(counts, start=steady):
        # A few customers write often, most of them seldom.
        rank = int((size.subjects - size.full_customers) * random.random() ** 1.7)
        name = f"customer_{1 + size.full_customers + rank}:ticket_{ticket}"
        made.append(Conversation(name, count, is_giant=ticket - steady < len(size.giants)))
    return made


def turns(made: list[Conversation], random: Random) -> list[Turn]:
    """Every batch of items in the order of time, so that neighbours in a session are not neighbours on disk."""
    year = DAYS * 86_400.0
    batches: list[Turn] = []
    for index, conversation in enumerate(made):
        if conversation.is_giant:
            # Written all year round, until the very last moment.
            second, pause = 0.0, year / (conversation.item_count / 4.5)
        else:
            second, pause = random.random() * year, 20 + random.expovariate(1 / 300)
        left, number = conversation.item_count, 0
        while left:
            kinds = EXCHANGES[min(left, random.randint(3, 6))]
            at = FIRST_DAY + timedelta(seconds=second)
            # The runner stores what the user said, then, some seconds later, all that the agent made of it.
            batches.append(Turn(at, index, number, kinds[:1]))
            if kinds[1:]:
                batches.append(Turn(at + timedelta(seconds=2 + 10 * random.random()), index, number, kinds[1:]))
            left -= len(kinds)
            number += 1
            second += pause * (0.5 + random.random())
    batches.sort()
    return batches


EXCHANGES: dict[int, tuple[str, ...]] = {
    1: ("user",),
    2: ("user", "assistant"),
    3: ("user", "reasoning", "assistant"),
    4: ("user", "call", "output", "assistant"),
    5: ("user", "reasoning", "call", "output", "assistant"),
    6: ("user", "call", "second_call", "output", "second_output", "assistant"),
}


class Items:
    """Stored items, as the SDK writes them: compact JSON, other letters escaped."""

    def __init__(self, random: Random, count: int) -> None:
        """`count` items are made at most: a few of them need fewer texts."""
        self._random = random
        texts = min(MOST_TEXTS, max(100, count // 20))
        self._words, self._weights = _vocabulary(random)
        makers: dict[str, Callable[[], object]] = {
            "user": lambda: {"content": self._text(22), "role": "user"},
            "assistant": lambda: {
                "id": "msg_@@",
                "content": [{"annotations": [], "text": self._text(50), "type": "output_text", "logprobs": []}],
                "role": "assistant",
                "status": "completed",
                "type": "message",
            },
            "reasoning": lambda: {
                "id": "rs_@@",
                "summary": [{"text": f"**Plan**\n\n{self._text(30)}", "type": "summary_text"}],
                "type": "reasoning",
            },
            "call": lambda: self._call("call_@@"),
            "second_call": lambda: self._call("call_@@b"),
            "output": lambda: self._output("call_@@"),
            "second_output": lambda: self._output("call_@@b"),
        }
        self._texts = {
            kind: [json.dumps(make(), separators=(",", ":")) for _ in range(texts)] for kind, make in makers.items()
        }

    def of(self, turn: Turn) -> Iterator[str]:
        # A call and its output share an id, which no other turn has.
        unique = f"{(turn.conversation * 1_000_003 + turn.number) * 2654435761 % 2**64:016x}"
        for kind in turn.kinds:
            texts = self._texts[kind]
            yield texts[int(self._random.random() * len(texts))].replace("@@", unique)

    def _text(self, mean: int) -> str:
        count = max(3, min(900, round(self._random.lognormvariate(0, 0.7) * mean)))
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=count))

    def _call(self, call_id: str) -> dict[str, object]:
        return {
            "arguments": json.dumps({"query": self._text(5), "limit": 10}),
            "call_id": call_id,
            "name": self._random.choice(["search_orders", "get_invoice", "look_up_customer", "remember"]),
            "type": "function_call",
            "id": "fc_@@",
            "status": "completed",
        }

    def _output(self, call_id: str) -> dict[str, object]:
        rows = [
            {"id": self._random.randint(1, 10**6), "note": self._text(16)} for _ in range(self._random.randint(1, 12))
        ]
        return {"call_id": call_id, "output": json.dumps(rows), "type": "function_call_output"}


def _vocabulary(random: Random) -> tuple[list[str], list[float]]:
    """20,000 words and their cumulative weights: a few are everywhere, most are rare, as in any language."""
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvwz" for vowel in "aeiou"]
    words = COMMON_WORDS.split()
    while len(words) < 20_000:
        words.append("".join(random.choices(syllables, k=random.randint(2, 5))))
    weights, total = [], 0.0
    for rank in range(len(words)):
        total += 1 / (rank + 10)
        weights.append(total)
    return words, weights
