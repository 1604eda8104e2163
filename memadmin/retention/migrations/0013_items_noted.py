from django.db import migrations, models


class Migration(migrations.Migration):
    """Sessions of other systems are noted with their items before they go."""

    dependencies = [
        ("retention", "0012_alert_of_silence"),
    ]

    operations = [
        migrations.AddField(
            model_name="unfinishedexpiry",
            name="items",
            field=models.BigIntegerField(null=True),
        ),
    ]
