-- Approvals that still count for a decision, and of which the log has no event by their reviewer or of a rule, are undone.
UPDATE memories_app_review AS r SET undone_at = now()
FROM memories_app_memory AS m
WHERE m.id = r.memory_id AND m.status IN ('proposed', 'needs_revalidation')
    AND r.decision = 'approve' AND r.undone_at IS NULL AND NOT EXISTS (
        SELECT FROM audit_event AS e JOIN audit_actor AS a ON a.ref = e.actor_ref
        WHERE e.object_ref = m.id AND e.type = 'memory.approved' AND a.kind = e.actor_kind
            AND (a.user_id = r.reviewer_id OR (r.rule_id IS NOT NULL AND a.kind IN ('job', 'command')))
    );
