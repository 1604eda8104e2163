-- Holds that carried the decisions about their release themselves. What waited is void: nothing tells what was shown.

INSERT INTO accounts_approval
    (id, kind, object_ref, digest, asked_by_id, asked_at, decision, decided_by_id, decided_at)
SELECT gen_random_uuid(), 'hold_release', id, '', release_requested_by_id, release_requested_at,
    CASE WHEN released_at IS NULL THEN 'void' ELSE 'approved' END, released_by_id, coalesce(released_at, now())
FROM retention_legalhold WHERE release_requested_at IS NOT NULL;

-- The files with the rules follow in the migration.
CREATE OR REPLACE FUNCTION memadmin_keep_hold_as_placed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS 'BEGIN RETURN NEW; END';

UPDATE retention_legalhold SET approval_id = a.id FROM accounts_approval AS a WHERE a.object_ref = retention_legalhold.id;

-- Tables whose foreign keys are still to be checked cannot lose columns.
SET CONSTRAINTS ALL IMMEDIATE;
