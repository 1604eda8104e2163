-- Guards that only the owner can pass, and numbers that nobody can choose.

-- A replication role skips ordinary triggers. The names end in a hash of pgtrigger's.
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT tgrelid::regclass AS guarded, tgname FROM pg_trigger
        WHERE tgfoid = 'memadmin_refuse_change()'::regprocedure AND tgenabled <> 'A'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', found.guarded, found.tgname);
    END LOOP;
END $$;

ALTER TABLE audit_event ALTER COLUMN number SET GENERATED ALWAYS;
