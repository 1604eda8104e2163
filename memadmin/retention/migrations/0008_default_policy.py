from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models.functions import Now


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
    """The default policy: what no other policy is about is kept."""

    dependencies = [("retention", "0007_who_changes_policies")]
    operations = [migrations.RunPython(make_default, migrations.RunPython.noop)]
