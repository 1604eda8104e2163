-- Actors of the log. All run with the rights of their owner, and so not for everybody who can connect.

-- Whoever acts for the first time is written down within a transaction that may last. Others must not wait for it: the
-- id of a job, a command or a role follows from its name, and somebody else is writing it down already. People have
-- random ids, which are made with their accounts.
CREATE FUNCTION memadmin_actor(given_kind text, given_label text, given_user_id bigint DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
    found_label text;
BEGIN
    IF given_user_id IS NULL THEN
        SELECT ref INTO found FROM audit_actor
        WHERE kind = given_kind AND label = given_label AND user_id IS NULL;
        IF found IS NULL THEN
            found := memadmin_ref('actor.' || given_kind, given_label);
            IF pg_try_advisory_xact_lock(hashtextextended(found::text, 0)) THEN
                BEGIN
                    INSERT INTO audit_actor (ref, kind, label) VALUES (found, given_kind, given_label)
                    ON CONFLICT DO NOTHING;
                EXCEPTION WHEN serialization_failure THEN
                    NULL;  -- written down since this transaction began
                END;
            END IF;
        END IF;
        RETURN found;
    END IF;
    LOOP
        SELECT ref, label INTO found, found_label FROM audit_actor WHERE kind = given_kind AND user_id = given_user_id;
        IF found IS NOT NULL THEN
            IF found_label <> given_label THEN
                UPDATE audit_actor SET label = given_label WHERE ref = found;
            END IF;
            RETURN found;
        END IF;
        INSERT INTO audit_actor (kind, label, user_id) VALUES (given_kind, given_label, given_user_id)
        ON CONFLICT DO NOTHING RETURNING ref INTO found;
        IF found IS NOT NULL THEN
            RETURN found;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION memadmin_make_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM memadmin_actor('person', left(NEW.username, 200), NEW.id);
    RETURN NULL;
END $$;

-- An account that is deleted takes along who it was, and the details of events about it.
CREATE FUNCTION memadmin_forget_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    gone CONSTANT uuid := memadmin_ref('auth.user', OLD.id::text);
BEGIN
    DELETE FROM audit_actor WHERE kind = 'person' AND user_id = OLD.id;
    DELETE FROM audit_detail USING audit_event AS event
    WHERE event.id = audit_detail.event_id AND (
        event.object_ref = gone OR event.shown <> '{}' AND event.shown @> ARRAY[gone] AND event.type LIKE 'user.row_%'
    );
    RETURN NULL;
END $$;

-- The name that an agent gives itself is its own word, so it stands in quotes, wherever a name is shown. An agent that
-- takes another name each time would crowd people out of the lists of actors: 200 names are written down.
CREATE FUNCTION memadmin_agent(said text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    nobody CONSTANT text := 'an agent without a name';
    bare CONSTANT text := left(btrim(regexp_replace(translate(said, '“”', ''), '[[:cntrl:]]+', ' ', 'g')), 80);
    called text := CASE WHEN bare <> '' THEN '“' || bare || '”' ELSE nobody END;
BEGIN
    IF NOT EXISTS (SELECT FROM audit_actor WHERE kind = 'agent' AND label = called AND user_id IS NULL)
        AND (SELECT count(*) >= 200 FROM audit_actor WHERE kind = 'agent')
    THEN
        called := nobody;
    END IF;
    RETURN memadmin_actor('agent', called);
END $$;

REVOKE ALL ON FUNCTION memadmin_actor(text, text, bigint), memadmin_make_actor(), memadmin_forget_actor(),
    memadmin_agent(text) FROM PUBLIC;
