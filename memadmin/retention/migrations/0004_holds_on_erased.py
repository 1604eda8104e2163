import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """A subject whose data is gone is not put under a hold."""

    dependencies = [("retention", "0003_what_roles_may"), ("sessions_app", "0009_erased_subjects")]

    operations = [
        RunFile("retention", "holds_on_erased.sql"),
        pgtrigger.migrations.AddTrigger(
            model_name="legalhold",
            trigger=pgtrigger.compiler.Trigger(
                name="refuse_on_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_refuse_hold_on_erased()",
                    func="RETURN NULL;",
                    hash="d7b1e23b74c9fd9d8f6c0b35765d55b39915703e",
                    operation="INSERT",
                    pgid="pgtrigger_refuse_on_erased_f1142",
                    table="retention_legalhold",
                    when="BEFORE",
                ),
            ),
        ),
    ]
