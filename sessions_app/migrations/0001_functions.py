from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """The functions behind the registry's indexes and searches, and the one by which agents register sessions."""

    initial = True
    dependencies = [("audit", "0001_log_functions")]
    operations = [
        RunFile("sessions_app", "grams.sql"),
        RunFile("sessions_app", "item_words.sql"),
        RunFile("sessions_app", "register_session.sql"),
    ]
