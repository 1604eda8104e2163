-- Nothing is stored of an erased session, or about an erased subject; see `memadmin_refuse_erased`. A session's record is
-- locked as the fence locks it: an erasure that is under way is waited for, or waits and finds the row.

CREATE OR REPLACE FUNCTION memadmin_refuse_erased_record(given uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM sessions_app_sessionrecord WHERE id = given FOR KEY SHARE;
    IF EXISTS (SELECT FROM sessions_app_sessionrecord WHERE id = given AND erased_at IS NOT NULL) THEN
        RAISE EXCEPTION 'This session was erased, and nothing of it is stored again.' USING ERRCODE = 'P0E01';
    END IF;
END $$;

-- Of a signal or a recall.
CREATE OR REPLACE FUNCTION memadmin_refuse_erased_source() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.subject_id IS NOT NULL THEN
        PERFORM memadmin_refuse_erased(ARRAY[NEW.subject_id]);
    END IF;
    IF NEW.record_id IS NOT NULL THEN
        PERFORM memadmin_refuse_erased_record(NEW.record_id);
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION memadmin_refuse_erased_evidence() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whose uuid := (SELECT subject_id FROM memories_app_memory WHERE id = NEW.memory_id);
BEGIN
    IF whose IS NOT NULL THEN
        PERFORM memadmin_refuse_erased(ARRAY[whose]);
    END IF;
    IF NEW.record_id IS NOT NULL THEN
        PERFORM memadmin_refuse_erased_record(NEW.record_id);
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_refuse_erased_record(uuid), memadmin_refuse_erased_source(),
    memadmin_refuse_erased_evidence() FROM PUBLIC;
