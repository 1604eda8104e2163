from django.db import migrations, models


class Migration(migrations.Migration):
    """How far the suppression ledger is carried out."""

    dependencies = [
        ("erasure", "0002_what_roles_may"),
    ]

    operations = [
        migrations.CreateModel(
            name="SuppressionEntry",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("request_id", models.UUIDField()),
                ("entered_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("number__gt", 0)), name="suppression_number")
                ],
            },
        ),
    ]
