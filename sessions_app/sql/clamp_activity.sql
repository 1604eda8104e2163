-- Times that an agent's row has, and that Python cannot represent: infinity, years beyond 9998 and before 2. The registry
-- has the time of the write instead, which is known; a session whose time is infinite would never expire, and be the first
-- of each list. Called only for such a row.

CREATE OR REPLACE FUNCTION memadmin_clamp_activity() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.last_activity_at := now();
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_clamp_activity() FROM PUBLIC;

-- Two statements, each along the index of the newest.
UPDATE sessions_app_sessionrecord SET last_activity_at = now() WHERE last_activity_at > '9998-12-31Z';
UPDATE sessions_app_sessionrecord SET last_activity_at = now() WHERE last_activity_at < '0002-01-01Z';
