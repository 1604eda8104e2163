-- Ids that begin with the time. PostgreSQL makes them itself from version 18 on.
DO $do$
BEGIN
    IF to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL THEN
        CREATE FUNCTION memadmin_uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
        SELECT pg_catalog.uuidv7()
        $$;
    ELSE
        CREATE FUNCTION memadmin_uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
        SELECT encode(
            set_bit(set_bit(
                overlay(
                    uuid_send(gen_random_uuid())
                    PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                    FROM 1 FOR 6
                ),
                52, 1
            ), 53, 1),
            'hex'
        )::uuid
        $$;
    END IF;
END $do$;

-- The id under which the log knows a row whose key is no UUID.
CREATE FUNCTION memadmin_ref(kind text, pk text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
SELECT encode(
    set_byte(set_byte(digest, 6, get_byte(digest, 6) & 15 | 128), 8, get_byte(digest, 8) & 63 | 128), 'hex'
)::uuid
FROM (SELECT substring(sha256(convert_to(kind || ':' || pk, 'UTF8')) FROM 1 FOR 16) AS digest) AS hashed
$$;
