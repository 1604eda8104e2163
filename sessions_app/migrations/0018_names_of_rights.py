from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

VERBS = ("add", "change", "delete", "view")
NAMES = {
    ("subject", "reopen_subject"): (
        "Can allow a new start under an erased id",
        "Can allow a new start under an erased ID",
    ),
    **{
        ("sessionidpattern", f"{verb}_sessionidpattern"): (
            f"Can {verb} session id pattern",
            f"Can {verb} session ID pattern",
        )
        for verb in VERBS
    },
}
"""Names before and after, of the permissions that exist: Django names new ones only."""


def rename(apps: StateApps, *, before: int, after: int) -> None:
    permissions = apps.get_model("auth", "Permission").objects
    for (model, codename), names in NAMES.items():
        permissions.filter(
            content_type__app_label="sessions_app",
            content_type__model=model,
            codename=codename,
            name=names[before],
        ).update(name=names[after])


def forwards(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    rename(apps, before=0, after=1)


def backwards(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    rename(apps, before=1, after=0)


class Migration(migrations.Migration):
    while_older_runs = "Safe: it changes names of permissions, which an older version shows and does not compare."

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions_app", "0017_redactions_by_time"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="sessionidpattern",
            options={"ordering": ["store", "position", "pk"], "verbose_name": "session ID pattern"},
        ),
        migrations.AlterModelOptions(
            name="subject",
            options={
                "ordering": ["created_at", "id"],
                "permissions": [
                    ("merge_subject", "Can merge subjects and undo merges"),
                    ("reopen_subject", "Can allow a new start under an erased ID"),
                ],
            },
        ),
        migrations.RunPython(forwards, backwards),
    ]
