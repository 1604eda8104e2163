"""One session with all that stands beside it on its pages, in one query that is written down.

Django asks two for it, and takes longer to compose them and to take the rows apart than a short session to draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from django.db import connections
from django.db.models import Model

from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectAlias

M = TypeVar("M", bound=Model)

ONE = """
SELECT {record}, {store}, {subject}, (
    SELECT json_agg(json_build_array({alias}) ORDER BY alias.is_primary DESC, alias.kind, alias.key, alias.id)
    FROM sessions_app_subjectalias AS alias WHERE alias.subject_id = record.subject_id
)
FROM sessions_app_sessionrecord AS record
JOIN sessions_app_sessionstore AS store ON store.id = record.store_id
LEFT JOIN sessions_app_subject AS subject ON subject.id = record.subject_id
WHERE record.id = %s AND record.erased_at IS NULL
"""


def session_on_record(record_id: UUID) -> SessionRecord | None:
    """With its store, its subject and the subject's ids at hand; None if there is none, or it was erased. One query."""
    using = SessionRecord.objects.db
    with connections[using].cursor() as cursor:
        cursor.execute(_written_down(), [record_id])
        row = cursor.fetchone()
    if row is None:
        return None
    *columns, aliases = row
    values = iter(columns)
    record = _taken(SessionRecord, values, using)
    record.store = _taken(SessionStore, values, using)
    subject = _taken(Subject, values, using)
    record.subject = subject if record.subject_id else None
    if record.subject:
        known_as = SubjectAlias.objects.all()
        # As prefetch_related() leaves them.
        known_as._result_cache = [_taken(SubjectAlias, iter(alias), using) for alias in aliases or ()]
        for alias in known_as:
            alias.subject = subject
        subject._prefetched_objects_cache = {"aliases": known_as}  # type: ignore[attr-defined]
    return record


@cache
def _written_down() -> str:
    models = {"record": SessionRecord, "store": SessionStore, "subject": Subject, "alias": SubjectAlias}
    columns = {
        name: ", ".join(f"{name}.{field.column}" for field in model._meta.concrete_fields)
        for name, model in models.items()
    }
    return ONE.format(**columns)


def _taken(model: type[M], values: Iterator[Any], using: str) -> M:
    """An instance of the next values, one for each of its columns."""
    connection = connections[using]
    names, read = [], []
    for field in model._meta.concrete_fields:
        value = next(values)
        for convert in field.get_db_converters(connection):
            value = convert(value, None, connection)
        names.append(field.attname)
        read.append(value)
    return model.from_db(using, names, read)
