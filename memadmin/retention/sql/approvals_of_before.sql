-- Holds, and versions of policies, that carried the decisions about them. What waited is void: nothing tells what was
-- shown.

INSERT INTO accounts_approval
    (id, kind, object_ref, digest, asked_by_id, asked_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'hold_release', id, '', release_requested_by_id, release_requested_at,
    CASE WHEN released_at IS NULL THEN 'void' ELSE 'approved' END, released_by_id, coalesce(released_at, now())
FROM retention_legalhold WHERE release_requested_at IS NOT NULL;

INSERT INTO accounts_approval
    (id, kind, object_ref, digest, asked_by_id, asked_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'policy_change', id, '', proposed_by_id, proposed_at,
    CASE
        WHEN approved_at IS NOT NULL THEN 'approved' WHEN starts_at IS NOT NULL THEN 'not_needed'
        WHEN closed_at IS NOT NULL THEN closed_as ELSE 'void'
    END,
    CASE WHEN approved_at IS NOT NULL THEN approved_by_id WHEN starts_at IS NULL THEN closed_by_id END,
    coalesce(approved_at, starts_at, closed_at, now())
FROM retention_policyversion WHERE needs_approval OR proposed_by_id IS NOT NULL OR reason <> '';

UPDATE retention_legalhold SET approval_id = a.id FROM accounts_approval AS a WHERE a.object_ref = retention_legalhold.id;

UPDATE retention_policyversion SET approval_id = a.id,
    closed_at = CASE WHEN a.decision = 'void' THEN a.decided_at ELSE closed_at END,
    closed_as = CASE WHEN a.decision = 'void' THEN 'withdrawn' ELSE closed_as END,
    closing_reason = CASE WHEN a.decision = 'void' THEN 'The console was upgraded. Propose it again.' ELSE closing_reason END
FROM accounts_approval AS a WHERE a.object_ref = retention_policyversion.id;
