"""The tree in its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
# One value instead of many rows, which would take PostgreSQL and Python longer than hashing them.
READ_LEAVES = "SELECT string_agg(hash, ''::bytea ORDER BY index) FROM audit_leaf WHERE index >= %s AND index < %s"
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


def last_leaf() -> tuple[int, bytes]:
    """Number of leaves, and the hash of the last; zero and no bytes for an empty tree. One query, of one row."""
    last = AuditLeaf.objects.order_by("-index").first()
    return (0, b"") if last is None else (last.index + 1, bytes(last.hash))


def leaves(start: int, stop: int) -> Iterator[bytes]:
    """Hashes of the leaves from `start` to before `stop`, in order. One query. Raises TreeDamaged."""
    with connection.cursor() as cursor:
        cursor.execute(READ_LEAVES, [start, stop])
        hashes = bytes(cursor.fetchone()[0] or b"")
    if len(hashes) != 32 * (stop - start):
        raise TreeDamaged(Span(0, start, stop))
    return (hashes[at : at + 32] for at in range(0, len(hashes), 32))


def edge() -> Frontier:
    """The right edge of the tree, from the stored nodes and leaves. Two queries. Raises TreeDamaged."""
    return Frontier.of(size(), read)


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
