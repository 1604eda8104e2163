-- A version starts with the approval of another person, or if it surely keeps more than the one in force. The same
-- comparison as could_take_more of memadmin/retention/policies/comparing.py: whoever writes by SQL cannot leave it out.

-- Whether a length is never shorter than another one, from whatever day on.
CREATE OR REPLACE FUNCTION memadmin_is_surely_at_least(
    given_count bigint, given_unit text, other_count bigint, other_unit text
) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path FROM CURRENT AS $$
    SELECT CASE
        WHEN given_count IS NULL OR other_count IS NULL THEN false
        WHEN 'days' NOT IN (given_unit, other_unit) THEN
            given_count * CASE given_unit WHEN 'years' THEN 12 ELSE 1 END
            >= other_count * CASE other_unit WHEN 'years' THEN 12 ELSE 1 END
        ELSE
            given_count * CASE given_unit WHEN 'years' THEN 12 * 28 WHEN 'months' THEN 28 ELSE 1 END
            >= other_count * CASE other_unit WHEN 'years' THEN 12 * 31 WHEN 'months' THEN 31 ELSE 1 END
    END
$$;

-- Whether anything could go earlier, or otherwise, under a version than under the one before; NULL stands for none.
CREATE OR REPLACE FUNCTION memadmin_could_take_more(
    earlier retention_policyversion, later retention_policyversion
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
DECLARE
    earlier_decides CONSTANT boolean := earlier.action <> 'keep' OR earlier.minimum_count IS NULL;
    later_decides CONSTANT boolean := later.action <> 'keep' OR later.minimum_count IS NULL;
BEGIN
    IF later.is_end THEN
        RETURN true;
    END IF;
    IF earlier.id IS NULL OR earlier.is_end THEN
        RETURN later_decides;
    END IF;
    IF (later.target, later.store, later.session_pattern, later.agent, later.label, later.subject_kind,
        later.is_encrypted, later.kind, later.status)
        IS DISTINCT FROM (earlier.target, earlier.store, earlier.session_pattern, earlier.agent, earlier.label,
        earlier.subject_kind, earlier.is_encrypted, earlier.kind, earlier.status)
    THEN
        RETURN true;
    END IF;
    IF earlier.minimum_count IS NOT NULL AND (later.clock <> earlier.clock OR NOT memadmin_is_surely_at_least(
        later.minimum_count, later.minimum_unit, earlier.minimum_count, earlier.minimum_unit
    )) THEN
        RETURN true;
    END IF;
    IF earlier.action = 'keep' AND later.action = 'keep' THEN
        RETURN earlier_decides AND NOT later_decides;
    END IF;
    IF earlier.action = 'keep' THEN
        RETURN true;
    END IF;
    IF earlier.action <> 'delete' AND (later.action, later.clock, later.length_count, later.length_unit)
        IS DISTINCT FROM (earlier.action, earlier.clock, earlier.length_count, earlier.length_unit)
    THEN
        RETURN true;
    END IF;
    IF later.action = 'keep' THEN
        RETURN NOT later_decides;
    END IF;
    RETURN (later.action, later.clock) <> (earlier.action, earlier.clock) OR NOT memadmin_is_surely_at_least(
        later.length_count, later.length_unit, earlier.length_count, earlier.length_unit
    );
END $$;

CREATE OR REPLACE FUNCTION memadmin_start_policy_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    in_force retention_policyversion;
BEGIN
    IF OLD.starts_at IS NOT NULL OR NEW.starts_at IS NULL THEN
        RETURN NEW;
    END IF;
    IF memadmin_is_decided_now(NEW.approval_id, 'policy_change', NEW.id, '{approved}') THEN
        RETURN NEW;
    END IF;
    -- What is in force now, not when the transaction began or an earlier statement read it; and nobody changes it
    -- before this transaction ends.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'A version without an approval starts under READ COMMITTED alone.' USING ERRCODE = 'P0R02';
    END IF;
    PERFORM FROM retention_retentionpolicy WHERE id = NEW.policy_id FOR NO KEY UPDATE;
    SELECT * INTO in_force FROM retention_policyversion AS v
    WHERE v.policy_id = NEW.policy_id AND v.id <> NEW.id AND v.closed_at IS NULL AND v.starts_at <= clock_timestamp()
    ORDER BY v.number DESC LIMIT 1;
    -- Later, another version can be in force.
    IF NEW.starts_at > clock_timestamp() OR memadmin_could_take_more(in_force, NEW) THEN
        RAISE EXCEPTION 'This change could take more than the version in force: another person approves it first.'
            USING ERRCODE = 'P0R02';
    END IF;
    RETURN NEW;
END $$;

-- The level of a policy decides between it and others: making another one the default would be a change of both.
CREATE OR REPLACE FUNCTION memadmin_keep_default_policy() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF (NEW.id, NEW.is_default) IS DISTINCT FROM (OLD.id, OLD.is_default) THEN
        RAISE EXCEPTION 'Which retention policy is the default is never changed.' USING ERRCODE = 'P0R01';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_is_surely_at_least(bigint, text, bigint, text),
    memadmin_could_take_more(retention_policyversion, retention_policyversion), memadmin_start_policy_version(),
    memadmin_keep_default_policy() FROM PUBLIC;
