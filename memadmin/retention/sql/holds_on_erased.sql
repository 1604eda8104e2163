-- Of a subject whose ids are gone nothing is left to hold. While its erasure runs a hold is placed, and stops it.
CREATE OR REPLACE FUNCTION memadmin_refuse_hold_on_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM sessions_app_subject WHERE id = NEW.subject_id AND erased_at IS NOT NULL) AND NOT EXISTS (
        SELECT FROM sessions_app_subjectalias WHERE subject_id = ANY (memadmin_subject_group(NEW.subject_id))
    ) THEN
        RAISE EXCEPTION 'The data of this subject was erased: nothing is left to hold.' USING ERRCODE = 'P0E01';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_refuse_hold_on_erased() FROM PUBLIC;
