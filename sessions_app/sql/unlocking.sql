-- A lock of a session is removed by the request to unlock it alone, in the transaction that decided about it. One that
-- needed no second person takes the person who acts.
CREATE OR REPLACE FUNCTION memadmin_require_unlocking() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM sessions_app_unlockrequest AS r JOIN accounts_approval AS a ON a.id = r.approval_id
        WHERE r.unlocked_at IS NULL AND OLD.id = ANY (r.sessions)
            AND (a.decision = 'approved' OR a.asked_by_id = memadmin_acting_person())
            AND memadmin_is_decided_now(a.id, 'unlocking', r.id, ARRAY['approved', 'not_needed'])
    ) THEN
        RAISE EXCEPTION 'To unlock a session takes a request that a second person has approved.'
            USING ERRCODE = 'P0Y02';
    END IF;
    RETURN NEW;
END $$;

-- A locked store is unlocked by the owner of its table alone, since nothing in the console does it. Neither is it deleted
-- with sessions, and added again without the lock.
CREATE OR REPLACE FUNCTION memadmin_keep_store_locked() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER')
        AND (TG_OP = 'UPDATE' OR EXISTS (SELECT FROM sessions_app_sessionrecord WHERE store_id = OLD.id))
    THEN
        RAISE EXCEPTION 'A locked store stays locked.' USING ERRCODE = 'P0Y02';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

REVOKE ALL ON FUNCTION memadmin_require_unlocking(), memadmin_keep_store_locked() FROM PUBLIC;
