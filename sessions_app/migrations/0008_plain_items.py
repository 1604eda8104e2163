from django.db import migrations, models


class Migration(migrations.Migration):
    """Encrypted sessions with plain items are known as such."""

    dependencies = [("sessions_app", "0004_what_roles_may")]

    operations = [
        migrations.AddField(
            model_name="sessionrecord",
            name="has_plain_items",
            field=models.BooleanField(db_default=False, editable=False),
        ),
    ]
