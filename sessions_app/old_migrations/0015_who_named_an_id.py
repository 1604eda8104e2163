from __future__ import annotations

import importlib

from django.db import migrations, models

FIX_PATH = importlib.import_module("memadmin.audit.old_migrations.0001_functions").FIX_PATH
AS_IT_WAS = importlib.import_module("sessions_app.old_migrations.0014_register_sessions").SUBJECT_FOR.replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
WITH_SOURCE = AS_IT_WAS.replace("key, is_primary)", "key, is_primary, source)").replace(
    "given_key, true)", "given_key, true, 'client')"
)


class Migration(migrations.Migration):
    """Where each id of a subject came from: an agent, a session id, an import, or somebody's hand."""

    dependencies = [("sessions_app", "0014_register_sessions")]
    operations = [
        migrations.AddField(
            "subjectalias",
            "source",
            models.CharField(
                choices=[
                    ("client", "registered by the agent"),
                    ("import", "named in an import"),
                    ("pattern", "read from the session id"),
                    ("operator", "attached by hand"),
                ],
                db_default="",
                editable=False,
                max_length=8,
            ),
        ),
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(WITH_SOURCE, AS_IT_WAS),
    ]
