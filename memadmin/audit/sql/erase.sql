-- Both run with the rights of their owner: nobody needs a right to delete, and nothing is deleted without an event of a
-- proven actor. A role that may delete by itself needs none.

CREATE OR REPLACE FUNCTION memadmin_erase_details(told_by uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    erased bigint;
BEGIN
    DELETE FROM audit_detail USING audit_event AS told
    WHERE told.id = told_by AND told.type = 'details.erased' AND audit_detail.event_id = ANY (told.shown)
        AND (told.actor_kind <> 'database' OR has_table_privilege(session_user, 'audit_detail', 'DELETE'));
    GET DIAGNOSTICS erased = ROW_COUNT;
    RETURN erased;
END $$;

CREATE OR REPLACE FUNCTION memadmin_erase_name(told_by uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    account bigint;
    told_number bigint;
    gone uuid;
    erased bigint;
BEGIN
    DELETE FROM audit_actor USING audit_event AS told
    WHERE told.id = told_by AND told.type = 'name.erased' AND told.object_kind = 'audit.auditactor'
        AND audit_actor.ref = told.object_ref AND audit_actor.kind = 'person'
        AND (told.actor_kind <> 'database' OR has_table_privilege(session_user, 'audit_actor', 'DELETE'))
    RETURNING user_id, told.number INTO account, told_number;
    GET DIAGNOSTICS erased = ROW_COUNT;
    gone := memadmin_ref('auth.user', account::text);
    -- An event explains the missing details of earlier ones: what another transaction has recorded since then stays.
    DELETE FROM audit_detail USING audit_event AS event
    WHERE event.id = audit_detail.event_id AND event.number < told_number AND (
        event.object_ref = gone OR event.shown <> '{}' AND event.shown @> ARRAY[gone] AND event.type LIKE 'user.row_%'
    );
    RETURN erased;
END $$;
