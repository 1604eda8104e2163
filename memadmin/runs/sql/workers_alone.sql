-- Columns that workers alone write: progress and results of long work, of which they sign receipts. A worker is a role
-- that may sign the log; where one role does everything, nothing is refused. Arguments are names of columns: of those
-- others only add empty values, and may empty the second ones.
CREATE OR REPLACE FUNCTION memadmin_workers_alone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    emptied CONSTANT text[] := string_to_array(TG_ARGV[1], ',');
    later jsonb;
    former jsonb;
    name text;
BEGIN
    IF has_table_privilege(session_user, 'audit_checkpoint', 'INSERT') THEN
        RETURN NEW;
    END IF;
    later := to_jsonb(NEW);
    IF TG_OP = 'UPDATE' THEN
        former := to_jsonb(OLD);
    END IF;
    FOREACH name IN ARRAY string_to_array(TG_ARGV[0], ',') LOOP
        CONTINUE WHEN later -> name IS NOT DISTINCT FROM former -> name;
        CONTINUE WHEN (former IS NULL OR name = ANY (emptied))
            AND coalesce(later ->> name, '') = ANY (ARRAY['', '[]', '{}', '0', '\x']);
        RAISE EXCEPTION 'Only a worker writes % of %.', name, TG_TABLE_NAME USING ERRCODE = 'P0R01';
    END LOOP;
    RETURN NEW;
END $$;

-- A worker decides in the name of the person who requested a run, and has the key that proves it. So others request one
-- as the proven actor of their transaction.
CREATE OR REPLACE FUNCTION memadmin_requester_is_proven() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF has_table_privilege(session_user, 'audit_checkpoint', 'INSERT') THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        -- An account that is deleted leaves the run.
        IF NEW.requested_by_id IS NULL OR NEW.requested_by_id = OLD.requested_by_id THEN
            RETURN NEW;
        END IF;
    END IF;
    IF NEW.requested_by_id <> coalesce(memadmin_acting_person(), 0) THEN
        RAISE EXCEPTION 'This run is not proven to be requested by its requester.' USING ERRCODE = 'P0R02';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_workers_alone(), memadmin_requester_is_proven() FROM PUBLIC;
