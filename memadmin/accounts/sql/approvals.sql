-- Decisions about what takes a second person. Columns with the id of an account are anybody's word who may write the
-- table: believed is the person who proved to act, with an event of the same transaction (audit/sql/proofs.sql).

CREATE OR REPLACE FUNCTION memadmin_ask_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.asked_at := clock_timestamp();
    NEW.decided_at := CASE WHEN NEW.decision <> '' THEN NEW.asked_at END;
    IF NEW.asked_by_id <> coalesce(memadmin_acting_person(), 0) OR NEW.decided_by_id IS NOT NULL
        OR NEW.decision NOT IN ('', 'not_needed')
    THEN
        RAISE EXCEPTION 'An approval is asked for by the person who acts, and decided afterwards.'
            USING ERRCODE = 'P0Y01';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION memadmin_decide_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    -- The people can be removed with their accounts.
    people CONSTANT text[] := '{asked_by_id,decided_by_id}';
    once CONSTANT text[] := '{decision,decided_at}';
    forgets CONSTANT boolean := (NEW.asked_by_id IS NULL OR NEW.asked_by_id = OLD.asked_by_id)
        AND (NEW.decided_by_id IS NULL OR NEW.decided_by_id = OLD.decided_by_id);
BEGIN
    IF OLD.decision <> '' THEN
        IF NOT forgets OR (to_jsonb(NEW) - people) <> (to_jsonb(OLD) - people) THEN
            RAISE EXCEPTION 'This approval was decided already.' USING ERRCODE = 'P0Y01';
        END IF;
        RETURN NEW;
    END IF;
    IF (to_jsonb(NEW) - people - once) <> (to_jsonb(OLD) - people - once)
        OR NEW.asked_by_id <> OLD.asked_by_id OR OLD.asked_by_id IS NULL AND NEW.asked_by_id IS NOT NULL
    THEN
        RAISE EXCEPTION 'Who asked for an approval, and for what, is not changed.' USING ERRCODE = 'P0Y01';
    END IF;
    IF NEW.decision = '' THEN
        IF NEW.decided_by_id IS NOT NULL THEN
            RAISE EXCEPTION 'Nobody has decided about this approval.' USING ERRCODE = 'P0Y01';
        END IF;
        RETURN NEW;
    END IF;
    NEW.decided_at := clock_timestamp();
    IF NEW.decided_by_id IS NULL THEN
        -- It ends by itself, which gives nothing.
        IF NEW.decision <> 'void' THEN
            RAISE EXCEPTION 'A person decides about an approval.' USING ERRCODE = 'P0Y01';
        END IF;
    ELSIF NEW.decided_by_id IS DISTINCT FROM memadmin_acting_person() OR NEW.decision = 'not_needed'
        OR NEW.decision = 'approved' AND (
            NEW.asked_by_id IS NULL OR NEW.asked_by_id = NEW.decided_by_id OR NEW.expires_at <= clock_timestamp()
        )
    THEN
        RAISE EXCEPTION 'An approval takes another person, who acts now and in time.' USING ERRCODE = 'P0Y01';
    END IF;
    RETURN NEW;
END $$;

-- Whether an approval of this kind, for this very row, was decided so in this transaction.
CREATE OR REPLACE FUNCTION memadmin_is_decided_now(given uuid, given_kind text, given_ref uuid, decisions text[])
RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT EXISTS (
    SELECT FROM accounts_approval
    WHERE id = given AND kind = given_kind AND object_ref = given_ref AND decision = ANY (decisions)
        AND decided_at >= transaction_timestamp()
)
$$;

-- The column of TG_ARGV[1] gets a value only with an approval of the kind TG_ARGV[0] for this very row, approved or
-- decided as TG_ARGV[2] says, and only in the transaction that decided it: what was approved once does not take effect again.
CREATE OR REPLACE FUNCTION memadmin_require_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    was CONSTANT jsonb := CASE WHEN TG_OP = 'UPDATE' THEN to_jsonb(OLD) -> TG_ARGV[1] END;
    becomes CONSTANT jsonb := to_jsonb(NEW) -> TG_ARGV[1];
BEGIN
    IF becomes <> 'null' AND becomes IS DISTINCT FROM was AND NOT memadmin_is_decided_now(
        NEW.approval_id, TG_ARGV[0], NEW.id, ARRAY['approved', TG_ARGV[2]]
    ) THEN
        RAISE EXCEPTION 'This takes an approval by a second person.' USING ERRCODE = 'P0Y02';
    END IF;
    RETURN NEW;
END $$;

-- A row that waits for an approval keeps it, and gets no other one.
CREATE OR REPLACE FUNCTION memadmin_keep_approval() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF OLD.approval_id IS NOT NULL AND NEW.approval_id IS DISTINCT FROM OLD.approval_id THEN
        RAISE EXCEPTION 'What waits for an approval keeps it.' USING ERRCODE = 'P0Y02';
    END IF;
    RETURN NEW;
END $$;

-- The object of an approval was deleted: there is nothing to decide about any more.
CREATE OR REPLACE FUNCTION memadmin_end_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE accounts_approval SET decision = 'void' WHERE id = OLD.approval_id AND decision = '';
    RETURN NULL;
END $$;

-- Columns with the id of an account name the person who acts, or nobody.
CREATE OR REPLACE FUNCTION memadmin_require_actor() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    named text;
    was CONSTANT jsonb := CASE WHEN TG_OP = 'UPDATE' THEN to_jsonb(OLD) END;
    becomes CONSTANT jsonb := to_jsonb(NEW);
BEGIN
    FOREACH named IN ARRAY TG_ARGV LOOP
        IF becomes ->> named IS NOT NULL AND (becomes -> named) IS DISTINCT FROM (was -> named)
            AND (becomes ->> named)::bigint IS DISTINCT FROM memadmin_acting_person()
        THEN
            RAISE EXCEPTION 'Who decided is the person who acts.' USING ERRCODE = 'P0Y01';
        END IF;
    END LOOP;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_ask_approval(), memadmin_decide_approval(),
    memadmin_is_decided_now(uuid, text, uuid, text[]), memadmin_require_approval(), memadmin_keep_approval(),
    memadmin_end_approval(), memadmin_require_actor() FROM PUBLIC;
