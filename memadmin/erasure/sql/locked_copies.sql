-- A copy has the approval to include locked sessions in the transaction that decided about it, for its own request, and
-- for this copy alone.
CREATE OR REPLACE FUNCTION memadmin_require_copy_approval() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT memadmin_is_decided_now(
        NEW.approval_id, 'access_copy', (SELECT id FROM erasure_subjectrequest WHERE number = NEW.request_id),
        ARRAY['approved', 'not_needed']
    ) THEN
        RAISE EXCEPTION 'This takes an approval by a second person.' USING ERRCODE = 'P0Y02';
    END IF;
    RETURN NEW;
END $$;

REVOKE ALL ON FUNCTION memadmin_require_copy_approval() FROM PUBLIC;

-- Copies of earlier versions may contain locked sessions that nobody approved: they expire now, and the cases say so.
WITH RECURSIVE member(root, id) AS (
    SELECT subject_id, subject_id FROM erasure_subjectrequest WHERE kind = 'access'
    UNION
    SELECT member.root, s.id FROM member JOIN sessions_app_subject AS s ON s.merged_into_id = member.id
), expired AS (
    UPDATE erasure_accesscopy AS c SET expires_at = now()
    FROM erasure_subjectrequest AS r
    WHERE r.number = c.request_id AND c.state IN ('building', 'ready') AND EXISTS (
        SELECT FROM member
            JOIN sessions_app_sessionrecord AS s ON s.subject_id = member.id
            JOIN sessions_app_sessionstore AS st ON st.id = s.store_id
        WHERE member.root = r.subject_id AND s.erased_at IS NULL
            AND (s.is_sensitive OR s.is_encrypted OR st.is_sensitive)
    )
    RETURNING c.request_id
)
INSERT INTO erasure_requestnote (request_id, at, code, text)
SELECT request_id, now(), 'comment', 'This copy was begun before locked sessions took a second person, and is deleted.'
    ' Build it again, without them or with an approval.'
FROM expired;
