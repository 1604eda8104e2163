"""`migrate`: Django's command, after a check of everything that it needs of the database."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from memadmin.migrating import alone, record_first_migrations, warnings_of
from memadmin.prerequisites import refuse_unfit
from memories_app.vector_column import missing_vectors


class Command(migrate.Command):
    # Before Django reads which migrations were applied, which a role without rights may not.
    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        refuse_unfit(connection)
        with alone(connection, self.stderr.write):
            self.migrate(connection, *args, **options)

    def migrate(self, connection: BaseDatabaseWrapper, *args: Any, **options: Any) -> None:
        record_first_migrations(connection)
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        is_new = not any(app == "audit" for app, _ in executor.loader.applied_migrations)
        for sentence in warnings_of([migration for migration, _ in plan], is_new=is_new):
            self.stderr.write(sentence)
        super().handle(*args, **options)
        if options["verbosity"] and (sentence := missing_vectors(connection)):
            self.stderr.write(sentence)
