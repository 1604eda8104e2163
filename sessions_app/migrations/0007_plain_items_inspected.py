from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def inspect_again(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("sessions_app", "SessionRecord").objects.filter(is_encrypted=True).update(inspected_count=-1)


class Migration(migrations.Migration):
    """The job inspects all encrypted sessions again, to find their plain items."""

    dependencies = [("sessions_app", "0006_plain_items")]

    operations = [migrations.RunPython(inspect_again, migrations.RunPython.noop)]
