from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Rules leave proposals of agents to people."""

    dependencies = [("memories_app", "0005_user_quotes")]
    operations = [RunFile("memories_app", "user_quotes.sql")]
