from django.db import migrations


def inspect_again(apps, schema_editor):
    apps.get_model("sessions_app", "SessionRecord").objects.filter(is_encrypted=True).update(inspected_count=-1)


class Migration(migrations.Migration):
    """The job inspects all encrypted sessions again, to find their plain items."""

    dependencies = [("sessions_app", "0008_plain_items")]

    operations = [migrations.RunPython(inspect_again, migrations.RunPython.noop)]
