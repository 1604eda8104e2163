-- Who decides about a memory is who acts in this transaction, by the proof of the event that the application adds to it.
-- A decision stays as it was made: it can be undone once, and an account that is deleted leaves it.
CREATE OR REPLACE FUNCTION memadmin_decision_is_proven() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    later CONSTANT text[] := '{reviewer_id,undone_at,agreed,note,before,waited}';
    acting CONSTANT text := memadmin_proven_actor('memadmin.recorder');
    is_by_person CONSTANT boolean := coalesce(acting LIKE 'person:%', false);
    is_proven boolean;
BEGIN
    IF TG_OP = 'INSERT' THEN
        is_proven := CASE
            WHEN acting IS NULL OR NEW.undone_at IS NOT NULL OR NEW.agreed IS NOT NULL THEN false
            WHEN NEW.approval_id IS NOT NULL
                AND NOT memadmin_is_decided_now(NEW.approval_id, 'memory', NEW.memory_id, '{approved}') THEN false
            WHEN NEW.reviewer_id IS NOT NULL THEN NEW.reviewer_id = memadmin_acting_person()
            ELSE NEW.rule_id IS NOT NULL AND split_part(acting, ':', 1) IN ('job', 'command')
        END;
        IF is_proven IS NOT TRUE THEN
            RAISE EXCEPTION 'This decision is not proven to be made by its reviewer or rule.' USING ERRCODE = 'P0M09';
        END IF;
        RETURN NEW;
    END IF;
    IF (to_jsonb(NEW) - later) <> (to_jsonb(OLD) - later)
        OR (NEW.reviewer_id IS DISTINCT FROM OLD.reviewer_id AND NEW.reviewer_id IS NOT NULL)
        OR (OLD.undone_at IS NOT NULL AND NEW.undone_at IS DISTINCT FROM OLD.undone_at)
        OR (OLD.agreed IS NOT NULL AND NEW.agreed IS DISTINCT FROM OLD.agreed)
    THEN
        RAISE EXCEPTION 'A decision stays as it was made; it can only be undone.' USING ERRCODE = 'P0M09';
    END IF;
    IF (NEW.undone_at, NEW.agreed) IS DISTINCT FROM (OLD.undone_at, OLD.agreed) AND NOT is_by_person THEN
        RAISE EXCEPTION 'This change of a decision is not proven to be made by a person.' USING ERRCODE = 'P0M09';
    END IF;
    RETURN NEW;
END $$;

-- Rules approve, so a person who acts in this transaction makes and changes them.
CREATE OR REPLACE FUNCTION memadmin_rule_is_proven() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    about CONSTANT text[] := '{created_by_id}';
BEGIN
    IF TG_OP = 'UPDATE' AND to_jsonb(NEW) - about = to_jsonb(OLD) - about AND NEW.created_by_id IS NULL THEN
        RETURN NEW;
    END IF;
    IF (memadmin_proven_actor('memadmin.recorder') LIKE 'person:%') IS NOT TRUE THEN
        RAISE EXCEPTION 'This change of an approval rule is not proven to be made by a person.'
            USING ERRCODE = 'P0M09';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_decision_is_proven(), memadmin_rule_is_proven() FROM PUBLIC;
