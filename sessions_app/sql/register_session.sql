-- Agents register their sessions, in whatever store, by a function: the registry is not theirs to write.

-- As `subject_for_key` in Python: two callers at once get the same subject, merged ones stay as they are.
CREATE FUNCTION memadmin_subject_for(given_kind text, given_key text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
    made uuid;
BEGIN
    IF given_kind NOT IN ('user', 'project', 'tenant') OR length(given_key) NOT BETWEEN 1 AND 512 THEN
        RAISE EXCEPTION 'A subject is a user, project or tenant, and its key has 1 to 512 characters.'
            USING ERRCODE = 'P0E04';
    END IF;
    SELECT subject_id INTO found FROM sessions_app_subjectalias WHERE kind = given_kind AND key = given_key;
    IF found IS NOT NULL THEN
        RETURN found;
    END IF;
    INSERT INTO sessions_app_subject (id) VALUES (gen_random_uuid()) RETURNING id INTO made;
    INSERT INTO sessions_app_subjectalias (subject_id, kind, key, is_primary, source)
    VALUES (made, given_kind, given_key, true, 'client') ON CONFLICT (kind, key) DO NOTHING RETURNING subject_id INTO found;
    IF found IS NULL THEN
        DELETE FROM sessions_app_subject WHERE id = made;
        SELECT subject_id INTO STRICT found FROM sessions_app_subjectalias
        WHERE kind = given_kind AND key = given_key;
    END IF;
    RETURN found;
END $$;

-- What an agent says of its session counts more than a pattern, and less than an operator's hand. From a trigger it is
-- refused: there it would be taken for what our triggers write.
CREATE FUNCTION memadmin_register_session(
    given_store text, given_session text, subject_kind text DEFAULT '', subject_key text DEFAULT '',
    given_ticket text DEFAULT '', given_agent text DEFAULT '', OUT record uuid, OUT subject uuid
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    place bigint;
    gone timestamptz;
BEGIN
    IF pg_trigger_depth() > 0 THEN
        RAISE EXCEPTION 'A session is not registered by a trigger.';
    END IF;
    SELECT id INTO place FROM sessions_app_sessionstore WHERE name = given_store;
    IF place IS NULL THEN
        RAISE EXCEPTION 'No store of this name is connected.' USING ERRCODE = 'P0E03';
    END IF;
    IF subject_key <> '' THEN
        subject := memadmin_subject_for(subject_kind, subject_key);
    END IF;
    INSERT INTO sessions_app_sessionrecord AS r (store_id, session_id, subject_id, subject_source, ticket, agent)
    VALUES (
        place, given_session, subject, CASE WHEN subject IS NULL THEN '' ELSE 'client' END,
        left(given_ticket, 200), left(given_agent, 200)
    )
    ON CONFLICT (store_id, session_id) DO NOTHING;
    SELECT r.id, r.erased_at INTO record, gone FROM sessions_app_sessionrecord AS r
    WHERE r.store_id = place AND r.session_id = given_session;
    IF gone IS NOT NULL THEN
        RAISE EXCEPTION 'This session was erased and cannot be written again.' USING ERRCODE = 'P0E01';
    END IF;
    UPDATE sessions_app_sessionrecord AS r
    SET subject_id = CASE WHEN r.subject_source = 'operator' THEN r.subject_id
                          ELSE coalesce(memadmin_register_session.subject, r.subject_id) END,
        subject_source = CASE WHEN r.subject_source = 'operator' OR memadmin_register_session.subject IS NULL
                              THEN r.subject_source ELSE 'client' END,
        ticket = coalesce(nullif(left(given_ticket, 200), ''), r.ticket),
        agent = coalesce(nullif(left(given_agent, 200), ''), r.agent)
    WHERE r.store_id = place AND r.session_id = given_session AND (
        (r.subject_source <> 'operator' AND r.subject_id IS DISTINCT FROM
            coalesce(memadmin_register_session.subject, r.subject_id))
        OR (given_ticket <> '' AND r.ticket <> left(given_ticket, 200))
        OR (given_agent <> '' AND r.agent <> left(given_agent, 200))
    );
    SELECT r.subject_id INTO subject FROM sessions_app_sessionrecord AS r
    WHERE r.store_id = place AND r.session_id = given_session;
END $$;
