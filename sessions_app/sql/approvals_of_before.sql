-- Redactions that carried their approval themselves. What waited is void: nothing tells what was shown.

INSERT INTO accounts_approval
    (id, kind, object_ref, digest, asked_by_id, asked_at, expires_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'redaction', id, '', requested_by_id, requested_at, expires_at,
    CASE WHEN approved_at IS NULL THEN 'void' ELSE 'approved' END, approved_by_id, coalesce(approved_at, ended_at, now())
FROM sessions_app_redaction WHERE needs_approval;

UPDATE sessions_app_redaction SET approval_id = a.id
FROM accounts_approval AS a WHERE a.kind = 'redaction' AND a.object_ref = sessions_app_redaction.id;
