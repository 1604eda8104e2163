import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """A version starts with the approval of another account, or if it surely keeps more than the one in force."""

    dependencies = [("retention", "0010_proposed_first")]

    operations = [
        RunFile("retention", "policy_starts.sql"),
        pgtrigger.migrations.AddTrigger(
            model_name="policyversion",
            trigger=pgtrigger.compiler.Trigger(
                name="start",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_start_policy_version()",
                    func="RETURN NULL;",
                    hash="90519158ecb0cd64545ed9c31d6f3b6afcad9cd8",
                    operation="UPDATE",
                    pgid="pgtrigger_start_603e5",
                    table="retention_policyversion",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="retentionpolicy",
            trigger=pgtrigger.compiler.Trigger(
                name="keep_default",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_keep_default_policy()",
                    func="RETURN NULL;",
                    hash="fd29ef7ef1abf02e4c8680bab948cebc364b34ef",
                    operation="UPDATE",
                    pgid="pgtrigger_keep_default_077ca",
                    table="retention_retentionpolicy",
                    when="BEFORE",
                ),
            ),
        ),
    ]
