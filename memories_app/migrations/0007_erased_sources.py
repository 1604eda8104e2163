import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations

from memadmin.migrating import RunFile


class Migration(migrations.Migration):
    """Nothing is stored of erased sessions, or about erased subjects."""

    dependencies = [("memories_app", "0006_rules_leave_agents_proposals"), ("sessions_app", "0009_erased_subjects")]

    operations = [
        RunFile("memories_app", "learning_stops.sql"),
        RunFile("memories_app", "memory_gate.sql"),
        RunFile("memories_app", "erased_sources.sql"),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="not_of_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_refuse_erased_evidence()",
                    func="RETURN NULL;",
                    hash="a5a579762cf870e36748b3f86d7d1c7651b81fa1",
                    operation="INSERT",
                    pgid="pgtrigger_not_of_erased_38f91",
                    table="memories_app_evidence",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="not_to_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (ROW(OLD.memory_id, OLD.record_id) IS DISTINCT FROM ROW(NEW.memory_id, NEW.record_id))",
                    execute="memadmin_refuse_erased_evidence()",
                    func="RETURN NULL;",
                    hash="11dcbf96cf066c34bab6591d3766336943c1b427",
                    operation="UPDATE",
                    pgid="pgtrigger_not_to_erased_6947a",
                    table="memories_app_evidence",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="not_of_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_refuse_erased_source()",
                    func="RETURN NULL;",
                    hash="3c1045ce9938c2b1ae79b4b5522d2fd0906d1338",
                    operation="INSERT",
                    pgid="pgtrigger_not_of_erased_25f69",
                    table="memories_app_recall",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="not_to_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (ROW(OLD.subject_id, OLD.record_id) IS DISTINCT FROM ROW(NEW.subject_id, NEW.record_id))",
                    execute="memadmin_refuse_erased_source()",
                    func="RETURN NULL;",
                    hash="448a1a1233712cbe0d891f43940f05b1138c4d61",
                    operation="UPDATE",
                    pgid="pgtrigger_not_to_erased_5191a",
                    table="memories_app_recall",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="not_of_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_refuse_erased_source()",
                    func="RETURN NULL;",
                    hash="36af537af4afdaabfc53c15918aade773f7b5fa3",
                    operation="INSERT",
                    pgid="pgtrigger_not_of_erased_03b06",
                    table="memories_app_signal",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="not_to_erased",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (ROW(OLD.subject_id, OLD.record_id) IS DISTINCT FROM ROW(NEW.subject_id, NEW.record_id))",
                    execute="memadmin_refuse_erased_source()",
                    func="RETURN NULL;",
                    hash="77f4d64b06142d731442ec32606f7d704bf367bd",
                    operation="UPDATE",
                    pgid="pgtrigger_not_to_erased_cf787",
                    table="memories_app_signal",
                    when="BEFORE",
                ),
            ),
        ),
    ]
