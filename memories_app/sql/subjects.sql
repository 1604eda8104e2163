-- The subject itself, the one it was merged into in the end, and all that were merged into that one.
CREATE FUNCTION memadmin_subject_group(given uuid) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
WITH RECURSIVE above AS (
    SELECT id, merged_into_id FROM sessions_app_subject WHERE id = given
    UNION SELECT s.id, s.merged_into_id FROM sessions_app_subject AS s JOIN above ON s.id = above.merged_into_id
), below AS (
    SELECT id FROM above WHERE merged_into_id IS NULL
    UNION SELECT s.id FROM sessions_app_subject AS s JOIN below ON s.merged_into_id = below.id
)
SELECT coalesce(array_agg(id), '{}') FROM below
$$;

-- The same of the subject that the run's transaction names.
CREATE FUNCTION memadmin_run_subjects() RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
SELECT memadmin_subject_group(nullif(current_setting('memadmin.subject', true), '')::uuid)
$$;
