"""Who may see what is masked."""

from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_roles"),
        ("sessions_app", "0005_govern_registry"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="sessionstore",
            options={
                "ordering": ["name", "pk"],
                "permissions": [
                    ("raw_edit", "Can edit the agents' own rows"),
                    ("reveal_personal_data", "Can see what is masked, for a reason and recorded"),
                ],
            },
        ),
        give(
            {
                "support": ["sessions_app.reveal_personal_data"],
                "compliance": ["sessions_app.reveal_personal_data"],
            }
        ),
    ]
