-- The fence of a subject: while its data is erased, and ever after, nothing is registered or stored about it.
--
-- Whoever stores something locks the subject's key for share. Setting erased_at conflicts with that, for it is part of a
-- unique key, as in the registry; a merge does not. So one waits for the other, and under READ COMMITTED the check then
-- sees the mark; under the other levels the lock is refused (SQLSTATE 40001).
-- A whole merged group is marked at once, and merges with it end; so the subject itself is all that has to be looked at.

CREATE OR REPLACE FUNCTION memadmin_refuse_erased(given uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM sessions_app_subject WHERE id = ANY (given) ORDER BY id FOR KEY SHARE;
    IF EXISTS (SELECT FROM sessions_app_subject WHERE id = ANY (given) AND erased_at IS NOT NULL) THEN
        RAISE EXCEPTION 'The data of this subject was erased, and nothing is stored about it again.'
            USING ERRCODE = 'P0E01', HINT = 'The command reopen_subject allows a new start under one of its IDs.';
    END IF;
END $$;

-- A session neither comes to an erased subject nor leaves it: it would escape the erasure.
CREATE OR REPLACE FUNCTION memadmin_subject_of_session() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        PERFORM memadmin_refuse_erased(ARRAY[OLD.subject_id, NEW.subject_id]);
    ELSE
        PERFORM memadmin_refuse_erased(ARRAY[NEW.subject_id]);
    END IF;
    IF NEW.subject_id IS NOT NULL THEN
        NEW.subject_epoch := coalesce((SELECT epoch FROM sessions_app_subject WHERE id = NEW.subject_id), 0);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION memadmin_keep_erased_subject() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.erased_at IS NOT NULL THEN
        RAISE EXCEPTION 'The data of this subject was erased: the subject stays as it is.' USING ERRCODE = 'P0E01';
    END IF;
    IF OLD.merged_into_id IS DISTINCT FROM NEW.merged_into_id THEN
        PERFORM memadmin_refuse_erased(ARRAY[OLD.merged_into_id, NEW.merged_into_id]);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION memadmin_keep_erased_key() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM sessions_app_subject WHERE id = OLD.subject_id AND erased_at IS NOT NULL) AND NOT EXISTS (
        SELECT FROM sessions_app_erasedkey WHERE digest = memadmin_key_digest(OLD.kind, OLD.key) AND reopened_at IS NULL
    ) THEN
        RAISE EXCEPTION 'The data of this subject is being erased: its IDs are removed last.' USING ERRCODE = 'P0E01';
    END IF;
    RETURN OLD;
END $$;

REVOKE ALL ON FUNCTION memadmin_refuse_erased(uuid[]), memadmin_subject_of_session(), memadmin_keep_erased_subject(),
    memadmin_keep_erased_key() FROM PUBLIC;
