import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """A version is added before anybody has decided about it, and who decided stays."""

    dependencies = [
        ("retention", "0009_tables_and_alerts"),
    ]

    operations = [
        RunFile("retention", "policies.sql"),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="add",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_add_policy_version()",
                    func="RETURN NULL;",
                    hash="78f9fc97bf6b26968399bff376a7e70880f8fa70",
                    operation="INSERT",
                    pgid="pgtrigger_add_c14ef",
                    table="retention_policyversion",
                    when="BEFORE",
                ),
            ),
        ),
    ]
