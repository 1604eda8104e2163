"""People for whom a scan searches, of one or of many cases, each with the ids and texts that lead to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from memadmin.erasure.scan.variants import Finder, composed

T = TypeVar("T")

Cases = frozenset[int]
NOBODY: Cases = frozenset()


@dataclass(frozen=True)
class ScannedPerson:
    """The person of a case. `left_out` are names of stores without which the case ends, by decision."""

    case: int
    group: Collection[UUID] = ()
    texts: Collection[str] = ()
    keys: Collection[tuple[str, str]] = ()
    left_out: Collection[str] = ()


class People:
    """Looks up the cases to which a subject, an id or a text belongs: several, as two people can have one number."""

    def __init__(self, people: Iterable[ScannedPerson]) -> None:
        self._people = {person.case: person for person in people}
        self.cases: Cases = frozenset(self._people)
        self.subjects = by_what_they_have((each.case, each.group) for each in self)
        self.keys = by_what_they_have((each.case, each.keys) for each in self)
        self._texts = by_what_they_have((each.case, map(composed, each.texts)) for each in self)
        self.finder = Finder(self._texts)

    def __iter__(self) -> Iterator[ScannedPerson]:
        return iter(self._people.values())

    def named_in(self, text: str) -> Cases:
        """Cases whose person is named in this text."""
        return NOBODY.union(*(self._texts[each] for each in self.finder.finds(text)))

    def searched_in(self, store: str) -> Cases:
        """Cases that did not leave out this store."""
        return frozenset(each.case for each in self if store not in each.left_out)


def by_what_they_have(pairs: Iterable[tuple[int, Iterable[T]]]) -> dict[T, Cases]:
    found: dict[T, set[int]] = defaultdict(set)
    for case, things in pairs:
        for thing in things:
            found[thing].add(case)
    return {thing: frozenset(cases) for thing, cases in found.items()}
