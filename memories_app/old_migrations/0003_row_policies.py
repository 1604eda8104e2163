from __future__ import annotations

import importlib

from django.db import migrations

FIX_PATH = importlib.import_module("memadmin.audit.old_migrations.0001_functions").FIX_PATH

# Evidence comes with its proposal or not at all: nobody adds to what others proposed. The time is the database's word,
# and the same only within one transaction.
IS_NEW_PROPOSAL = """
CREATE FUNCTION memadmin_is_new_proposal(given uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT EXISTS (
    SELECT FROM memories_app_memory
    WHERE id = given AND status = 'proposed' AND proposed_at = transaction_timestamp()
)
$$
"""

IS_NEW_RECALL = """
CREATE FUNCTION memadmin_is_new_recall(given uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT EXISTS (
    SELECT FROM memories_app_recall
    WHERE id = given AND recalled_at = transaction_timestamp()
)
$$
"""

OF_THE_RUN = "(subject_id IS NULL OR subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]))"

# Permissive policies for everybody are all that agents have. `db_roles` adds one for the application, whose roles
# belong to the server and are not known here. The owner of the tables is not bound by any.
POLICIES = {
    "memory": f"""
        CREATE POLICY recalled ON memories_app_memory FOR SELECT USING (
            status = 'approved' AND {OF_THE_RUN}
            AND (valid_from IS NULL OR valid_from <= now()) AND (valid_until IS NULL OR valid_until > now())
            AND (agents = '{{}}' OR current_setting('memadmin.agent', true) = ANY (agents))
        );
        CREATE POLICY proposed ON memories_app_memory FOR INSERT WITH CHECK (
            status = 'proposed' AND {OF_THE_RUN} AND source IN ('user', 'tool', 'web') AND proposed_by_id IS NULL
        )""",
    "evidence": """
        CREATE POLICY proposed ON memories_app_evidence FOR INSERT WITH CHECK (memadmin_is_new_proposal(memory_id))""",
    "signal": f"""
        CREATE POLICY given ON memories_app_signal FOR INSERT WITH CHECK (
            {OF_THE_RUN} AND given_by_id IS NULL AND kind <> 'feedback'
        )""",
    "recall": f"""
        CREATE POLICY made ON memories_app_recall FOR INSERT WITH CHECK ({OF_THE_RUN})""",
    "recalledmemory": """
        CREATE POLICY made ON memories_app_recalledmemory FOR INSERT WITH CHECK (memadmin_is_new_recall(recall_id))""",
    # Nobody but the application has any business here.
    **dict.fromkeys(("memoryversion", "review", "approvalrule", "savedview", "distillation", "learningstop"), ""),
}


class Migration(migrations.Migration):
    """What agents may see and add: row policies, so that no program can pass the gate by."""

    dependencies = [("memories_app", "0002_memories")]
    operations = [
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(IS_NEW_PROPOSAL, "DROP FUNCTION memadmin_is_new_proposal(uuid)"),
        migrations.RunSQL(IS_NEW_RECALL, "DROP FUNCTION memadmin_is_new_recall(uuid)"),
        *(
            migrations.RunSQL(
                f"ALTER TABLE memories_app_{table} ENABLE ROW LEVEL SECURITY;{policies}",
                "".join(
                    f"DROP POLICY {name} ON memories_app_{table};"
                    for name in ("recalled", "proposed", "given", "made")
                    if f"POLICY {name} " in policies
                )
                + f"ALTER TABLE memories_app_{table} DISABLE ROW LEVEL SECURITY",
            )
            for table, policies in POLICIES.items()
        ),
    ]
