import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What a run was told keeps its place when the memory is erased, so that nobody takes the rest for all of it."""

    dependencies = [("memories_app", "0009_lapsed_proposals")]

    operations = [
        migrations.AlterField(
            model_name="recalledmemory",
            name="memory",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="recalls",
                to="memories_app.memory",
            ),
        ),
    ]
