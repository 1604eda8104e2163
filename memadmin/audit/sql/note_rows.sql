-- Events of changed rows. What runs with the rights of its owner is not for everybody who can connect.

-- Members of an object that are wanted.
CREATE OR REPLACE FUNCTION memadmin_pick(whole jsonb, wanted text[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
SELECT coalesce(jsonb_object_agg(entry.key, entry.value), '{}')
FROM jsonb_each(whole) AS entry WHERE entry.key = ANY (wanted)
$$;

-- Members that another row does not hold, or holds differently; the hidden ones without their value.
CREATE OR REPLACE FUNCTION memadmin_differing(ours jsonb, theirs jsonb, hidden text[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT coalesce(
    jsonb_object_agg(entry.key, CASE WHEN entry.key = ANY (hidden) THEN '"hidden"' ELSE entry.value END), '{}'
)
FROM jsonb_each(ours) AS entry WHERE (theirs -> entry.key) IS DISTINCT FROM entry.value
$$;

-- An event of changed rows, by the actor that the caller names: for functions of ours alone.
CREATE OR REPLACE FUNCTION memadmin_write_rows(
    event_type text, kind text, refs uuid[], subjects uuid[], total bigint, details text,
    by_kind text, by_ref uuid, caused_by uuid
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    event_id uuid := memadmin_uuid7();
    salt bytea := uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
    is_one boolean := total = 1 AND cardinality(refs) = 1;
    recorder CONSTANT text := coalesce(current_setting('memadmin.recorder', true), '');
    shown uuid[];
BEGIN
    -- Request and job are columns with a default from a setting of the connection, which anybody can set: those of a role
    -- that records no events, an agent's for instance, are no request of ours.
    IF NOT has_any_column_privilege(session_user, 'audit_event', 'INSERT') THEN
        PERFORM set_config('memadmin.request_id', '', true), set_config('memadmin.job_id', '', true);
    END IF;
    IF by_ref IS NOT NULL THEN
        PERFORM set_config('memadmin.recorder', memadmin_transaction_token(by_kind, by_ref), true);
    END IF;
    SELECT coalesce(array_agg(ref), '{}') INTO shown FROM (
        SELECT DISTINCT ref FROM unnest(CASE WHEN is_one THEN subjects[2:] ELSE refs || subjects END) AS ref
        WHERE ref IS NOT NULL LIMIT 1000
    ) AS few;
    INSERT INTO audit_event
        (id, type, actor_kind, actor_ref, object_kind, object_ref, subject_ref, shown, counters, cause, commitment)
    VALUES (
        event_id,
        event_type,
        coalesce(by_kind, 'database'),
        by_ref,
        CASE WHEN is_one THEN kind END,
        CASE WHEN is_one THEN refs[1] END,
        CASE WHEN is_one THEN subjects[1] END,
        shown,
        jsonb_build_object('rows', total),
        caused_by,
        CASE WHEN details IS NOT NULL THEN sha256(salt || convert_to(details, 'UTF8')) END
    );
    -- Who decides is proved by an event that the application adds itself, in this transaction.
    IF by_ref IS NOT NULL THEN
        PERFORM set_config('memadmin.recorder', recorder, true);
    END IF;
    IF details IS NOT NULL THEN
        INSERT INTO audit_detail (event_id, salt, details) VALUES (event_id, salt, details);
    END IF;
END $$;

-- The same by the actor that the connection names. Anybody may set anything in their own connection: believed is only a
-- token that the application got for a proof. A cause without either must be an event of this time, which shows by itself.
CREATE OR REPLACE FUNCTION memadmin_record_rows(
    event_type text, kind text, refs uuid[], subjects uuid[], total bigint, details text
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    uuid_form CONSTANT text := '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
    is_ours CONSTANT boolean := has_any_column_privilege(session_user, 'audit_event', 'INSERT');
    named CONSTANT text := CASE WHEN is_ours THEN memadmin_proven_actor('memadmin.actor') END;
    caused text;
BEGIN
    IF is_ours THEN
        caused := substring(memadmin_proven_actor('memadmin.cause') FROM '^cause:(.+)$');
        IF caused IS NULL THEN
            caused := substring(current_setting('memadmin.cause', true) FROM '^' || uuid_form || '$');
            IF named IS NULL AND NOT EXISTS (
                SELECT FROM audit_event WHERE id = caused::uuid AND at >= transaction_timestamp()
            ) THEN
                caused := NULL;
            END IF;
        END IF;
    END IF;
    PERFORM memadmin_write_rows(
        event_type, kind, refs, subjects, total, details,
        split_part(named, ':', 1), split_part(named, ':', 2)::uuid, caused::uuid
    );
END $$;

-- The trigger of all governed tables: it counts all rows, and names up to 1,000. An agent is a role of agents that
-- connected as itself, and did what the client does: the trigger tells that by its last argument. A role that may
-- change rows, or record events, is no agent, whatever it is declared to be. memadmin_is_agents_role() is made where
-- roles of agents are declared, with the stores.
CREATE OR REPLACE FUNCTION memadmin_note_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    noun CONSTANT text := TG_ARGV[0];
    kind CONSTANT text := TG_ARGV[1];
    key CONSTANT text := TG_ARGV[2];
    key_is_ref CONSTANT boolean := TG_ARGV[3] = 'uuid';
    subject CONSTANT text := TG_ARGV[4];
    watched CONSTANT text[] := string_to_array(TG_ARGV[5], ',');
    hidden CONSTANT text[] := string_to_array(TG_ARGV[6], ',');
    total bigint;
    refs uuid[];
    subjects uuid[];
    noted jsonb;
    said text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        PERFORM memadmin_record_rows(noun || '.table_truncated', kind, '{}', '{}', 0, NULL);
        RETURN NULL;
    ELSIF TG_OP = 'INSERT' THEN
        SELECT count(*) INTO total FROM new_rows;
        WITH few AS (SELECT to_jsonb(added) AS now FROM new_rows AS added LIMIT 1000)
        SELECT array_agg(CASE WHEN key_is_ref THEN (now ->> key)::uuid ELSE memadmin_ref(kind, now ->> key) END),
               array_agg(DISTINCT (now ->> subject)::uuid) FILTER (WHERE now ->> subject IS NOT NULL),
               jsonb_agg(jsonb_build_object(
                   'key', now -> key, 'after', memadmin_differing(memadmin_pick(now, watched), NULL, hidden)
               ))
        INTO refs, subjects, noted FROM few;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO total FROM old_rows;
        WITH few AS (SELECT to_jsonb(gone) AS was FROM old_rows AS gone LIMIT 1000)
        SELECT array_agg(CASE WHEN key_is_ref THEN (was ->> key)::uuid ELSE memadmin_ref(kind, was ->> key) END),
               array_agg(DISTINCT (was ->> subject)::uuid) FILTER (WHERE was ->> subject IS NOT NULL),
               jsonb_agg(jsonb_build_object(
                   'key', was -> key, 'before', memadmin_differing(memadmin_pick(was, watched), NULL, hidden)
               ))
        INTO refs, subjects, noted FROM few;
    ELSE
        WITH pairs AS (
            SELECT coalesce(n.whole, o.whole) ->> key AS id,
                   ARRAY[n.whole ->> subject, o.whole ->> subject] AS about,
                   memadmin_pick(o.whole, watched) AS was,
                   memadmin_pick(n.whole, watched) AS now
            FROM (SELECT to_jsonb(former) AS whole FROM old_rows AS former) AS o
            FULL JOIN (SELECT to_jsonb(later) AS whole FROM new_rows AS later) AS n ON o.whole ->> key = n.whole ->> key
        ), changed AS (
            SELECT *, row_number() OVER () AS place FROM pairs WHERE was IS DISTINCT FROM now
        )
        SELECT max(place),
               array_agg(CASE WHEN key_is_ref THEN id::uuid ELSE memadmin_ref(kind, id) END)
                   FILTER (WHERE place <= 1000),
               (SELECT array_agg(ref ORDER BY nth) FROM (
                   SELECT ref::uuid, min(nth) AS nth
                   FROM changed, unnest(about) WITH ORDINALITY AS subject_of(ref, nth)
                   WHERE ref IS NOT NULL AND place <= 1000 GROUP BY ref
               ) AS distinct_subjects),
               jsonb_agg(jsonb_build_object(
                   'key', id,
                   'before', memadmin_differing(was, now, hidden),
                   'after', memadmin_differing(now, was, hidden)
               )) FILTER (WHERE place <= 1000)
        INTO total, refs, subjects, noted FROM changed;
    END IF;
    IF total > 0 THEN
        IF TG_NARGS > 7 AND current_setting('role') = 'none'
            AND NOT has_any_column_privilege(session_user, 'audit_event', 'INSERT')
            AND NOT has_any_column_privilege(session_user, TG_RELID, 'UPDATE')
            AND NOT has_table_privilege(session_user, TG_RELID, 'DELETE, TRUNCATE')
            AND memadmin_is_agents_role(session_user)
        THEN
            said := current_setting('memadmin.agent', true);
            IF TG_OP <> 'DELETE' THEN
                SELECT coalesce(CASE WHEN count(DISTINCT one) = 1 THEN max(one) END, said) INTO said
                FROM (SELECT nullif(to_jsonb(theirs) ->> 'agent', '') AS one FROM new_rows AS theirs) AS called;
            END IF;
            PERFORM memadmin_write_rows(
                noun || CASE TG_OP
                    WHEN 'INSERT' THEN '.row_inserted' WHEN 'DELETE' THEN '.row_deleted' ELSE '.row_updated'
                END,
                kind, refs, coalesce(subjects, '{}'), total, jsonb_build_object('rows', noted)::text,
                'agent', memadmin_agent(said), NULL
            );
            RETURN NULL;
        END IF;
        PERFORM memadmin_record_rows(
            noun || CASE TG_OP
                WHEN 'INSERT' THEN '.row_inserted' WHEN 'DELETE' THEN '.row_deleted' ELSE '.row_updated'
            END,
            kind, refs, coalesce(subjects, '{}'), total, jsonb_build_object('rows', noted)::text
        );
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION memadmin_note_rows(), memadmin_record_rows(text, text, uuid[], uuid[], bigint, text),
    memadmin_write_rows(text, text, uuid[], uuid[], bigint, text, text, uuid, uuid) FROM PUBLIC;
