"""SQL statements, with braces for table names and conditions."""

COLUMNS = """
id, created_at, length(CAST(message_data AS BLOB)),
CASE WHEN length(CAST(message_data AS BLOB)) <= :whole THEN message_data ELSE substr(message_data, 1, :head) END,
CASE WHEN length(CAST(message_data AS BLOB)) <= :whole THEN '' ELSE substr(message_data, -:tail) END
"""

WINDOW = """
SELECT {columns} FROM (
    SELECT * FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) {shown} {condition}
    ORDER BY id {direction} LIMIT :limit
)
"""

ITEM = """
SELECT id, created_at, length(CAST(message_data AS BLOB)), message_data, ''
FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id = :id {shown}
"""

COUNT = """
SELECT count(*) FROM (SELECT 1 FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) {shown} LIMIT :cap)
"""
FROM_INSTANT = """
SELECT min(id) FROM {messages}
WHERE session_id = CAST(:session_id AS TEXT) {shown} AND datetime(created_at) >= CAST(:instant AS TEXT)
"""

# Ids that are text: a file may have NULL and blobs, which come after all text.
SESSIONS = "SELECT session_id FROM {sessions} WHERE session_id < x'' {beyond} ORDER BY session_id LIMIT :limit"
ODD_IDS = """
SELECT count(*) FROM (
    SELECT session_id FROM {sessions} WHERE session_id IS NULL OR session_id >= x''
    UNION SELECT session_id FROM {messages} WHERE session_id IS NULL OR session_id >= x'' LIMIT :limit
)
"""
# From session to session along the index, however many items each has: some may have no row of their session.
SESSIONS_WITH_ITEMS = """
WITH RECURSIVE stepped(session_id) AS (
    SELECT min(session_id) FROM {messages} WHERE session_id < x'' {beyond}
    UNION ALL
    SELECT (SELECT min(session_id) FROM {messages} WHERE session_id < x'' AND session_id > stepped.session_id)
    FROM stepped WHERE session_id IS NOT NULL
)
SELECT session_id FROM stepped WHERE session_id IS NOT NULL LIMIT :limit
"""
FOUND = """
WITH wanted(session_id) AS (VALUES {wanted})
SELECT wanted.session_id, s.created_at, s.updated_at, last.id, last.created_at
FROM wanted
LEFT JOIN {sessions} AS s ON s.session_id = wanted.session_id
LEFT JOIN {messages} AS last
  ON last.id = (SELECT id FROM {messages} WHERE session_id = wanted.session_id ORDER BY id DESC LIMIT 1)
"""

COUNTS = """
WITH wanted(session_id) AS (VALUES {wanted})
SELECT wanted.session_id, EXISTS (SELECT 1 FROM {sessions} AS s WHERE s.session_id = wanted.session_id),
       (SELECT count(*) FROM (SELECT 1 FROM {messages} AS m WHERE m.session_id = wanted.session_id LIMIT {cap}))
FROM wanted
"""
HEADS = """
WITH wanted(session_id) AS (VALUES {wanted})
SELECT m.session_id, substr(m.message_data, 1, {head})
FROM wanted
JOIN {messages} AS m
  ON m.id IN (SELECT id FROM {messages} WHERE session_id = wanted.session_id ORDER BY id LIMIT {items})
ORDER BY m.id
"""

DELETE_NEWEST = """
DELETE FROM {messages}
WHERE id IN (SELECT id FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) ORDER BY id DESC LIMIT :limit)
"""
DELETE_SESSION = "DELETE FROM {sessions} WHERE session_id = CAST(:session_id AS TEXT)"
STORED = "SELECT message_data FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id = :id"
REPLACE = (
    "UPDATE {messages} SET message_data = CAST(:text AS TEXT) WHERE session_id = CAST(:session_id AS TEXT) AND id = :id"
)
DELETE_ITEM = "DELETE FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) AND id = :id"

# Of this session alone: in a file of several pairs of tables the numbers of their items are the same.
DELETE_STRUCTURE_OF_NEWEST = """
DELETE FROM message_structure WHERE session_id = CAST(:session_id AS TEXT) AND message_id IN (
    SELECT id FROM {messages} WHERE session_id = CAST(:session_id AS TEXT) ORDER BY id DESC LIMIT :limit
)
"""
DELETE_STRUCTURE_OF_ITEM = (
    "DELETE FROM message_structure WHERE session_id = CAST(:session_id AS TEXT) AND message_id = :id"
)
DELETE_USAGE_OF_EMPTY_TURNS = """
DELETE FROM turn_usage WHERE session_id = CAST(:session_id AS TEXT) AND NOT EXISTS (
    SELECT 1 FROM message_structure AS s
    WHERE s.session_id = turn_usage.session_id AND s.branch_id = turn_usage.branch_id
      AND s.user_turn_number = turn_usage.user_turn_number
)
"""
BEGIN_ANEW = """
INSERT INTO session_clear_generations (session_id, generation) VALUES (CAST(:session_id AS TEXT), 1)
ON CONFLICT (session_id) DO UPDATE SET generation = generation + 1
"""
