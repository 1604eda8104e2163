import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("retention", "0008_default_policy"),
        ("runs", "0002_runs_of_a_kind"),
    ]

    operations = [
        migrations.CreateModel(
            name="SweepAlert",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "about",
                    models.CharField(
                        choices=[
                            ("stopped", "the run stopped or failed"),
                            ("incomplete", "the run has exceptions"),
                            ("backlog", "what is due grew in three runs in a row"),
                        ],
                        max_length=10,
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "result",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="retention.sweepresult",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sweep_alerts", to="runs.run"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SweptTable",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=127)),
                ("rows", models.BigIntegerField(help_text="deleted or changed by the run")),
                ("size_before", models.BigIntegerField()),
                ("size_after", models.BigIntegerField(null=True)),
                ("vacuumed_at", models.DateTimeField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="swept_tables", to="runs.run"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["name", "-id"], name="swept_table_newest")],
                "constraints": [
                    models.UniqueConstraint(fields=("run", "name"), name="swept_table_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("size_after__isnull", True), ("vacuumed_at__isnull", True)),
                            models.Q(("size_after__isnull", False), ("vacuumed_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="swept_table_size_after_vacuum",
                    ),
                ],
            },
        ),
    ]
