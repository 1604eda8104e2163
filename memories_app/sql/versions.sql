-- Keeps each text of a memory as a version. Its author is whom the log names, by the same proof.
-- Nobody may call it: a trigger on a table of theirs that has such columns would have it write versions.
CREATE OR REPLACE FUNCTION memadmin_keep_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    named text := CASE WHEN has_any_column_privilege(session_user, 'audit_event', 'INSERT')
        THEN memadmin_proven_actor('memadmin.actor') END;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.version = OLD.version THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO memories_app_memoryversion (memory_id, number, statement, data, content_hash, author_kind, author_ref)
    VALUES (
        NEW.id, NEW.version, NEW.statement, NEW.data, NEW.content_hash,
        coalesce(split_part(named, ':', 1), 'database'), split_part(named, ':', 2)::uuid
    );
    RETURN NULL;
END $$;

-- What agents were told must not be written anew afterwards: of a version the text goes, and nothing else changes.
CREATE OR REPLACE FUNCTION memadmin_only_erased() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.erased_at IS NOT NULL OR NEW.erased_at IS NULL
        OR (to_jsonb(NEW) - '{statement,data,erased_at}'::text[]) <> (to_jsonb(OLD) - '{statement,data,erased_at}'::text[])
    THEN
        RAISE EXCEPTION 'Of a version of a memory the text can be erased, and nothing else be changed.'
            USING ERRCODE = 'P0M05';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_keep_version() FROM PUBLIC;
