-- Agents register their sessions, in whatever store, by a function: the registry is not theirs to write.

-- As `subject_for_key` in Python: two callers at once get the same subject, merged ones stay as they are. An id that was
-- erased has no subject, and gets none: a trigger refuses it.
CREATE OR REPLACE FUNCTION memadmin_subject_for(given_kind text, given_key text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
    made uuid;
    gone timestamptz;
BEGIN
    IF given_kind NOT IN ('user', 'project', 'tenant') OR length(given_key) NOT BETWEEN 1 AND 512 THEN
        RAISE EXCEPTION 'A subject is a user, project or tenant, and its key has 1 to 512 characters.'
            USING ERRCODE = 'P0E04';
    END IF;
    SELECT s.id, s.erased_at INTO found, gone
    FROM sessions_app_subjectalias AS a JOIN sessions_app_subject AS s ON s.id = a.subject_id
    WHERE a.kind = given_kind AND a.key = given_key;
    IF gone IS NOT NULL THEN
        PERFORM memadmin_refuse_erased(ARRAY[found]);
    END IF;
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

-- What an agent says of its session counts more than a pattern, and less than an operator's hand. What was said first
-- stays: a session does not go from one subject to another because a second agent, or a reused id, says so. From a trigger
-- it is refused: there it would be taken for what our triggers write.
CREATE OR REPLACE FUNCTION memadmin_register_session(
    given_store text, given_session text, subject_kind text DEFAULT '', subject_key text DEFAULT '',
    given_ticket text DEFAULT '', given_agent text DEFAULT '', OUT record uuid, OUT subject uuid
) LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    place bigint;
    gone timestamptz;
    said uuid;
    source text;
BEGIN
    IF pg_trigger_depth() > 0 THEN
        RAISE EXCEPTION 'A session is not registered by a trigger.';
    END IF;
    SELECT id INTO place FROM sessions_app_sessionstore WHERE name = given_store;
    IF place IS NULL THEN
        RAISE EXCEPTION 'No store of this name is connected.' USING ERRCODE = 'P0E03';
    END IF;
    IF subject_key <> '' THEN
        said := memadmin_subject_for(subject_kind, subject_key);
    END IF;
    INSERT INTO sessions_app_sessionrecord AS r (store_id, session_id, subject_id, subject_source, ticket, agent)
    VALUES (
        place, given_session, said, CASE WHEN said IS NULL THEN '' ELSE 'client' END,
        left(given_ticket, 200), left(given_agent, 200)
    )
    ON CONFLICT (store_id, session_id) DO NOTHING;
    -- As the fence locks it: an erasure that is under way is waited for.
    SELECT r.id, r.erased_at INTO record, gone FROM sessions_app_sessionrecord AS r
    WHERE r.store_id = place AND r.session_id = given_session FOR KEY SHARE;
    -- Without a row it was forgotten a moment ago: its id is another by now.
    IF NOT FOUND OR gone IS NOT NULL THEN
        RAISE EXCEPTION 'This session was erased and cannot be written again.' USING ERRCODE = 'P0E01';
    END IF;
    UPDATE sessions_app_sessionrecord AS r
    SET subject_id = CASE WHEN r.subject_source IN ('operator', 'client') THEN r.subject_id
                          ELSE coalesce(said, r.subject_id) END,
        subject_source = CASE WHEN r.subject_source = 'operator' OR said IS NULL THEN r.subject_source ELSE 'client' END,
        ticket = coalesce(nullif(left(given_ticket, 200), ''), r.ticket),
        agent = coalesce(nullif(left(given_agent, 200), ''), r.agent)
    WHERE r.store_id = place AND r.session_id = given_session AND (
        (r.subject_source NOT IN ('operator', 'client') AND r.subject_id IS DISTINCT FROM coalesce(said, r.subject_id))
        OR (given_ticket <> '' AND r.ticket <> left(given_ticket, 200))
        OR (given_agent <> '' AND r.agent <> left(given_agent, 200))
    );
    SELECT r.subject_id, r.subject_source INTO subject, source FROM sessions_app_sessionrecord AS r
    WHERE r.store_id = place AND r.session_id = given_session;
    -- Two ids of one person are no contradiction.
    IF source = 'client' AND subject <> said AND subject <> ALL (memadmin_subject_group(said)) THEN
        RAISE EXCEPTION 'This session was registered for another subject.'
            USING ERRCODE = 'P0E06', HINT = 'Use a session id of its own for each subject.';
    END IF;
END $$;
