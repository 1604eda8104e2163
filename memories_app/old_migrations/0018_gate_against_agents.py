from __future__ import annotations

import importlib

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models
from django.db.models.functions import Cast, Length
from django.db.models.lookups import LessThanOrEqual

functions = importlib.import_module("memories_app.old_migrations.0001_functions")
policies = importlib.import_module("memories_app.old_migrations.0003_row_policies")

# A proposal that is under way when somebody says no waits for them, or they for it: both lock the subject, so that
# none is committed afterwards. Under REPEATABLE READ it fails, because the row that it locks is another by then.
STANDS_STILL = """
CREATE FUNCTION memadmin_refuse_stopped(given uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whole uuid[] := memadmin_subject_group(given);
BEGIN
    PERFORM FROM sessions_app_subject WHERE id = ANY (whole) ORDER BY id FOR SHARE;
    IF EXISTS (SELECT FROM memories_app_learningstop WHERE subject_id = ANY (whole)) THEN
        RAISE EXCEPTION 'Nothing is to be learned from this subject.' USING ERRCODE = 'P0M01';
    END IF;
END $$
"""

WAIT_FOR_LEARNERS = """
CREATE FUNCTION memadmin_wait_for_learners() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whole uuid[] := memadmin_subject_group(NEW.subject_id);
BEGIN
    PERFORM FROM sessions_app_subject WHERE id = ANY (whole) ORDER BY id FOR NO KEY UPDATE;
    UPDATE sessions_app_subject SET created_at = created_at WHERE id = ANY (whole);
    RETURN NEW;
END $$
"""

MAY_LEARN = """
CREATE OR REPLACE FUNCTION memadmin_may_learn() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.subject_id IS NOT NULL THEN
        PERFORM memadmin_refuse_stopped(NEW.subject_id);
    END IF;
    RETURN NEW;
END $$
"""

# What changes a memory is about whom that is about: approved text goes to that one, and the gate compares the two. Of
# several ids of one subject the agent may know another.
OF_WHOM = """
        IF NEW.replaces_id IS NOT NULL THEN
            SELECT subject_id INTO whose FROM memories_app_memory WHERE id = NEW.replaces_id;
            IF FOUND AND whose IS DISTINCT FROM NEW.subject_id THEN
                IF whose IS NULL OR NEW.subject_id IS NULL OR whose <> ALL (memadmin_subject_group(NEW.subject_id)) THEN
                    RAISE EXCEPTION 'That memory is about somebody else.' USING ERRCODE = 'P0M07';
                END IF;
                NEW.subject_id := whose;
            END IF;
        END IF;
"""

HASHED = """    NEW.content_hash := encode("""
STOPPED = """        IF NEW.subject_id IS NOT NULL AND EXISTS (
            SELECT FROM memories_app_learningstop WHERE subject_id = ANY (memadmin_subject_group(NEW.subject_id))
        ) THEN
            RAISE EXCEPTION 'Nothing is to be learned from this subject.' USING ERRCODE = 'P0M01';
        END IF;
"""
NEVER_STOPPED = """        IF NEW.subject_id IS NOT NULL THEN
            PERFORM memadmin_refuse_stopped(NEW.subject_id);
        END IF;
"""

GATE = functions.GATE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
NEW_GATE = (
    GATE.replace("    is_risky boolean;\n", "    is_risky boolean;\n    whose uuid;\n")
    .replace(HASHED, f"    IF TG_OP = 'INSERT' THEN{OF_WHOM}    END IF;\n{HASHED}", 1)
    .replace(STOPPED, NEVER_STOPPED)
)
assert NEW_GATE.count("whose uuid;") == NEW_GATE.count("P0M07") == NEW_GATE.count("memadmin_refuse_stopped") == 1

# Who may not record events of the log does not say who acts, either: that is the application.
KEEP_VERSION = functions.KEEP_VERSION.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
NAMED = "substring(current_setting('memadmin.actor', true), '^[a-z]+:[0-9a-f-]{36}$');"
NEW_KEEP_VERSION = KEEP_VERSION.replace(
    NAMED,
    "CASE WHEN has_any_column_privilege(session_user, 'audit_event', 'INSERT')\n        THEN " + NAMED[:-1] + " END;",
)
assert NEW_KEEP_VERSION != KEEP_VERSION

# An agent that proposes without end would keep reviewers from the rest. What waits is counted up to the limit.
MAY_PROPOSE = """
CREATE FUNCTION memadmin_has_room(given uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF (
        SELECT count(*) >= 200 FROM (
            SELECT FROM memories_app_memory
            WHERE subject_id IS NOT DISTINCT FROM given AND status = 'proposed' LIMIT 200
        ) AS waiting
    ) THEN
        RAISE EXCEPTION 'So many proposals about this subject wait that no other is taken.' USING ERRCODE = 'P0M06';
    END IF;
    RETURN true;
END $$
"""

NEW_POLICIES = f"""
DROP POLICY proposed ON memories_app_memory;
CREATE POLICY proposed ON memories_app_memory FOR INSERT WITH CHECK (
    status = 'proposed' AND {policies.OF_THE_RUN} AND source IN ('user', 'tool', 'web') AND proposed_by_id IS NULL
    -- The console's own distillers and imports, by which rules approve, are called so.
    AND extractor !~ '^(rules/|import/|agent/[0-9])'
    AND memadmin_has_room(subject_id)
);
DROP POLICY given ON memories_app_signal;
CREATE POLICY given ON memories_app_signal FOR INSERT WITH CHECK (
    {policies.OF_THE_RUN} AND given_by_id IS NULL AND kind <> 'feedback'
    AND (memory_id IS NULL OR EXISTS (SELECT FROM memories_app_memory AS m WHERE m.id = memory_id))
);
-- Within a policy agents see of memories what they see elsewhere.
DROP POLICY made ON memories_app_recalledmemory;
CREATE POLICY made ON memories_app_recalledmemory FOR INSERT WITH CHECK (
    memadmin_is_new_recall(recall_id) AND EXISTS (SELECT FROM memories_app_memory AS m WHERE m.id = memory_id)
)
"""

OLD_POLICIES = f"""
DROP POLICY proposed ON memories_app_memory;
DROP POLICY given ON memories_app_signal;
DROP POLICY made ON memories_app_recalledmemory;
CREATE POLICY proposed ON memories_app_memory FOR INSERT WITH CHECK (
    status = 'proposed' AND {policies.OF_THE_RUN} AND source IN ('user', 'tool', 'web') AND proposed_by_id IS NULL
);
{policies.POLICIES["signal"]};
{policies.POLICIES["recalledmemory"]}
"""

# Earlier functions as they were, for who goes back.
OLD_MAY_LEARN = functions.MAY_LEARN.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")

KINDS = ["preference", "fact", "procedure", "note", "summary"]


class Migration(migrations.Migration):
    """What agents could still do: learn while somebody says no, pass for others, flood the queue, bring what is no text."""

    dependencies = [("memories_app", "0017_who_erases_versions")]
    operations = [
        migrations.RunSQL(functions.FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(STANDS_STILL, "DROP FUNCTION memadmin_refuse_stopped(uuid)"),
        migrations.RunSQL(WAIT_FOR_LEARNERS, "DROP FUNCTION memadmin_wait_for_learners()"),
        migrations.RunSQL(MAY_LEARN, OLD_MAY_LEARN),
        migrations.RunSQL(NEW_GATE, GATE),
        migrations.RunSQL(NEW_KEEP_VERSION, KEEP_VERSION),
        migrations.RunSQL(MAY_PROPOSE, "DROP FUNCTION memadmin_has_room(uuid)"),
        migrations.RunSQL(NEW_POLICIES, OLD_POLICIES),
        pgtrigger.migrations.AddTrigger(
            model_name="learningstop",
            trigger=pgtrigger.compiler.Trigger(
                name="wait_for_learners",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_wait_for_learners()",
                    func="RETURN NULL;",
                    hash="67b1a25fc7ea6fdb208b4e8af544c867b5d49cf5",
                    operation="INSERT",
                    pgid="pgtrigger_wait_for_learners_35144",
                    table="memories_app_learningstop",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            "memory", models.CheckConstraint(condition=models.Q(kind__in=KINDS), name="memory_kind_is_known")
        ),
        migrations.AddConstraint(
            "memory",
            models.CheckConstraint(
                condition=models.Q(provenance__in=["explicit", "inferred"]), name="memory_provenance_is_known"
            ),
        ),
        migrations.AddConstraint(
            "memory",
            models.CheckConstraint(
                condition=LessThanOrEqual(Length(Cast("data", models.TextField())), 40_000), name="memory_data_is_small"
            ),
        ),
        migrations.AddConstraint(
            "memory", models.CheckConstraint(condition=models.Q(agents__len__lte=50), name="memory_agents_are_few")
        ),
        migrations.AddConstraint(
            "signal",
            models.CheckConstraint(
                condition=models.Q(kind__in=["correction", "preference", "outcome", "rating", "feedback"]),
                name="signal_kind_is_known",
            ),
        ),
    ]
