from django.db import migrations

from memadmin.accounts.roles import give


class Migration(migrations.Migration):
    """Compliance keeps the record of processing; auditors read it."""

    dependencies = [("erasure", "0004_processing_record"), ("retention", "0003_what_roles_may")]
    operations = [
        give(
            {
                "compliance": ["erasure.view_data_map", "erasure.change_processing_record"],
                "auditor": ["erasure.view_data_map"],
            }
        ),
    ]
