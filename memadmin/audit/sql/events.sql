CREATE OR REPLACE FUNCTION memadmin_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit log is insert-only: % on % is refused.', TG_OP, TG_TABLE_NAME USING ERRCODE = 'P0A01';
END $$;

-- Time and role of an event are never the client's word, and its actor only with a proof (proofs.sql). One trigger and one statement, because each costs every event.
-- The role is looked up here, as a call of memadmin_actor() costs as much as what it looks up; only a role that acts
-- for the first time is left to it. An insert that gives way to another (ON CONFLICT DO NOTHING) leaves a number in the
-- queue without an event; the sequencer takes it out: an event is seen with its number or never.
CREATE OR REPLACE FUNCTION memadmin_stamp_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO audit_pending (number) VALUES (NEW.number)
    RETURNING clock_timestamp(), (
        SELECT ref FROM audit_actor WHERE kind = 'database' AND label = session_user AND user_id IS NULL
    ) INTO NEW.at, NEW.role_ref;
    IF NEW.role_ref IS NULL THEN
        NEW.role_ref := memadmin_actor('database', session_user);
    END IF;
    IF NEW.actor_ref IS NOT NULL THEN
        IF memadmin_proven_actor('memadmin.recorder') IS DISTINCT FROM NEW.actor_kind || ':' || NEW.actor_ref THEN
            NEW.actor_ref := NULL;
        END IF;
    END IF;
    IF NEW.actor_ref IS NULL THEN
        NEW.actor_kind := 'database';
        NEW.actor_ref := NEW.role_ref;
    END IF;
    RETURN NEW;
END $$;

-- Whether the columns of an event hold ids, known words and counts alone. Every transaction builds an expression anew,
-- with all that is in it, as soon as it is reached. So what most events have no use for is in expressions of its own;
-- and looking for too long a run costs a tenth of counting repetitions in the pattern.
CREATE OR REPLACE FUNCTION memadmin_is_plain(
    id uuid, type text, actor_kind text, object_kind text, object_ref uuid, shown uuid[], outcome text,
    reason_code text, counters jsonb, commitment bytea
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    counted text;
BEGIN
    IF substr(id::text, 15, 1) <> '7'
        OR type !~ '^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$'
        OR actor_kind NOT IN ('person', 'agent', 'job', 'command', 'database', 'system')
        OR outcome NOT IN ('succeeded', 'denied', 'failed')
        OR (object_kind IS NULL AND object_ref IS NOT NULL)
        OR (object_kind IS NOT NULL AND (object_ref IS NULL OR object_kind !~ '^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$'))
        OR cardinality(shown) > 1000
    THEN
        RETURN false;
    END IF;
    IF commitment IS NOT NULL THEN
        IF length(commitment) <> 32 THEN
            RETURN false;
        END IF;
    END IF;
    IF reason_code <> '' THEN
        IF reason_code !~ '^[a-z][a-z0-9_]*$' OR length(reason_code) > 40 THEN
            RETURN false;
        END IF;
    END IF;
    IF counters <> '{}' THEN
        counted := counters::text;
        IF counted !~ '^\{"[a-z][a-z0-9_]*": -?[0-9]+(?:, "[a-z][a-z0-9_]*": -?[0-9]+)*\}$' THEN
            RETURN false;
        END IF;
        -- Too short for too long a name, too long a number or too many of them.
        IF length(counted) > 22 THEN
            RETURN counted !~ '[a-z0-9_]{41}' AND counted !~ ': -?[0-9]{16}'
                AND length(counted) - length(replace(counted, ',', '')) < 20;
        END IF;
    END IF;
    RETURN true;
END $$;

REVOKE ALL ON FUNCTION memadmin_stamp_event() FROM PUBLIC;
