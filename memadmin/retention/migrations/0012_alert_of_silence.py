from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retention", "0011_starts_with_approval"),
    ]

    operations = [
        migrations.AlterField(
            model_name="sweepalert",
            name="about",
            field=models.CharField(
                choices=[
                    ("stopped", "the run stopped or failed"),
                    ("incomplete", "the run has exceptions"),
                    ("backlog", "what is due grew in three runs in a row"),
                    ("silent", "no run has succeeded for two nights"),
                ],
                max_length=10,
            ),
        ),
    ]
