from django.db import migrations, models


class Migration(migrations.Migration):
    """Single items of other systems are noted before they go."""

    dependencies = [
        ("retention", "0013_items_noted"),
    ]

    operations = [
        migrations.AddField(
            model_name="unfinishedexpiry",
            name="item_marks",
            field=models.JSONField(null=True),
        ),
    ]
