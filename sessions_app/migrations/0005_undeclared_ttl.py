from typing import Any

from django.db import migrations, models

DEFAULT = 600
"""Value of every store until now, also where it was not declared."""


def forget_the_default(apps: Any, schema_editor: Any) -> None:
    stores = apps.get_model("sessions_app", "SessionStore").objects
    stores.filter(encryption_ttl_seconds=DEFAULT).update(encryption_ttl_seconds=None)


def restore_the_default(apps: Any, schema_editor: Any) -> None:
    stores = apps.get_model("sessions_app", "SessionStore").objects
    stores.filter(encryption_ttl_seconds=None).update(encryption_ttl_seconds=DEFAULT)


class Migration(migrations.Migration):
    """A lifetime of encrypted items that is not declared. Stores with the earlier default count as not declared, since a
    purge would remove what their agents may still read.
    """

    dependencies = [("sessions_app", "0004_what_roles_may")]

    operations = [
        migrations.AlterField(
            model_name="sessionstore",
            name="encryption_ttl_seconds",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Number of seconds after which agents no longer read an encrypted item; empty if not"
                " declared.",
                null=True,
            ),
        ),
        migrations.RunPython(forget_the_default, restore_the_default),
    ]
