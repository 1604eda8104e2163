-- What a policy said at any time can be proved: its versions are never changed or deleted.

CREATE OR REPLACE FUNCTION memadmin_keep_policy_versions() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'UPDATE' THEN
        RAISE EXCEPTION 'A version of a retention policy is never deleted: another one follows it.' USING ERRCODE = 'P0R01';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION memadmin_keep_policy_version() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    -- Approval, start and end of a change come once; who stopped it can be removed with the account.
    people CONSTANT text[] := '{closed_by_id}';
    once CONSTANT text[] := '{approval_id,starts_at,closed_at,closing_reason}';
BEGIN
    -- Who stopped it can be forgotten with the account, and is nobody else afterwards.
    IF OLD.approval_id IS NOT NULL AND NEW.approval_id IS DISTINCT FROM OLD.approval_id
        OR OLD.closed_at IS NOT NULL AND NEW.closed_by_id IS NOT NULL AND NEW.closed_by_id IS DISTINCT FROM OLD.closed_by_id
    THEN
        RAISE EXCEPTION 'Who decided about a change is not changed.' USING ERRCODE = 'P0R01';
    END IF;
    IF (to_jsonb(NEW) - people - once) <> (to_jsonb(OLD) - people - once) THEN
        RAISE EXCEPTION 'A version of a retention policy is never changed: propose another one.' USING ERRCODE = 'P0R01';
    END IF;
    IF OLD.closed_at IS NOT NULL AND (to_jsonb(NEW) - people) <> (to_jsonb(OLD) - people)
        OR OLD.starts_at IS NOT NULL AND (NEW.starts_at, NEW.approval_id) IS DISTINCT FROM (OLD.starts_at, OLD.approval_id)
    THEN
        RAISE EXCEPTION 'This change was decided already.' USING ERRCODE = 'P0R01';
    END IF;
    -- Not the time at which the transaction began: it can have waited until after the start.
    IF NEW.closed_at IS NOT NULL AND OLD.starts_at <= clock_timestamp() THEN
        RAISE EXCEPTION 'This version is in force, or was: propose another one.' USING ERRCODE = 'P0R01';
    END IF;
    RETURN NEW;
END $$;

-- A version is added before anybody has decided about it.
CREATE OR REPLACE FUNCTION memadmin_add_policy_version() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF coalesce(NEW.starts_at, NEW.closed_at) IS NOT NULL OR coalesce(NEW.approval_id::text, NEW.closed_by_id::text) IS NOT NULL THEN
        RAISE EXCEPTION 'A version of a retention policy is proposed first, and decided about then.' USING ERRCODE = 'P0R01';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_keep_policy_versions(), memadmin_keep_policy_version(), memadmin_add_policy_version()
    FROM PUBLIC;
