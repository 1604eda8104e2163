-- What all processes know together (see memadmin.accounts.db_cache).
CREATE TABLE memadmin_cache (
    key varchar(300) PRIMARY KEY,
    value text NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX memadmin_cache_by_end ON memadmin_cache (expires_at);
