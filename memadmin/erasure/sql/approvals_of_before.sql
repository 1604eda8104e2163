-- Cases and batches that carried their decisions themselves. What waited is void, and goes back to who handles it: nothing
-- tells what was shown. So it is with what was approved and has not begun: it stops, see `NeedsDecision` there.

INSERT INTO accounts_approval (id, kind, object_ref, digest, asked_by_id, asked_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'erasure', id, '', requested_by_id, requested_at,
    CASE WHEN approved_at IS NULL THEN 'void' ELSE 'approved' END, approved_by_id, coalesce(approved_at, now())
FROM erasure_subjectrequest AS r
WHERE requested_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM erasure_requestbatch AS b WHERE b.run_id = r.scanned_by_id);

INSERT INTO accounts_approval (id, kind, object_ref, digest, asked_by_id, asked_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'erasure_batch', id, '', requested_by_id, requested_at,
    CASE WHEN approved_at IS NULL THEN 'void' ELSE 'approved' END, approved_by_id, coalesce(approved_at, now())
FROM erasure_requestbatch
WHERE requested_at IS NOT NULL;

UPDATE erasure_subjectrequest AS r SET approval_id = a.id FROM accounts_approval AS a WHERE a.object_ref = r.id;
UPDATE erasure_requestbatch AS b SET approval_id = a.id FROM accounts_approval AS a WHERE a.object_ref = b.id;
UPDATE erasure_subjectrequest SET state = 'checked' WHERE state = 'awaiting';
UPDATE erasure_requestbatch SET state = 'uploaded' WHERE state = 'awaiting';
