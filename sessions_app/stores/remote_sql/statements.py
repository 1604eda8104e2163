"""SQL statements, with braces for the expressions of a dialect. `$n` is the index of one of several sessions."""

# The rows are picked before their text is looked at; of a long item only both ends leave the database.
WINDOW = """
SELECT id, {created_place}, {octets},
       CASE WHEN {octets} <= :whole THEN {raw} ELSE substr({raw}, 1, :head) END,
       CASE WHEN {octets} <= :whole THEN '' ELSE {tail} END
FROM (
    SELECT id, created_at, message_data FROM {messages} WHERE {of_session} {condition}
    ORDER BY created_at {direction}, id {direction} LIMIT :limit
) AS picked
ORDER BY created_at {direction}, id {direction}
"""
LATER = "AND created_at >= {instant} AND (created_at > {instant} OR id >= :number)"
EARLIER = "AND created_at <= {instant} AND (created_at < {instant} OR id < :number)"

ITEM = "SELECT id, {created_place}, {octets}, {raw}, '' FROM {messages} WHERE {of_session} AND id = :id"
COUNT = "SELECT count(*) FROM (SELECT 1 FROM {messages} WHERE {of_session} LIMIT :cap) AS few"
ABOUT = "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT :cap) AS few"

# Both stop at their limit, so a session of a million items costs what one of a thousand does.
PREVIEW_COUNT = """
SELECT $n, EXISTS (SELECT 1 FROM {sessions} WHERE {of_session}),
       (SELECT count(*) FROM (SELECT 1 FROM {messages} WHERE {of_session} LIMIT :cap) AS few)
"""
PREVIEW_HEADS = """
SELECT * FROM (
    SELECT $n AS wanted, {created_place} AS place, id, substr({raw}, 1, :head) AS beginning FROM {messages}
    WHERE {of_session} ORDER BY created_at, id LIMIT :items
) AS heads_$n
"""

SESSIONS = """
SELECT session_id, {created_place}, {updated_place},
       (SELECT m.id FROM {messages} AS m WHERE m.session_id = s.session_id
        ORDER BY m.created_at DESC, m.id DESC LIMIT 1)
FROM {sessions} AS s {beyond}
ORDER BY session_id LIMIT :limit
"""
LONE_ITEMS = "SELECT DISTINCT {exact_id} FROM {messages} {beyond}"
NEWEST = """
SELECT * FROM (
    SELECT $n AS wanted, {created_place} AS place, id FROM {messages}
    WHERE {of_session} ORDER BY created_at DESC, id DESC LIMIT 1
) AS newest_$n
"""

# The first statement of a change, with the same comparison as in the SDK.
LOCK_SESSION = "SELECT session_id FROM {sessions} WHERE session_id = :session_id {lock}"
LOCK_ITEM = "SELECT {raw} FROM {messages} WHERE {of_session} AND id = :id {lock}"
REPLACE_ITEM = "UPDATE {messages} SET message_data = :text WHERE {of_session} AND id = :id"
DELETE_ITEM = "DELETE FROM {messages} WHERE {of_session} AND id = :id"
NEWEST_IDS = "SELECT id FROM {messages} WHERE {of_session} ORDER BY created_at DESC, id DESC LIMIT :limit"
DELETE_MESSAGES = "DELETE FROM {messages} WHERE {of_session} AND id IN :ids"
DELETE_SESSION = "DELETE FROM {sessions} WHERE {of_session}"
# If MySQL takes `M1` for `m1`, the items of both belong to one row, with the id of the first of them. It then gets the
# id of the other; MySQL's foreign key would refuse that although the two are equal to it.
OTHERS_ON_ROW = "SELECT session_id FROM {messages} WHERE session_id = :session_id LIMIT 1"
RENAME_SESSION = (
    "SET foreign_key_checks = 0",
    "UPDATE {sessions} SET session_id = :other WHERE {of_session}",
    "SET foreign_key_checks = 1",
)

# These change nothing: the database checks the rights first.
RIGHTS_TO_CHANGE = (
    "SELECT session_id FROM {sessions} WHERE 1 = 0 {lock}",
    "UPDATE {messages} SET message_data = message_data WHERE 1 = 0",
    "DELETE FROM {messages} WHERE 1 = 0",
    "DELETE FROM {sessions} WHERE 1 = 0",
)
