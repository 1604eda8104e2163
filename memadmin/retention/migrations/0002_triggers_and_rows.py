from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.functions import Now

from memadmin.accounts.roles import give
from memadmin.migrating import InstallTriggers, RunFile


def make_default(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    policy = apps.get_model("retention", "RetentionPolicy").objects.create(name="Everything else", is_default=True)
    apps.get_model("retention", "PolicyVersion").objects.create(
        policy=policy,
        number=1,
        target="sessions",
        clock="last_activity",
        action="keep",
        needs_approval=False,
        starts_at=Now(),
    )


class Migration(migrations.Migration):
    """Data under a hold stays, and what no other policy is about is kept; permissions for holds and policies."""

    dependencies = [("memories_app", "0002_triggers_and_rows"), ("retention", "0001_model_tables")]

    operations = [
        RunFile("retention", "holds.sql"),
        RunFile("retention", "holds_on_erased.sql"),
        RunFile("retention", "hold_triggers.sql"),
        RunFile("retention", "policies.sql"),
        RunFile("retention", "policy_starts.sql"),
        # Before the triggers: they let no version in that starts at once.
        migrations.RunPython(make_default, migrations.RunPython.noop),
        InstallTriggers(),
        give(
            {
                "compliance": [
                    "retention.view_hold",
                    "retention.place_hold",
                    "retention.release_hold",
                    "retention.view_policy",
                    "retention.change_policy",
                    "retention.approve_policy",
                ]
            }
        ),
    ]
