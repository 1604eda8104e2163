from django.db import migrations, models


class Migration(migrations.Migration):
    """The result of the last health check of each store."""

    dependencies = [("sessions_app", "0007_plain_items_inspected")]

    operations = [
        migrations.AddField(
            model_name="sessionstore",
            name="checked_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="sessionstore",
            name="state",
            field=models.CharField(
                choices=[("ok", "healthy"), ("degraded", "degraded"), ("down", "unreachable")],
                db_default="",
                default="",
                editable=False,
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="sessionstore",
            name="last_check",
            field=models.JSONField(
                blank=True, db_default=models.Value({}, models.JSONField()), default=dict, editable=False
            ),
        ),
    ]
