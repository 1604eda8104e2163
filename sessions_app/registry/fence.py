"""Triggers on the agents' tables: they register each session, follow its activity and refuse writes to an erased one;
they also record writes by other roles than the agents' in the audit log.

The functions run with the rights of our role (SECURITY DEFINER, fixed search_path), so the agents' roles need none on
our tables. They touch our tables only by the session id of the row at hand. They never read content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import indent

from psycopg import sql

from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry.tables import StoreTables, Table

ERASED = "P0E01"
"""The SQLSTATE of a refused write. Not of class 23, which the agents' SDK takes for a lost race and swallows."""

WRITE_DROPPED = "write.dropped"
"""Outbox event: an agent wrote to an erased session, and the write was discarded."""

CHANGED = "P0E05"
"""The SQLSTATE of a write to a table of which a column has another type than stores may have."""

# The owner of the table may give a column another type at any time, and that type a cast of their own, which would run
# here, with our rights. So nothing is done with a column before it is known to be of a type of PostgreSQL's own.
NOT_A_TEXT = "pg_typeof({column}) NOT IN ('text'::regtype, 'varchar'::regtype)"
NOT_AN_INSTANT = "pg_typeof({column}) NOT IN ('timestamp'::regtype, 'timestamptz'::regtype)"
REFUSE_CHANGED = """\
    RAISE EXCEPTION USING ERRCODE = '{changed}',
      MESSAGE = 'A column of this table no longer has a type with which its sessions can be registered.',
      HINT = 'Give session_id and updated_at their types again, or run attach_store with --remove.';"""

# In reject mode the foreign key keeps messages out of a session that does not exist: no fence is needed there as well.
# Between two steps of an erasure the session still exists: then FOLLOW rejects the write, because the SDK updates the
# session's row in the transaction of each write. Any other write then is deleted by the last step.
REGISTER = """
DECLARE
  wanted text;
  written timestamptz;
  ended timestamptz;
BEGIN
  IF {not_a_text} OR {not_an_instant} THEN
{refuse_changed}
  END IF;
  wanted := NEW.session_id;
  written := coalesce(NEW.updated_at::timestamptz, now());
{add_record}
  -- Held until the writer commits. Setting erased_at waits for it, because erased_at is part of a unique key.
  SELECT erased_at INTO ended FROM {records}
  WHERE store_id = {store_id} AND session_id = wanted FOR KEY SHARE;
  IF NOT FOUND THEN
    -- It was forgotten a moment ago, and goes by its digest.
    wanted := {our_schema}.memadmin_session_digest({store_id}, wanted);
    ended := now();
  END IF;
  IF ended IS NOT NULL THEN
{refuse}
  END IF;
  RETURN NEW;
END
"""

# A trigger of the registry refuses a session that is forgotten: of its id only the digest is there.
ADD_RECORD = """\
  INSERT INTO {records} (store_id, session_id, last_activity_at) VALUES ({store_id}, wanted, written)
  ON CONFLICT (store_id, session_id) DO NOTHING;"""

ADD_RECORD_OR_DROP = """\
  BEGIN
    INSERT INTO {records} (store_id, session_id, last_activity_at) VALUES ({store_id}, wanted, written)
    ON CONFLICT (store_id, session_id) DO NOTHING;
  EXCEPTION WHEN SQLSTATE '{erased}' THEN
    -- From here on it goes by its digest: the id itself must not be kept again, not even in the note.
    wanted := {our_schema}.memadmin_session_digest({store_id}, wanted);
  END;"""

REJECT = """\
    RAISE EXCEPTION USING ERRCODE = '{erased}',
      MESSAGE = 'This session was erased and can never be written to again.',
      HINT = 'Begin a new session under another id.';"""

REJECT_ENDED = """\
  IF ended IS NOT NULL THEN
{reject}
  END IF;"""

DROP_ENDED = "  -- The items of an erased session are dropped before this."

DROP = """\
    -- Noted once for each transaction and session, however many rows it writes.
    IF current_setting('memadmin.dropped', true) IS DISTINCT FROM '{store_id}:' || wanted THEN
      INSERT INTO {outbox} (store_id, session_id, event) VALUES ({store_id}, wanted, '{write_dropped}');
      PERFORM set_config('memadmin.dropped', '{store_id}:' || wanted, true);
    END IF;
    RETURN NULL;"""

# updated_at is the writer's CURRENT_TIMESTAMP, so within the writer's own connection the cast knows its zone. The id
# comes as a variable, without the collation of the agents' column, with which the registry's index would not be used.
FOLLOW = """
DECLARE
  wanted text;
  written timestamptz;
  ended timestamptz;
BEGIN
  IF {not_a_text} OR {not_an_instant} THEN
{refuse_changed}
  END IF;
  wanted := NEW.session_id;
  written := coalesce(NEW.updated_at::timestamptz, now());
  -- The write that made the session is on record already: time stands still within a transaction.
  UPDATE {records} SET last_activity_at = written, activity_count = activity_count + 1
  WHERE store_id = {store_id} AND session_id = wanted AND last_activity_at <> written
  RETURNING erased_at INTO ended;
{refuse_ended}
  -- An upsert would say all this in one, and cost every write an insertion that fails.
  IF NOT FOUND AND NOT EXISTS (SELECT FROM {records} WHERE store_id = {store_id} AND session_id = wanted) THEN
{add_record_within}
  END IF;
  RETURN NULL;
END
"""

KEEP_OUT = """
DECLARE
  wanted text;
  ended timestamptz;
BEGIN
  IF {not_a_text} THEN
{refuse_changed}
  END IF;
  wanted := NEW.session_id;
  SELECT erased_at INTO ended FROM {records} WHERE store_id = {store_id} AND session_id = wanted;
  IF NOT FOUND AND {our_schema}.memadmin_is_forgotten({store_id}, wanted) THEN
    wanted := {our_schema}.memadmin_session_digest({store_id}, wanted);
    ended := now();
  END IF;
  IF ended IS NOT NULL THEN
{refuse}
  END IF;
  RETURN NEW;
END
"""


# One event for each statement that is not an agent's. The trigger checks the role in its WHEN: a function that only
# finds out that it is not needed would cost agents more.
NOTE = """
DECLARE
  total bigint;
  records uuid[];
  subjects uuid[];
BEGIN
  SELECT count(*) INTO total FROM {rows};
  IF EXISTS (SELECT FROM {rows} WHERE {not_a_text}) THEN
{refuse_changed}
  END IF;
  IF total > 0 THEN
    SELECT array_agg(r.id), array_agg(DISTINCT r.subject_id) FILTER (WHERE r.subject_id IS NOT NULL)
    INTO records, subjects
    FROM {records} AS r
    WHERE r.store_id = {store_id} AND r.session_id IN (SELECT DISTINCT session_id FROM {rows} LIMIT 1000);
    PERFORM {our_schema}.memadmin_record_rows(
      '{event_type}', '{kind}', coalesce(records, '{{}}'), coalesce(subjects, '{{}}'), total, NULL
    );
  END IF;
  RETURN NULL;
END
"""

NOTE_TRUNCATION = """
BEGIN
  PERFORM {our_schema}.memadmin_record_rows('{event_type}', '{kind}', '{{}}', '{{}}', 0, NULL);
  RETURN NULL;
END
"""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One trigger and its function; both have the same name, which contains the store's id."""

    name: str
    purpose: str
    table: Table
    fires: str
    body: str
    our_schema: str
    each: str = "FOR EACH ROW"
    when: str = ""
    """Exactly the text that pg_get_triggerdef() returns, so that the two can be compared."""

    @property
    def function(self) -> sql.Identifier:
        return sql.Identifier(self.our_schema, self.name)

    def create_function(self) -> sql.Composed:
        return sql.SQL(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger\n"
            "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp\n"
            "AS {body}"
        ).format(function=self.function, body=dollar_quoted(self.body))

    def close_function(self) -> sql.Composed:
        return sql.SQL("REVOKE ALL ON FUNCTION {function}() FROM PUBLIC").format(function=self.function)

    def create_trigger(self) -> sql.Composed:
        return sql.SQL(
            "CREATE OR REPLACE TRIGGER {name} {fires} ON {table}\n{each}{when} EXECUTE FUNCTION {function}()"
        ).format(
            name=sql.Identifier(self.name),
            fires=sql.SQL(self.fires),
            each=sql.SQL(self.each),
            when=sql.SQL(self.when),
            table=self.table.identifier,
            function=self.function,
        )

    def is_placed_as(self, definition: str) -> bool:
        """True if the text of pg_get_triggerdef() is what `create_trigger` makes."""
        return f" {self.fires} ON " in definition and f" {self.each}{self.when} EXECUTE FUNCTION " in definition


BEFORE_WRITE = "BEFORE INSERT OR UPDATE OF session_id"
AFTER_WRITE = "AFTER INSERT OR UPDATE"

REGISTER_NAME = "memadmin_register_{}"
FOLLOW_NAME = "memadmin_follow_{}"
KEEP_OUT_NAME = "memadmin_keep_out_{}"


NOTED = {
    "INSERT": ("note_insert", "REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT", "row_inserted"),
    "UPDATE": ("note_update", "REFERENCING NEW TABLE AS changed_rows FOR EACH STATEMENT", "row_updated"),
    "DELETE": ("note_delete", "REFERENCING OLD TABLE AS changed_rows FOR EACH STATEMENT", "row_deleted"),
    "TRUNCATE": ("note_truncate", "FOR EACH STATEMENT", "table_truncated"),
}
NOTE_NAMES = [f"memadmin_{name}_of_{table}_{{}}" for table in ("items", "sessions") for name, _, _ in NOTED.values()]


def all_names(store: SessionStore) -> Sequence[str]:
    """Triggers of all modes, in the order of their removal."""
    return [name.format(store.pk) for name in (*NOTE_NAMES, FOLLOW_NAME, KEEP_OUT_NAME, REGISTER_NAME)]


def triggers_for(store: SessionStore, tables: StoreTables, mode: str = "") -> Sequence[Trigger]:
    """Triggers of a store in its fence mode (or another), in the order of their creation."""
    drops = (mode or store.fence_mode) == SessionStore.FenceMode.DROP
    names = {
        "records": tables.records.as_string(None),
        "outbox": tables.outbox.as_string(None),
        "our_schema": sql.Identifier(tables.our_schema).as_string(None),
        "store_id": store.pk,
        "erased": ERASED,
        "write_dropped": WRITE_DROPPED,
        "not_a_text": NOT_A_TEXT.format(column="NEW.session_id"),
        "not_an_instant": NOT_AN_INSTANT.format(column="NEW.updated_at"),
        "refuse_changed": REFUSE_CHANGED.format(changed=CHANGED),
    }
    refuse = (DROP if drops else REJECT).format(**names)
    add_record = (ADD_RECORD_OR_DROP if drops else ADD_RECORD).format(**names)
    names |= {"add_record": add_record, "add_record_within": indent(add_record, "  ")}
    refuse_ended = DROP_ENDED if drops else REJECT_ENDED.format(reject=refuse)

    def trigger(name: str, purpose: str, table: Table, fires: str, body: str) -> Trigger:
        return Trigger(name.format(store.pk), purpose, table, fires, body, tables.our_schema)

    follow = trigger(
        FOLLOW_NAME,
        "Follows the last activity of each session",
        tables.sessions,
        AFTER_WRITE,
        FOLLOW.format(**names, refuse_ended=refuse_ended),
    )
    register = trigger(
        REGISTER_NAME,
        f"Registers each session and {'drops' if drops else 'rejects'} writes to an erased one",
        tables.sessions,
        BEFORE_WRITE,
        REGISTER.format(**names, refuse=refuse),
    )
    keep_out = trigger(
        KEEP_OUT_NAME,
        "Drops the items of an erased session",
        tables.messages,
        BEFORE_WRITE,
        KEEP_OUT.format(**names, refuse=refuse),
    )
    return [follow, keep_out, register] if drops else [follow, register]


def notes_for(store: SessionStore, tables: StoreTables) -> Iterator[Trigger]:
    """Triggers that record statements by other roles than the agents'.

    While the agents' database roles are not set, only our own writes are known not to be theirs.
    """
    by_others = "current_setting('memadmin.actor'::text, true) <> ''::text"
    if store.agent_roles:
        roles = ", ".join("'{}'::name".format(role.replace("'", "''")) for role in store.agent_roles)
        by_others = f"SESSION_USER <> ALL (ARRAY[{roles}])"
    for noun, plural, table in (
        ("stored_item", "items", tables.messages),
        ("stored_session", "sessions", tables.sessions),
    ):
        for operation, (name, each, event) in NOTED.items():
            body = (NOTE_TRUNCATION if operation == "TRUNCATE" else NOTE).format(
                rows="changed_rows",
                records=tables.records.as_string(None),
                store_id=store.pk,
                our_schema=sql.Identifier(tables.our_schema).as_string(None),
                event_type=f"{noun}.{event}",
                kind=SessionRecord._meta.label_lower,
                not_a_text=NOT_A_TEXT.format(column="session_id"),
                refuse_changed=REFUSE_CHANGED.format(changed=CHANGED),
            )
            yield Trigger(
                f"memadmin_{name}_of_{plural}_{store.pk}",
                f"Records each {operation} on {table} that is not an agent's",
                table,
                f"AFTER {operation}",
                body,
                tables.our_schema,
                each,
                f" WHEN (({by_others}))",
            )


def dollar_quoted(body: str) -> sql.SQL:
    """A readable function body; a quoted literal would double each quote."""
    tag = "$memadmin$"
    while tag in body:
        tag = f"{tag[:-1]}_$"
    return sql.SQL(f"{tag}{body}{tag}")
