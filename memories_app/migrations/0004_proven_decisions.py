from django.db import migrations

from memadmin.migrating import InstallTriggers, RunFile

UNDO_UNPROVEN = """
UPDATE memories_app_review AS r SET undone_at = now()
FROM memories_app_memory AS m
WHERE m.id = r.memory_id AND m.status IN ('proposed', 'needs_revalidation')
    AND r.decision = 'approve' AND r.undone_at IS NULL AND NOT EXISTS (
        SELECT FROM audit_event AS e JOIN audit_actor AS a ON a.ref = e.actor_ref
        WHERE e.object_ref = m.id AND e.type = 'memory.approved' AND a.kind = e.actor_kind
            AND (a.user_id = r.reviewer_id OR (r.rule_id IS NOT NULL AND a.kind IN ('job', 'command')))
    )
"""
"""Approvals that still count for a decision, and of which the log has no event by their reviewer or of a rule."""


class Migration(migrations.Migration):
    """The database refuses decisions and approval rules without a proof of their actor; unproven approvals are undone."""

    while_older_runs = "Not safe: it saves new approval rules without a proof, which the database refuses."

    dependencies = [
        ("memories_app", "0003_readable_times"),
        ("audit", "0003_proven_and_named_actors"),
        ("accounts", "0002_triggers_and_rows"),
    ]

    operations = [
        migrations.RunSQL(UNDO_UNPROVEN, migrations.RunSQL.noop),
        RunFile("memories_app", "memory_gate.sql"),
        RunFile("memories_app", "reviews.sql"),
        InstallTriggers("Review", "ApprovalRule", "Evidence"),
    ]
