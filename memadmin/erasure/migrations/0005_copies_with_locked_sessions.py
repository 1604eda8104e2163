import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from memadmin.migrating import InstallTriggers, RunFile


class Migration(migrations.Migration):
    """A copy for a person has locked sessions with an approval by a second person alone."""

    while_older_runs = "Not safe: an older version builds copies with locked sessions, without a second person."

    dependencies = [
        ("accounts", "0003_approvals"),
        ("erasure", "0004_approvals"),
        ("sessions_app", "0004_redactions_with_approvals"),
    ]

    operations = [
        migrations.AddField(
            model_name="accesscopy",
            name="approval",
            field=models.OneToOneField(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="accounts.approval",
            ),
        ),
        migrations.AddField(
            model_name="accesscopy",
            name="locked",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.UUIDField(),
                blank=True,
                db_default=models.Value("{}"),
                default=list,
                editable=False,
                size=None,
            ),
        ),
        RunFile("erasure", "locked_copies.sql"),
        InstallTriggers("AccessCopy"),
    ]
