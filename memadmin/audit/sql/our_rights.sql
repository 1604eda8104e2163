-- Whether a statement runs with the rights of the log's owner, in a trigger or through a function. Asked in the WHEN of
-- triggers, so with the rights of whoever writes: nothing here is looked up in their search_path. PostgreSQL reads a
-- WHEN anew for each statement, agents' too, and a call is short. Granting is the log's owner's alone: the right itself
-- comes with `pg_write_all_data`, and an owner may do without it.

DO $do$
BEGIN
    EXECUTE format($ask$
    CREATE FUNCTION memadmin_by_our_trigger() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN pg_catalog.pg_trigger_depth() OPERATOR(pg_catalog.>) 0 AND pg_catalog.has_table_privilege(
            current_user, '%I.audit_event'::pg_catalog.regclass, 'UPDATE WITH GRANT OPTION'
        );
    END $$
    $ask$, current_schema());
    EXECUTE format($ask$
    CREATE FUNCTION memadmin_through_us() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
    BEGIN
        RETURN current_user OPERATOR(pg_catalog.<>) session_user AND pg_catalog.has_table_privilege(
            current_user, '%I.audit_event'::pg_catalog.regclass, 'UPDATE WITH GRANT OPTION'
        );
    END $$
    $ask$, current_schema());
END $do$;
