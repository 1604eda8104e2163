from __future__ import annotations

from django.db import migrations

UUID7 = """
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
$$
"""

REF = """
CREATE FUNCTION memadmin_ref(kind text, pk text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
SELECT encode(
    set_byte(set_byte(digest, 6, get_byte(digest, 6) & 15 | 128), 8, get_byte(digest, 8) & 63 | 128), 'hex'
)::uuid
FROM (SELECT substring(sha256(convert_to(kind || ':' || pk, 'UTF8')) FROM 1 FOR 16) AS digest) AS hashed
$$
"""

REFUSE_CHANGE = """
CREATE FUNCTION memadmin_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit log is insert-only: % on % is refused.', TG_OP, TG_TABLE_NAME USING ERRCODE = 'P0A01';
END $$
"""

# What follows runs with the rights of its owner, so that neither the application nor whoever changes a governed row
# needs a right on the tables behind it. The path is fixed, else a caller could put tables of the same name before ours.
FIX_PATH = "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)"

ACTOR = """
CREATE FUNCTION memadmin_actor(given_kind text, given_label text, given_user_id bigint DEFAULT NULL) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    found uuid;
    found_label text;
BEGIN
    LOOP
        IF given_user_id IS NULL THEN
            SELECT ref, label INTO found, found_label FROM audit_actor
            WHERE kind = given_kind AND label = given_label AND user_id IS NULL;
        ELSE
            SELECT ref, label INTO found, found_label FROM audit_actor
            WHERE kind = given_kind AND user_id = given_user_id;
        END IF;
        IF found IS NOT NULL THEN
            IF found_label <> given_label THEN
                UPDATE audit_actor SET label = given_label WHERE ref = found;
            END IF;
            RETURN found;
        END IF;
        INSERT INTO audit_actor (kind, label, user_id) VALUES (given_kind, given_label, given_user_id)
        ON CONFLICT DO NOTHING RETURNING ref INTO found;
        IF found IS NOT NULL THEN
            RETURN found;
        END IF;
    END LOOP;
END $$
"""

# Who is connected, and when, is never the client's word.
STAMP_EVENT = """
CREATE FUNCTION memadmin_stamp_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    NEW.at := clock_timestamp();
    NEW.role_ref := memadmin_actor('database', session_user);
    IF NEW.actor_ref IS NULL THEN
        NEW.actor_kind := 'database';
        NEW.actor_ref := NEW.role_ref;
    END IF;
    RETURN NEW;
END $$
"""

ENQUEUE_EVENT = """
CREATE FUNCTION memadmin_enqueue_event() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO audit_pending (number) VALUES (NEW.number);
    RETURN NULL;
END $$
"""


class Migration(migrations.Migration):
    """The functions that the tables of the log rest on."""

    initial = True
    dependencies = []
    operations = [
        migrations.RunSQL(UUID7, "DROP FUNCTION memadmin_uuid7()"),
        migrations.RunSQL(REF, "DROP FUNCTION memadmin_ref(text, text)"),
        migrations.RunSQL(REFUSE_CHANGE, "DROP FUNCTION memadmin_refuse_change()"),
        migrations.RunSQL(FIX_PATH, migrations.RunSQL.noop),
        migrations.RunSQL(ACTOR, "DROP FUNCTION memadmin_actor(text, text, bigint)"),
        migrations.RunSQL(STAMP_EVENT, "DROP FUNCTION memadmin_stamp_event()"),
        migrations.RunSQL(ENQUEUE_EVENT, "DROP FUNCTION memadmin_enqueue_event()"),
    ]
