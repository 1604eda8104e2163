"""`migrate`: Django's command, after a check of everything that it needs of the database."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from memadmin.prerequisites import refuse_unfit
from memories_app.vector_column import missing_vectors


class Command(migrate.Command):
    # Before Django reads which migrations were applied, which a role without rights may not.
    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        refuse_unfit(connection)
        super().handle(*args, **options)
        if options["verbosity"] and (sentence := missing_vectors(connection)):
            self.stderr.write(sentence)
