-- Grants and role requests that carried their decisions themselves. What waited is void: nothing tells what was shown.

INSERT INTO accounts_approval
    (id, kind, object_ref, digest, asked_by_id, asked_at, expires_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'grant', id, '', requested_by_id, requested_at, requested_at + interval '24 hours',
    CASE
        WHEN opened_at IS NOT NULL THEN CASE WHEN decided_by_id IS NULL THEN 'not_needed' ELSE 'approved' END
        WHEN decided_at IS NOT NULL THEN 'rejected' WHEN ended_at IS NOT NULL THEN 'withdrawn' ELSE 'void'
    END,
    decided_by_id, coalesce(decided_at, opened_at, ended_at, now())
FROM accounts_contentgrant;

INSERT INTO accounts_approval
    (id, kind, object_ref, digest, asked_by_id, asked_at, expires_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'role', id, '', requested_by_id, requested_at, requested_at + interval '3 days',
    CASE
        WHEN granted_at IS NOT NULL THEN 'approved' WHEN decided_at IS NULL THEN 'void'
        WHEN decided_by_id = requested_by_id THEN 'withdrawn' ELSE 'rejected'
    END,
    decided_by_id, coalesce(decided_at, now())
FROM accounts_rolerequest;

UPDATE accounts_contentgrant SET approval_id = a.id FROM accounts_approval AS a WHERE a.object_ref = accounts_contentgrant.id;
UPDATE accounts_rolerequest SET approval_id = a.id FROM accounts_approval AS a WHERE a.object_ref = accounts_rolerequest.id;

-- Tables whose foreign keys are still to be checked cannot lose columns.
SET CONSTRAINTS ALL IMMEDIATE;
