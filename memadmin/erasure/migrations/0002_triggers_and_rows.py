from django.db import migrations

from memadmin.accounts.roles import give
from memadmin.migrating import InstallTriggers


class Migration(migrations.Migration):
    """Changes of requests are recorded; permissions for requests and for the record of processing."""

    dependencies = [("erasure", "0001_model_tables"), ("memories_app", "0002_triggers_and_rows")]

    operations = [
        InstallTriggers(),
        give(
            {
                "compliance": [
                    "erasure.view_request",
                    "erasure.handle_request",
                    "erasure.approve_request",
                    "erasure.view_data_map",
                    "erasure.change_processing_record",
                ],
                "auditor": ["erasure.view_data_map"],
            }
        ),
    ]
