"""What all processes know together (see memadmin.accounts.db_cache)."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_roles")]

    operations = [
        migrations.RunSQL(
            """
            CREATE TABLE memadmin_cache (
                key varchar(300) PRIMARY KEY,
                value text NOT NULL,
                expires_at timestamptz NOT NULL
            );
            CREATE INDEX memadmin_cache_by_end ON memadmin_cache (expires_at);
            """,
            "DROP TABLE memadmin_cache",
        )
    ]
