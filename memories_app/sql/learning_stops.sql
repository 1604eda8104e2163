-- Nothing is learned about a subject that was erased, or about which somebody said no.
--
-- A proposal that is under way when somebody says no waits for them, or they for it: both lock the subject, so that
-- none is committed afterwards. Under REPEATABLE READ it fails, because the row that it locks is another by then. Class
-- P0M: refusals about memories, outside of class 23, which libraries take for lost races.
CREATE OR REPLACE FUNCTION memadmin_refuse_stopped(given uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whole uuid[] := memadmin_subject_group(given);
BEGIN
    PERFORM FROM sessions_app_subject WHERE id = ANY (whole) ORDER BY id FOR SHARE;
    PERFORM memadmin_refuse_erased(whole);
    IF EXISTS (SELECT FROM memories_app_learningstop WHERE subject_id = ANY (whole)) THEN
        RAISE EXCEPTION 'Nothing is to be learned from this subject.' USING ERRCODE = 'P0M01';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION memadmin_wait_for_learners() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whole uuid[] := memadmin_subject_group(NEW.subject_id);
BEGIN
    PERFORM FROM sessions_app_subject WHERE id = ANY (whole) ORDER BY id FOR NO KEY UPDATE;
    UPDATE sessions_app_subject SET created_at = created_at WHERE id = ANY (whole);
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION memadmin_may_learn() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.subject_id IS NOT NULL THEN
        PERFORM memadmin_refuse_stopped(NEW.subject_id);
    END IF;
    RETURN NEW;
END $$;
