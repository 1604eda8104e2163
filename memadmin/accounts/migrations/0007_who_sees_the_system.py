from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Administrators see the health of the system."""

    dependencies = [("accounts", "0006_invitations")]

    operations = [
        migrations.AlterModelOptions(
            name="invitation",
            options={
                "default_permissions": (),
                "permissions": [
                    ("view_people", "Can see accounts, their roles, second factors and open sessions"),
                    ("view_system", "Can see the health of the system and the findings of its checks"),
                ],
            },
        ),
        give({"administrator": ["accounts.view_system"]}),
    ]
