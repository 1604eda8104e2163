-- Actors of the log. All run with the rights of their owner, and so not for everybody who can connect.

-- Whoever acts for the first time is written down within a transaction that may last. Others must not wait for it: the
-- id of a job, a command or a role follows from its name, and somebody else is writing it down already. People have
-- random ids, which are made with their accounts.
CREATE OR REPLACE FUNCTION memadmin_actor(given_kind text, given_label text, given_user_id bigint DEFAULT NULL)
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
BEGIN
    IF given_user_id IS NOT NULL THEN
        SELECT ref INTO found FROM audit_actor
        WHERE kind = 'person' AND user_id = given_user_id AND label = given_label;
        IF found IS NULL THEN
            found := memadmin_name_person(given_user_id, given_label);
        END IF;
        RETURN found;
    END IF;
    SELECT ref INTO found FROM audit_actor WHERE kind = given_kind AND label = given_label AND user_id IS NULL;
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
END $$;

-- An event about the name of a person, by the log itself. `bound` is what it commits to: 32 bytes as two ids, because
-- a commitment is one to details. What the connection says of its own actor is as before, so nobody borrows ours.
CREATE OR REPLACE FUNCTION memadmin_note_name(event_type text, named uuid, code text, bound bytea) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    recorder CONSTANT text := coalesce(current_setting('memadmin.recorder', true), '');
    ours CONSTANT uuid := memadmin_actor('system', 'audit log');
BEGIN
    PERFORM set_config('memadmin.recorder', memadmin_transaction_token('system', ours), true);
    INSERT INTO audit_event (type, actor_kind, actor_ref, object_kind, object_ref, shown, reason_code)
    SELECT event_type, 'system', ours, 'audit.auditactor', named, coalesce(array_agg(half), '{}'), code
    FROM (
        SELECT encode(substring(bound FROM start FOR 16), 'hex')::uuid AS half
        FROM unnest(ARRAY[1, 17]) AS start WHERE bound IS NOT NULL
    ) AS halves;
    PERFORM set_config('memadmin.recorder', recorder, true);
END $$;

-- Writes down the name of a person, new or changed, with an event that commits to name and account by a salt. The salt
-- is erased with the row. Whoever finds that another transaction has written the same adds no event.
CREATE OR REPLACE FUNCTION memadmin_name_person(account bigint, given_label text, code text DEFAULT '')
RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    new_salt CONSTANT bytea := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
    found uuid;
BEGIN
    LOOP
        UPDATE audit_actor SET label = given_label, salt = new_salt
        WHERE kind = 'person' AND user_id = account AND (label <> given_label OR salt IS NULL) RETURNING ref INTO found;
        EXIT WHEN found IS NOT NULL;
        SELECT ref INTO found FROM audit_actor WHERE kind = 'person' AND user_id = account AND label = given_label;
        IF found IS NOT NULL THEN
            RETURN found;
        END IF;
        INSERT INTO audit_actor (kind, label, user_id, salt) VALUES ('person', given_label, account, new_salt)
        ON CONFLICT DO NOTHING RETURNING ref INTO found;
        EXIT WHEN found IS NOT NULL;
    END LOOP;
    PERFORM memadmin_note_name(
        'actor.named', found, code, sha256(new_salt || convert_to(account || ':' || given_label, 'UTF8'))
    );
    RETURN found;
END $$;

CREATE OR REPLACE FUNCTION memadmin_make_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM memadmin_name_person(NEW.id, left(NEW.username, 200));
    RETURN NULL;
END $$;

-- An account that is deleted takes along who it was, and the details of events about it.
CREATE OR REPLACE FUNCTION memadmin_forget_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    gone CONSTANT uuid := memadmin_ref('auth.user', OLD.id::text);
    forgotten uuid;
BEGIN
    DELETE FROM audit_actor WHERE kind = 'person' AND user_id = OLD.id RETURNING ref INTO forgotten;
    IF forgotten IS NOT NULL THEN
        PERFORM memadmin_note_name('actor.forgotten', forgotten, '', NULL);
    END IF;
    DELETE FROM audit_detail USING audit_event AS event
    WHERE event.id = audit_detail.event_id AND (
        event.object_ref = gone OR event.shown <> '{}' AND event.shown @> ARRAY[gone] AND event.type LIKE 'user.row_%'
    );
    RETURN NULL;
END $$;

-- The name that an agent gives itself is its own word, so it stands in quotes, wherever a name is shown. An agent that
-- takes another name each time would crowd people out of the lists of actors: 200 names are written down.
CREATE OR REPLACE FUNCTION memadmin_agent(said text) RETURNS uuid
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

REVOKE ALL ON FUNCTION memadmin_actor(text, text, bigint), memadmin_note_name(text, uuid, text, bytea),
    memadmin_name_person(bigint, text, text), memadmin_make_actor(), memadmin_forget_actor(), memadmin_agent(text)
    FROM PUBLIC;
