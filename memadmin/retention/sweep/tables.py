"""Tables from which sweeps delete: sizes, live and dead rows, and when they were vacuumed. From the catalogue alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection

from memadmin.retention.targets.base import all_targets
from memories_app.models import Distillation, Evidence, RecalledMemory
from sessions_app.models import SessionFinding, SessionStore
from sessions_app.stores.sqlalchemy.postgres import table_identifier

# A partitioned table has no rows of its own: those of its partitions are added up.
PARTS = """
FROM unnest(%(names)s::text[], %(quoted)s::text[]) WITH ORDINALITY AS wanted(name, quoted, place)
JOIN LATERAL (
  SELECT to_regclass(quoted)::oid AS oid
  UNION SELECT relid FROM pg_partition_tree(to_regclass(quoted)) WHERE isleaf
) AS part ON part.oid IS NOT NULL
LEFT JOIN pg_stat_all_tables AS stat ON stat.relid = part.oid
GROUP BY name, place ORDER BY place
"""

SIZES = f"""
SELECT name, count(*) - 1, sum(pg_table_size(part.oid)), sum(pg_indexes_size(part.oid)),
       coalesce(sum(n_live_tup), 0), coalesce(sum(n_dead_tup), 0), max(last_vacuum), max(last_autovacuum)
{PARTS}
"""

ROWS = f"SELECT name, coalesce(sum(n_live_tup), 0), coalesce(sum(n_dead_tup), 0) {PARTS}"

# VACUUM, and other upkeep, holds this lock; everybody may see it, unlike the progress of other roles.
UPKEEP = f"""
SELECT name, coalesce(bool_or(EXISTS (
  SELECT FROM pg_locks WHERE relation = part.oid AND mode = 'ShareUpdateExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
)), false)
{PARTS}
"""

SHARE_OF_DEAD = 5
"""PostgreSQL's own measure: a fifth of the rows of a table may be dead before autovacuum comes."""

FEW_DEAD = 10_000

LARGE = 100 * 2**30
"""Bytes from which partitions make vacuum and new indexes easier."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """Sizes of one table with its indexes and partitions, from PostgreSQL's statistics. Row counts are estimates."""

    name: str
    partitions: int
    size: int
    index_size: int
    live: int
    dead: int
    vacuumed_at: datetime | None
    autovacuumed_at: datetime | None

    @property
    def has_many_dead(self) -> bool:
        return self.dead > FEW_DEAD and self.dead * SHARE_OF_DEAD > self.live

    @property
    def last_vacuum_at(self) -> datetime | None:
        """Time of the last VACUUM or autovacuum."""
        return max(filter(None, (self.vacuumed_at, self.autovacuumed_at)), default=None)

    @property
    def total(self) -> int:
        return self.size + self.index_size

    @property
    def advice(self) -> str:
        """Recommended action, in one or two sentences."""
        if self.has_many_dead and self.last_vacuum_at is None:
            return (
                "Run VACUUM (ANALYZE) on it: it was never vacuumed. Then look why autovacuum does not come: it may be"
                " off, or a transaction has been open for long."
            )
        if self.has_many_dead:
            return "Autovacuum will come soon. If this stays, look for transactions that have been open for long."
        if self.total > LARGE and not self.partitions:
            return "It is large: partitions make vacuum and new indexes shorter. See docs/partitioning.md."
        return "Nothing to do."


def swept_tables() -> dict[str, str]:
    """Tables from which sweeps delete, by name: of which store each is, empty for our own. One query."""
    found: dict[str, str] = {}
    for store in SessionStore.objects.in_this_database().filter(attached_at__isnull=False).order_by("name"):
        found |= {store.messages_table: store.name, store.sessions_table: store.name}
    hanging = (Evidence, Distillation, RecalledMemory, SessionFinding)
    ours = {target.rows().model._meta.db_table for target in all_targets()}
    return found | dict.fromkeys(sorted(ours | {model._meta.db_table for model in hanging}), "")


def sizes_of(tables: Collection[str]) -> list[TableSize]:
    """The tables of these that exist, in this order. One query, whatever their size."""
    return [TableSize(*row) for row in rows_of(SIZES, tables)]


def total_size(table: str) -> int:
    """Bytes of a table with indexes and partitions; 0 if it does not exist."""
    return sum(size.total for size in sizes_of([table]))


def with_too_many_dead(tables: Collection[str]) -> dict[str, int]:
    """Numbers of dead rows of the tables with too many of them: MEMADMIN_RETENTION_DEAD_ROWS. One query."""
    limit = settings.RETENTION_DEAD_ROWS
    found = rows_of(ROWS, tables) if limit else []
    return {name: int(dead) for name, live, dead in found if dead > limit and dead * SHARE_OF_DEAD > live}


def is_in_upkeep(table: str) -> bool:
    """Whether VACUUM or ANALYZE works on it now, or an index is being built."""
    return any(is_locked for _, is_locked in rows_of(UPKEEP, [table]))


def rows_of(query: str, tables: Collection[str]) -> list[tuple[Any, ...]]:
    quoted = [table_identifier(name).as_string(None) for name in tables]
    with connection.cursor() as cursor:
        cursor.execute(query, {"names": list(tables), "quoted": quoted})
        return list(cursor.fetchall())
