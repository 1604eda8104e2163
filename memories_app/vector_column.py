"""The column `embedding` of memories: of pgvector's type where the database has the extension, else an empty text.

Vectors are of use, not a need: without them recall, contradictions and similar memories go by words. `migrate` changes
the column once pgvector is there.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState
from pgvector.django import VectorExtension

from memadmin.client.candidates import HAS_VECTORS
from memadmin.client.embedding import NONE
from memadmin.migrating import OneWay

STATE = """
SELECT CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN 'created'
            WHEN NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN 'missing'
            WHEN (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
              OR has_database_privilege(current_database(), 'CREATE') AND EXISTS (
                    SELECT FROM pg_available_extension_versions WHERE name = 'vector' AND trusted) THEN 'creatable'
            ELSE 'forbidden' END
"""

FACTS = "SELECT current_user, current_database(), current_setting('server_version_num')::int / 10000"

AS_VECTORS = (
    "ALTER TABLE memories_app_memory ALTER COLUMN embedding TYPE vector(256) USING NULL",
    "CREATE INDEX memory_shared_vectors ON memories_app_memory USING hnsw (embedding vector_cosine_ops)"
    " WHERE status = 'approved' AND subject_id IS NULL",
)
"""Statements that make the column one of vectors. It was empty: without pgvector no vector is computed. The first locks
and rewrites the table, which takes seconds for a million memories.
"""

REMEDIES = {
    "missing": "pgvector is not installed on the database server: recall uses words alone. Install it (on Debian the"
    " package postgresql-{major}-pgvector), run CREATE EXTENSION vector; as an administrator of the database, then"
    " migrate again.",
    "forbidden": "{role} may not create the extension vector in {database}: recall uses words alone. Run"
    " CREATE EXTENSION vector; as an administrator of the database, then migrate again.",
}


def has_vectors(using: BaseDatabaseWrapper | None = None) -> bool:
    """Whether the database stores and compares vectors. One small query."""
    return bool(_one((using or connection), HAS_VECTORS))


def uses_vectors() -> bool:
    """Whether memories get vectors here: there is an embedder, and a place for them."""
    return settings.EMBEDDER != NONE and has_vectors()


def missing_vectors(using: BaseDatabaseWrapper | None = None) -> str:
    """Why the database has no vectors, with the statement that changes it; empty if nothing keeps them out."""
    database = using or connection
    state = _one(database, STATE)
    if state in REMEDIES:
        role, name, major = _row(database, FACTS)
        return REMEDIES[state].format(role=role, database=name, major=major)
    return ""


def make(database: BaseDatabaseWrapper) -> None:
    """Turns the column into one of vectors, where the extension is or can be created."""
    state = _one(database, STATE)
    with database.cursor() as cursor:
        if state == "creatable":
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
        if state in ("created", "creatable"):
            for statement in AS_VECTORS:
                cursor.execute(statement)


def make_when_possible(*, using: str, **kwargs: Any) -> None:
    """Receiver of `post_migrate`: for databases that were migrated without pgvector, which they now have."""
    database = connections[using]
    if _one(database, "SELECT to_regclass('memories_app_memory') IS NOT NULL") and not has_vectors(database):
        with transaction.atomic(using=using):
            make(database)


class CreateExtensionIfPossible(VectorExtension):
    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if _one(schema_editor.connection, STATE) in ("created", "creatable"):
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class MakeVectorColumn(OneWay):
    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        make(schema_editor.connection)

    def describe(self) -> str:
        return "Store vectors, if the database has pgvector"


def _one(database: BaseDatabaseWrapper, query: str) -> Any:
    return _row(database, query)[0]


def _row(database: BaseDatabaseWrapper, query: str) -> Any:
    with database.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()
