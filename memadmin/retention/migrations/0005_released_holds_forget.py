from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """A released hold can lose the id of its session."""

    dependencies = [("retention", "0004_holds_on_erased")]
    operations = [RunFile("retention", "holds.sql")]
