CREATE FUNCTION memadmin_hash_quote() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.quote_hash := encode(sha256(convert_to(NEW.quote, 'UTF8')), 'hex');
    RETURN NEW;
END $$;

-- Whether evidence quotes a session of the memory's subject that is on record. The row is locked as the fence locks it:
-- an erasure that is under way is waited for, or waits and finds the quote.
CREATE FUNCTION memadmin_may_quote(in_memory uuid, from_record uuid, from_session text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    whose uuid;
    sources uuid[] := ARRAY[from_record];
BEGIN
    IF from_record IS NULL THEN
        SELECT array_agg(r.id) INTO sources
        FROM sessions_app_sessionstore AS s JOIN sessions_app_sessionrecord AS r
            ON r.store_id = s.id AND r.session_id = from_session AND from_session <> '';
        IF sources IS NULL THEN
            RETURN true;
        END IF;
    END IF;
    PERFORM FROM sessions_app_sessionrecord WHERE id = ANY (sources) ORDER BY id FOR KEY SHARE;
    SELECT subject_id INTO whose FROM memories_app_memory WHERE id = in_memory;
    IF NOT EXISTS (
        SELECT FROM sessions_app_sessionrecord
        WHERE id = ANY (sources) AND session_id = from_session AND erased_at IS NULL
          AND (whose IS NULL OR subject_id IS NULL OR subject_id = ANY (memadmin_subject_group(whose)))
    ) THEN
        RAISE EXCEPTION 'These words are of a session that is not on record, or about somebody else.'
            USING ERRCODE = 'P0M08';
    END IF;
    RETURN true;
END $$;
