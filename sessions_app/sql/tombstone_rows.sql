-- The key of the digests that stand for erased ids, and the row at which new tombstones and new rows of agents meet.

-- Known to the database alone, as 'tokens' is. It must outlive the digests: without it they keep nobody out.
INSERT INTO memadmin_secret
SELECT 'tombstones', uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
ON CONFLICT DO NOTHING;

INSERT INTO sessions_app_tombstonelock (changed_count) SELECT 0 WHERE NOT EXISTS (SELECT FROM sessions_app_tombstonelock);
