from django.db import migrations, models


class Migration(migrations.Migration):
    """A session is read on from where its last reading ended, and each find that is left out has its reason."""

    dependencies = [
        ("memories_app", "0012_digests"),
    ]

    operations = [
        migrations.AddField(
            model_name="distillation",
            name="last_item_hash",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="distillation",
            name="last_item_id",
            field=models.CharField(db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="distillation",
            name="left_out",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
    ]
