-- Erased sessions and ids are kept out by tombstones: keyed digests, from which the id cannot be found again.
--
-- A row that is new to the registry, or an id that is new, is compared with the tombstones after it was added: an earlier
-- look-up would miss one that is committed meanwhile. Under READ COMMITTED each statement of a function has a new
-- snapshot, and sees it. Under the other levels an older snapshot does not; so these lock for share a row that every new
-- tombstone changes, and a lock of a row that has changed since the snapshot is refused (SQLSTATE 40001).

-- The words before the ids keep the digests of both kinds, and what else is hashed with keys here, apart.
CREATE OR REPLACE FUNCTION memadmin_session_digest(given_store bigint, given_session text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN 'erased:' || memadmin_mac('tombstones', 'session ' || given_store || ':' || given_session);
END $$;

CREATE OR REPLACE FUNCTION memadmin_key_digest(given_kind text, given_key text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN memadmin_mac('tombstones', 'key ' || given_kind || ':' || given_key);
END $$;

-- The digest names the store, too, so the index of the tombstones is the only one that fits: a plan that is made while
-- the registry is empty, and kept while a large store is attached, must not read all of its rows.
CREATE OR REPLACE FUNCTION memadmin_is_forgotten(given_store bigint, given_session text) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $$
DECLARE
    wanted CONSTANT text := memadmin_session_digest(given_store, given_session);
BEGIN
    RETURN EXISTS (SELECT FROM sessions_app_sessionrecord WHERE is_forgotten AND session_id = wanted);
END $$;

CREATE OR REPLACE FUNCTION memadmin_wait_for_tombstones() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        PERFORM FROM sessions_app_tombstonelock FOR SHARE;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION memadmin_note_tombstones() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE sessions_app_tombstonelock SET changed_count = changed_count + 1;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION memadmin_refuse_forgotten() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM memadmin_wait_for_tombstones();
    IF memadmin_is_forgotten(NEW.store_id, NEW.session_id) THEN
        RAISE EXCEPTION 'This session was erased and can never be written to again.'
            USING ERRCODE = 'P0E01', HINT = 'Begin a new session under another id.';
    END IF;
    RETURN NULL;
END $$;

-- An id that was reopened may come back, with a subject of the next epoch.
CREATE OR REPLACE FUNCTION memadmin_refuse_erased_key() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    of_key CONSTANT text := memadmin_key_digest(NEW.kind, NEW.key);
BEGIN
    PERFORM memadmin_refuse_erased(ARRAY[NEW.subject_id]);
    PERFORM memadmin_wait_for_tombstones();
    IF EXISTS (SELECT FROM sessions_app_erasedkey WHERE digest = of_key AND reopened_at IS NULL) THEN
        RAISE EXCEPTION 'The data of the subject with this ID was erased, and nothing is stored about it.'
            USING ERRCODE = 'P0E01', HINT = 'The command reopen_subject allows a new start under this ID.';
    END IF;
    UPDATE sessions_app_subject AS s SET epoch = e.epoch + 1
    FROM sessions_app_erasedkey AS e WHERE e.digest = of_key AND s.id = NEW.subject_id AND s.epoch <= e.epoch;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION memadmin_session_digest(bigint, text), memadmin_key_digest(text, text),
    memadmin_is_forgotten(bigint, text), memadmin_wait_for_tombstones(), memadmin_note_tombstones(),
    memadmin_refuse_forgotten(), memadmin_refuse_erased_key() FROM PUBLIC;
