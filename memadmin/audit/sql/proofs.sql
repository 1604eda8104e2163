-- Proof of the acting person, job or command. A role that may add events could name any actor, so the application proves
-- each name with a keyed hash (HMAC-SHA256) of a key that it has from its environment. The database answers with a token
-- of its own, which the triggers check; a setting that was made by hand is none. Only the owner can read the keys.

-- Keys as RFC 2104 uses them: XOR-ed with the inner and the outer pad. `migrate` stores those of the application, and
-- removes those that it no longer has; 'tokens' is known to the database alone.
CREATE TABLE IF NOT EXISTS memadmin_secret (
    name text PRIMARY KEY,
    inner_key bytea NOT NULL,
    outer_key bytea NOT NULL
);
REVOKE ALL ON TABLE memadmin_secret FROM PUBLIC;
INSERT INTO memadmin_secret
SELECT 'tokens', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
ON CONFLICT DO NOTHING;

-- NULL for an unknown key. For functions of ours: with other rights the table cannot be read.
CREATE OR REPLACE FUNCTION memadmin_mac(key_name text, message text) RETURNS text
LANGUAGE plpgsql STABLE STRICT AS $$
BEGIN
    RETURN (
        SELECT encode(sha256(outer_key || sha256(inner_key || convert_to(message, 'UTF8'))), 'hex')
        FROM memadmin_secret WHERE name = key_name
    );
END $$;

-- A proof is `key.seconds.hash` and valid for five minutes.
CREATE OR REPLACE FUNCTION memadmin_is_proof(
    given_kind text, given_label text, given_user_id bigint, proof text
) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    parts CONSTANT text[] := string_to_array(proof, '.');
BEGIN
    IF proof IS NULL OR cardinality(parts) <> 3 OR parts[1] = 'tokens' OR parts[2] !~ '^[0-9]{1,12}$' THEN
        RETURN false;
    END IF;
    -- Of an unknown key there is no hash, and NULL is no proof.
    RETURN coalesce(
        abs(extract(epoch FROM clock_timestamp()) - parts[2]::bigint) <= 300
        AND parts[3] = memadmin_mac(
            parts[1], parts[2] || ':' || coalesce(given_user_id::text, '') || ':' || given_kind || ':' || given_label
        ),
        false
    );
END $$;

-- What triggers that record rows believe, for a day: an import may name its actor once for all that it writes.
CREATE OR REPLACE FUNCTION memadmin_token(given_kind text, given_ref uuid) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    said CONSTANT text :=
        given_kind || ':' || given_ref || ':' || (extract(epoch FROM statement_timestamp())::bigint + 86400);
BEGIN
    RETURN said || ':' || memadmin_mac('tokens', said);
END $$;

-- The value of `memadmin.recorder`: who adds events and decides, until the end of this transaction. A value that a
-- pooled connection kept, or that somebody brings from another transaction, names nobody. After a restore ids of
-- transactions are used again, so the time is part of it.
CREATE OR REPLACE FUNCTION memadmin_transaction_token(given_kind text, given_ref uuid) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    said CONSTANT text := given_kind || ':' || given_ref || ':x' || pg_current_xact_id() || '@'
        || extract(epoch FROM transaction_timestamp());
BEGIN
    RETURN said || ':' || memadmin_mac('tokens', said);
END $$;

-- The actor that a setting of this connection names, as `kind:ref`; NULL unless a token of ours says so.
CREATE OR REPLACE FUNCTION memadmin_proven_actor(setting text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    parts CONSTANT text[] := string_to_array(current_setting(setting, true), ':');
BEGIN
    IF cardinality(parts) <> 4 THEN
        RETURN NULL;
    END IF;
    IF setting = 'memadmin.recorder' THEN
        IF parts[3] IS DISTINCT FROM 'x' || pg_current_xact_id_if_assigned() || '@'
            || extract(epoch FROM transaction_timestamp())
        THEN
            RETURN NULL;
        END IF;
    ELSIF parts[3] !~ '^[0-9]{1,12}$' THEN
        RETURN NULL;
    ELSIF parts[3]::bigint < extract(epoch FROM statement_timestamp()) THEN
        RETURN NULL;
    END IF;
    IF parts[4] IS DISTINCT FROM memadmin_mac('tokens', parts[1] || ':' || parts[2] || ':' || parts[3]) THEN
        RETURN NULL;
    END IF;
    RETURN parts[1] || ':' || parts[2];
END $$;

-- The account of the person who proved to act in this transaction; NULL if that was no person, or nobody did.
CREATE OR REPLACE FUNCTION memadmin_acting_person() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN (
        SELECT user_id FROM audit_actor
        WHERE kind = 'person' AND ref::text = substring(memadmin_proven_actor('memadmin.recorder') FROM '^person:(.+)$')
    );
END $$;

-- The value of `memadmin.actor` for an actor whom the application has proved; for another it names nobody, but is not
-- empty, because writes to the agents' tables are recorded where it is set.
CREATE OR REPLACE FUNCTION memadmin_name_actor(
    given_kind text, given_label text, given_user_id bigint, proof text
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF memadmin_is_proof(given_kind, given_label, given_user_id, proof) THEN
        RETURN memadmin_token(given_kind, memadmin_actor(given_kind, given_label, given_user_id));
    END IF;
    RETURN 'unproven';
END $$;

-- The actor of an event that this statement adds; NULL, and so the role of the connection, without a proof.
CREATE OR REPLACE FUNCTION memadmin_acting(
    given_kind text, given_label text, given_user_id bigint, proof text
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
BEGIN
    IF memadmin_is_proof(given_kind, given_label, given_user_id, proof) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    found := memadmin_actor(given_kind, given_label, given_user_id);
    PERFORM set_config('memadmin.recorder', memadmin_transaction_token(given_kind, found), true);
    RETURN found;
END $$;

-- Whether an actor is proven, of this transaction or of the statement that runs.
CREATE OR REPLACE FUNCTION memadmin_has_actor() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN coalesce(memadmin_proven_actor('memadmin.actor'), memadmin_proven_actor('memadmin.recorder')) IS NOT NULL;
END $$;

-- Roles that may record events are those of web servers and workers. What a function or trigger of ours writes for them
-- has the rights of the owner; agents have policies and triggers of their own.
CREATE OR REPLACE FUNCTION memadmin_require_actor_of_rows() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF has_any_column_privilege('audit_event', 'INSERT') AND NOT has_table_privilege(TG_RELID, 'TRIGGER') THEN
        -- A statement of its own: agents' roles may not call the function.
        IF NOT memadmin_has_actor() THEN
            RAISE EXCEPTION 'Rows of % were not changed: the actor is not proven.', TG_TABLE_NAME USING ERRCODE = 'P0A02';
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- The value of `memadmin.cause` for an event that the application adds after the changes that it causes.
CREATE OR REPLACE FUNCTION memadmin_name_cause(event_id uuid, proof text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF memadmin_is_proof('cause', event_id::text, NULL, proof) THEN
        RETURN memadmin_token('cause', event_id);
    END IF;
    RETURN event_id::text;
END $$;

-- Whether a key of the application is stored here.
CREATE OR REPLACE FUNCTION memadmin_knows_key(key_name text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (SELECT FROM memadmin_secret WHERE name = key_name);
END $$;

REVOKE ALL ON FUNCTION memadmin_name_actor(text, text, bigint, text), memadmin_acting(text, text, bigint, text),
    memadmin_name_cause(uuid, text), memadmin_knows_key(text), memadmin_acting_person() FROM PUBLIC;
