-- Legal holds, enforced: what a hold covers is not erased or deleted, by whatever path.
--
-- A deletion and a new hold meet at one row, which a deletion locks for share and a hold changes. So a hold waits for
-- deletions in flight. Later ones see it: under READ COMMITTED because each statement of a function has a new snapshot,
-- and under the other levels because locking a row that has changed since the snapshot is refused (SQLSTATE 40001).

CREATE OR REPLACE FUNCTION memadmin_number_hold() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE retention_holdlock SET last_number = last_number + 1 RETURNING last_number INTO STRICT NEW.number;
    RETURN NEW;
END $$;

-- A hold is changed only by its release, a review date and an owner; it is not deleted, and not put in force again.
CREATE OR REPLACE FUNCTION memadmin_keep_hold() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'UPDATE' THEN
        RAISE EXCEPTION 'A legal hold is released, and never deleted.' USING ERRCODE = 'P0H04';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION memadmin_keep_hold_as_placed() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    -- An erasure takes the id of the session out of a released hold.
    may_forget CONSTANT boolean := OLD.released_at IS NOT NULL AND NEW.session_id = '';
    may_change CONSTANT text[] := '{owner_id,placed_by_id}'::text[]
        || CASE WHEN may_forget THEN '{session_id}'::text[] ELSE '{}' END;
BEGIN
    IF OLD.released_at IS NOT NULL AND (to_jsonb(NEW) - may_change) <> (to_jsonb(OLD) - may_change) THEN
        RAISE EXCEPTION 'A released legal hold is not changed. Place a new one.' USING ERRCODE = 'P0H04';
    END IF;
    IF (NEW.number, NEW.id, NEW.subject_id, NEW.record_id, NEW.label, NEW.reason, NEW.placed_at)
        IS DISTINCT FROM (OLD.number, OLD.id, OLD.subject_id, OLD.record_id, OLD.label, OLD.reason, OLD.placed_at)
        OR NEW.session_id <> OLD.session_id AND NOT may_forget
    THEN
        RAISE EXCEPTION 'What a legal hold covers, and why, is not changed.' USING ERRCODE = 'P0H04';
    END IF;
    RETURN NEW;
END $$;

-- Numbers of the holds in force on a session, by itself, a label, its subject, or a subject into which that was merged.
CREATE OR REPLACE FUNCTION memadmin_holds_on(given_record uuid, given_subject uuid, given_labels text[])
RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
RETURN QUERY WITH RECURSIVE line(id) AS (
    SELECT given_subject WHERE given_subject IS NOT NULL
    UNION
    SELECT s.merged_into_id FROM line JOIN sessions_app_subject AS s ON s.id = line.id WHERE s.merged_into_id IS NOT NULL
)
SELECT hold.number FROM retention_legalhold AS hold
WHERE hold.released_at IS NULL AND (
    hold.record_id = given_record OR hold.label = ANY (given_labels) OR hold.subject_id IN (SELECT id FROM line)
)
ORDER BY 1;
END $$;

-- The first hold on any of these sessions and subjects, which stays so until the end of the transaction.
CREATE OR REPLACE FUNCTION memadmin_first_hold(given_records uuid[], given_subjects uuid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM retention_holdlock FOR SHARE;
    RETURN (
        SELECT min(found.number) FROM (
            SELECT number FROM sessions_app_sessionrecord AS r, memadmin_holds_on(r.id, r.subject_id, r.labels) AS number
            WHERE r.id = ANY (given_records)
            UNION ALL
            SELECT number FROM unnest(given_subjects) AS subject, memadmin_holds_on(NULL, subject, '{}') AS number
        ) AS found
    );
END $$;

CREATE OR REPLACE FUNCTION memadmin_refuse_held_session() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    held bigint;
BEGIN
    PERFORM FROM retention_holdlock FOR SHARE;
    held := (SELECT min(number) FROM memadmin_holds_on(OLD.id, OLD.subject_id, OLD.labels) AS number);
    IF held IS NOT NULL THEN
        RAISE EXCEPTION 'This session is under the legal hold H-%. Nothing was deleted.', held USING ERRCODE = 'P0H01';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- A session does not leave a hold by losing its subject or a label. An agent's run must not fail for it: what it
-- registers of another subject is not taken over.
CREATE OR REPLACE FUNCTION memadmin_keep_held_session() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    held bigint;
BEGIN
    held := (SELECT min(number) FROM (
        SELECT * FROM memadmin_holds_on(OLD.id, OLD.subject_id, OLD.labels)
        EXCEPT SELECT * FROM memadmin_holds_on(NEW.id, NEW.subject_id, NEW.labels)
    ) AS lost(number));
    IF held IS NULL THEN
        RETURN NEW;
    END IF;
    IF NEW.labels @> OLD.labels AND NEW.subject_source <> 'operator' THEN
        NEW.subject_id := OLD.subject_id;
        NEW.subject_source := OLD.subject_source;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'This session is under the legal hold H-%: its subject and its labels stay until the hold is released. Nothing was changed.', held
        USING ERRCODE = 'P0H02';
END $$;

CREATE OR REPLACE FUNCTION memadmin_keep_held_merge() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    held bigint := (SELECT min(number) FROM memadmin_holds_on(NULL, OLD.merged_into_id, '{}') AS number);
BEGIN
    IF held IS NOT NULL THEN
        RAISE EXCEPTION 'The remaining subject is under the legal hold H-%: the merge stays until the hold is released. Nothing was changed.', held
            USING ERRCODE = 'P0H02';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- Rows learned from a session or about a subject: memories with their versions and evidence, signals, recalls.
CREATE OR REPLACE FUNCTION memadmin_refuse_held_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    gone CONSTANT jsonb := to_jsonb(OLD) - '{embedding,words}'::text[];
    -- The memory that the row is, or belongs to: it is kept with every session that it was learned from.
    memory CONSTANT uuid := CASE WHEN TG_TABLE_NAME = 'memories_app_memory' THEN gone ->> 'id' ELSE gone ->> 'memory_id' END;
    subject uuid := (gone ->> 'subject_id')::uuid;
    records uuid[] := array_remove(ARRAY[(gone ->> 'record_id')::uuid], NULL);
    held bigint;
BEGIN
    IF memory IS NOT NULL AND TG_TABLE_NAME <> 'memories_app_signal' THEN
        subject := coalesce(subject, (SELECT m.subject_id FROM memories_app_memory AS m WHERE m.id = memory));
        records := records || ARRAY(
            SELECT e.record_id FROM memories_app_evidence AS e WHERE e.memory_id = memory AND e.record_id IS NOT NULL
        );
    END IF;
    held := memadmin_first_hold(records, array_remove(ARRAY[subject], NULL));
    IF held IS NOT NULL THEN
        RAISE EXCEPTION 'This is under the legal hold H-%. Nothing was deleted.', held USING ERRCODE = 'P0H01';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

-- Whether somebody is under a hold is not for everybody who can connect.
REVOKE ALL ON FUNCTION memadmin_number_hold(), memadmin_holds_on(uuid, uuid, text[]), memadmin_first_hold(uuid[], uuid[]),
    memadmin_refuse_held_session(), memadmin_keep_held_session(), memadmin_keep_held_merge(), memadmin_refuse_held_row()
    FROM PUBLIC;
