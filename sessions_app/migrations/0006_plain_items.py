from django.db import migrations, models


class Migration(migrations.Migration):
    """Encrypted sessions with plain items are known as such."""

    dependencies = [("sessions_app", "0005_undeclared_ttl")]

    operations = [
        migrations.AddField(
            model_name="sessionrecord",
            name="has_plain_items",
            field=models.BooleanField(db_default=False, editable=False),
        ),
    ]
