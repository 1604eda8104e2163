-- Events that commit to the names that people have in the log now. Whoever is being named meanwhile waits.

LOCK TABLE audit_actor IN SHARE ROW EXCLUSIVE MODE;
SELECT memadmin_name_person(user_id, label, 'older_name') FROM audit_actor
WHERE kind = 'person' AND user_id IS NOT NULL ORDER BY first_seen_at, ref;
