"""Word search in memories, newest first, at a cost independent of the number of memories.

PostgreSQL cannot read a word index in the order of time, and estimates combinations of words badly: it may scan a
million memories for a word without matches. So the plan is fixed: first the newest rows, enough for frequent words, and
if these are too few, the word index, which then has few matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, connections, transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from memadmin.replica import alias_for_reading
from memadmin.web.paging import Fetch
from memories_app.models import Memory
from memories_app.models.querysets import MemoryQuerySet, asked

NEAR = 5_000
"""Number of newest rows searched first: fills a page if one row in a hundred matches."""

BY_WORDS_ALONE = "SELECT set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'off', true)"


def fetch_matching(memories: MemoryQuerySet, words: str) -> Fetch[Memory]:
    """A fetch function for `page_by_key`: the first matching rows. At most six queries, and those of prefetching."""

    def fetch(branches: Sequence[QuerySet[Memory]], limit: int) -> list[Memory]:
        (branch,) = branches
        found = _near(branch, words, limit)
        if len(found) < limit:
            found = _by_words(branch, words, limit)
        rows = memories.in_bulk(found)
        return [rows[pk] for pk in found if pk in rows]

    return fetch


def _near(branch: QuerySet[Memory], words: str, limit: int) -> list[UUID]:
    says = ExpressionWrapper(Q(words=asked(words)), output_field=BooleanField())
    near, parameters = _bare(branch).values("pk").annotate(says=says)[:NEAR].query.sql_with_params()
    with connections[alias_for_reading()].cursor() as cursor:
        # Keeps the order of the inner query.
        cursor.execute(f"SELECT pk FROM ({near}) AS near WHERE says LIMIT %s", [*parameters, limit])
        return [pk for (pk,) in cursor.fetchall()]


@transaction.atomic
def _by_words(branch: QuerySet[Memory], words: str, limit: int) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(BY_WORDS_ALONE)
        found = list(_bare(branch).filter(words=asked(words)).values_list("pk", flat=True)[:limit])
        cursor.execute("SELECT set_config('enable_indexscan', 'on', true), set_config('enable_seqscan', 'on', true)")
    return found


def _bare(branch: QuerySet[Memory]) -> QuerySet[Memory, Any]:
    return branch.select_related(None).prefetch_related(None)
