from django.db import migrations


class Migration(migrations.Migration):
    """Reading, downloading and verifying the log are three permissions."""

    dependencies = [("audit", "0004_page_in_order_of_time")]

    operations = [
        migrations.AlterModelOptions(
            name="auditevent",
            options={
                "default_permissions": (),
                "permissions": [
                    ("view_auditevent", "Can read the audit log"),
                    ("export_log", "Can download the audit log"),
                    ("verify_log", "Can have the audit log verified"),
                ],
            },
        ),
    ]
