"""The tree in its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from memadmin.audit.models import AuditEvent, AuditLeaf
from memadmin.audit.transparency import canonical
from memadmin.audit.transparency.canonical import EventText
from memadmin.audit.transparency.tree import Frontier, Node, Span

READ_SPANS = """
SELECT span.number, found.index, found.hash
FROM unnest(%(starts)s::bigint[], %(stops)s::bigint[]) WITH ORDINALITY AS span (start, stop, number)
CROSS JOIN LATERAL (
    SELECT index, hash FROM audit_leaf WHERE index >= span.start AND index < span.stop
) AS found
WHERE (%(levels)s::int[])[span.number] = 0
UNION ALL
SELECT span.number, found.index, found.hash
FROM unnest(%(starts)s::bigint[], %(stops)s::bigint[]) WITH ORDINALITY AS span (start, stop, number)
CROSS JOIN LATERAL (
    SELECT index, hash FROM audit_node
    WHERE level = (%(levels)s::int[])[span.number] AND index >= span.start AND index < span.stop
) AS found
WHERE (%(levels)s::int[])[span.number] > 0
ORDER BY 1, 2
"""
WRITTEN = f"SELECT {canonical.COLUMNS} FROM audit_event AS event WHERE number = ANY(%s) ORDER BY number"
# Hashes concatenated instead of in an array, which would cost more in Python than the rest of the statement.
INSERT_LEAVES = """
INSERT INTO audit_leaf (index, event_number, hash)
SELECT %s + place - 1, number, substring(%s::bytea FROM (place * 32 - 31)::int FOR 32)
FROM unnest(%s::bigint[]) WITH ORDINALITY AS taken (number, place)
"""
INSERT_NODES = """
INSERT INTO audit_node (level, index, hash) SELECT * FROM unnest(%s::smallint[], %s::bigint[], %s::bytea[])
"""


class TreeDamaged(Exception):
    """Leaves or nodes are missing: `verify_audit` reports the cause."""

    def __init__(self, span: Span) -> None:
        super().__init__(
            f"Hashes of level {span.level} between {span.start} and {span.stop} are missing in the audit log's tree."
            " Run verify_audit."
        )


def size() -> int:
    """Number of leaves. One query, of one row."""
    last = AuditLeaf.objects.order_by("-index").values_list("index", flat=True).first()
    return 0 if last is None else last + 1


def read(spans: Sequence[Span]) -> list[Sequence[bytes]]:
    """Hashes for the functions of `tree`. One query. Raises TreeDamaged."""
    columns = {
        "levels": [span.level for span in spans],
        "starts": [span.start for span in spans],
        "stops": [span.stop for span in spans],
    }
    found: list[list[bytes]] = [[] for _ in spans]
    with connection.cursor() as cursor:
        cursor.execute(READ_SPANS, columns)
        for number, _, hash_ in cursor:
            found[number - 1].append(bytes(hash_))
    for span, hashes in zip(spans, found, strict=True):
        if len(hashes) != span.stop - span.start:
            raise TreeDamaged(span)
    return [*found]


@dataclass(frozen=True, slots=True)
class Edge:
    """The end of a tree at the last read."""

    tree: Frontier
    last_leaf: bytes

    def copy(self) -> Edge:
        return Edge(self.tree.copy(), self.last_leaf)


def edge(known: Edge | None = None) -> Edge:
    """The right edge of the tree, to append to. One query, and one more unless it equals `known`.

    Raises TreeDamaged.
    """
    last = AuditLeaf.objects.order_by("-index").first()
    if last is None:
        return Edge(Frontier(), b"")
    size, hash_ = last.index + 1, bytes(last.hash)
    if known and (known.tree.size, known.last_leaf) == (size, hash_):
        return known.copy()
    return Edge(Frontier.of(size, read), hash_)


def written(numbers: Sequence[int]) -> list[EventText]:
    """The events of these numbers, in that order; a number without an event is left out. One query."""
    if not numbers:
        return []
    with connection.cursor() as cursor:
        cursor.execute(WRITTEN, [list(numbers)])
        return [EventText._make(row) for row in cursor.fetchall()]


def leaf_of(event: EventText) -> bytes:
    """The leaf hash of this event. No query, except for an event with values that the checks do not allow."""
    leaf = canonical.leaf_of_written(event)
    return canonical.leaf_of(AuditEvent.objects.get(number=event.number)) if leaf is None else leaf


def write(frontier: Frontier, leaves: Sequence[tuple[int, bytes]]) -> None:
    """Appends leaves, given as event number and hash. One query, and one more where they complete a node."""
    first, nodes = frontier.size, list[Node]()
    for _, hash_ in leaves:
        nodes += frontier.append(hash_)
    numbers, hashes = zip(*leaves, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(INSERT_LEAVES, [first, b"".join(hashes), list(numbers)])
        if nodes:
            levels, indexes = [node.level for node in nodes], [node.index for node in nodes]
            cursor.execute(INSERT_NODES, [levels, indexes, [node.hash for node in nodes]])
