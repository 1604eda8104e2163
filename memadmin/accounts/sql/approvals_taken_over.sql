-- For a migration that takes over decisions of before: it inserts them as they were. Afterwards it runs approvals.sql.
CREATE OR REPLACE FUNCTION memadmin_ask_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    RETURN NEW;
END $$;
