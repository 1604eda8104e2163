from django.db import migrations, models


class Migration(migrations.Migration):
    """A state of its own for proposals that nobody decided about in time."""

    dependencies = [("memories_app", "0008_hinted_proposals")]

    operations = [
        migrations.AlterField(
            model_name="memory",
            name="status",
            field=models.CharField(
                choices=[
                    ("proposed", "proposed"),
                    ("approved", "approved"),
                    ("needs_revalidation", "needs re-validation"),
                    ("rejected", "rejected"),
                    ("merged", "merged"),
                    ("superseded", "superseded"),
                    ("expired", "expired"),
                    ("retired", "retired"),
                    ("lapsed", "expired unreviewed"),
                ],
                db_default="proposed",
                default="proposed",
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(models.F("decided_at"), condition=models.Q(status="lapsed"), name="memory_lapsed"),
        ),
    ]
