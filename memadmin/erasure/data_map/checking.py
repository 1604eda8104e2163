"""Comparison of the data map with the database and the registered jobs: what is not classified, and what is gone."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.apps import apps
from django.db import connection
from procrastinate.contrib.django import app as job_app

from memadmin.erasure.data_map.places import FILE, Location, Place

NO_ARGUMENTS = "no arguments"

# The catalogue, because information_schema shows a role only the columns that it may use.
COLUMNS = """
SELECT c.relname, a.attname
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
    AND (%s OR n.nspname = current_schema() AND c.relname = ANY (%s))
ORDER BY c.relname, a.attnum
"""

Columns = Mapping[str, Sequence[str]]
"""Names of columns, by table or job."""


@dataclass(frozen=True, slots=True)
class DataMapComparison:
    """Differences between the data map and what exists."""

    unclassified: Mapping[Location, Columns] = field(default_factory=dict)
    gone: Sequence[str] = ()
    """Classified columns and jobs that do not exist."""

    @property
    def unclassified_count(self) -> int:
        return sum(len(columns) for found in self.unclassified.values() for columns in found.values())

    @property
    def instructions(self) -> str:
        """Entries to add to the file, and entries to remove from it; empty if there are none."""
        parts = []
        for location, found in self.unclassified.items():
            parts += [entry_for(location, name, columns) for name, columns in found.items()]
        if parts:
            parts.insert(0, f"Classify these in {FILE.name} (its head explains the values):")
        if self.gone:
            parts += [f"Remove these from {FILE.name}, because they do not exist:", *self.gone]
        return "\n\n".join(parts)


def entry_for(location: Location, name: str, columns: Sequence[str]) -> str:
    """A new entry for the file, to be completed."""
    key = name if name.isidentifier() else f'"{name}"'
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f"[[{location}.{key}]]\ncolumns = [{names}]\n"
        'class = "none"  # or: what = ["content"], of = ["subjects"], erased_by = ["sessions"], kept_for = "…"'
    )


def compare(places: Iterable[Place], *, everywhere: bool = False) -> DataMapComparison:
    """Compares the data map with our tables and jobs, or with all tables of the database. One query."""
    places = list(places)
    tables, jobs = existing_columns(everywhere=everywhere), job_arguments()
    ours = classified(places, Location.MEMADMIN)
    # New tables are memadmin's own: the agents' tables have an entry, whatever database they are in.
    of_agents = classified(places, Location.AGENTS)
    of_jobs = classified(places, Location.JOBS)
    missing = {
        Location.MEMADMIN: without(tables, {**of_agents, **ours}),
        Location.JOBS: without(jobs, of_jobs),
    }
    return DataMapComparison(
        unclassified={location: found for location, found in missing.items() if found},
        gone=[
            f"{location}.{name}: {', '.join(columns)}"
            for location, known, there in ((Location.MEMADMIN, ours, tables), (Location.JOBS, of_jobs, jobs))
            for name, columns in without(known, there).items()
        ],
    )


def existing_columns(*, everywhere: bool) -> Columns:
    """Columns of our tables, or of all tables and views of every schema. One query."""
    found: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, [everywhere, our_tables()])
        for table, column in cursor.fetchall():
            found.setdefault(table, []).append(column)
    return found


def our_tables() -> list[str]:
    """Names of tables that migrations make, with those without a model."""
    models = [model._meta for model in apps.get_models(include_auto_created=True)]
    named = {meta.db_table for meta in models if meta.managed or meta.app_label == "procrastinate"}
    return sorted(named | {"django_migrations", "memadmin_cache", "memadmin_secret"})


def job_arguments() -> Columns:
    """Names of the arguments of each registered background job."""
    found = {}
    for name, task in job_app.tasks.items():
        arguments = [argument for argument in inspect.signature(task.func).parameters if argument != "context"]
        found[name] = arguments or [NO_ARGUMENTS]
    return found


def classified(places: Iterable[Place], location: Location) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for place in places:
        if place.location is location:
            found.setdefault(place.name, []).extend(place.columns)
    return found


def without(columns: Columns, known: Columns) -> dict[str, list[str]]:
    """The columns that are not among those known."""
    rest = {name: [each for each in those if each not in known.get(name, ())] for name, those in columns.items()}
    return {name: those for name, those in rest.items() if those}
