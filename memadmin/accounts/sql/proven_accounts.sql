-- Who may sign in, and with which rights: whoever writes this becomes any person, and decides as one. So a role that does
-- not own the table changes it as a proven actor (audit/sql/proofs.sql). Arguments are the columns that matter; without
-- them all do.
CREATE OR REPLACE FUNCTION memadmin_account_is_proven() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF has_table_privilege(session_user, TG_RELID, 'TRIGGER')
        OR coalesce(memadmin_proven_actor('memadmin.recorder'), memadmin_proven_actor('memadmin.actor')) IS NOT NULL
    THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND TG_NARGS > 0 THEN
        IF memadmin_pick(to_jsonb(NEW), TG_ARGV) = memadmin_pick(to_jsonb(OLD), TG_ARGV) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'Accounts and their rights are changed by a proven actor alone.' USING ERRCODE = 'P0Y03';
END $$;

REVOKE ALL ON FUNCTION memadmin_account_is_proven() FROM PUBLIC;
