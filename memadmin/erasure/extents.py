"""Extents: which subjects, IDs and sessions one approval covers, as digests."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection

# Sessions that agents begin after the moment are left out, and those that a person attaches are not.
EXTENTS = """
WITH RECURSIVE member(root, id) AS (
    SELECT id, id FROM unnest(%(subjects)s::uuid[]) AS id
    UNION
    SELECT member.root, s.id FROM member JOIN sessions_app_subject AS s ON s.merged_into_id = member.id
), part(root, text) AS (
    SELECT root, concat('subject ', id, ' in ', s.merged_into_id) FROM member JOIN sessions_app_subject AS s USING (id)
    UNION ALL
    SELECT root, concat('id ', a.id) FROM member JOIN sessions_app_subjectalias AS a ON a.subject_id = member.id
    UNION ALL
    SELECT root, concat('session ', r.id) FROM member JOIN sessions_app_sessionrecord AS r ON r.subject_id = member.id
    WHERE r.registered_at <= %(at)s OR r.subject_source = 'operator'
)
SELECT root, encode(sha256(convert_to(string_agg(text, ',' ORDER BY text COLLATE "C"), 'UTF8')), 'hex')
FROM part GROUP BY root
"""


def extents_of(subject_ids: Collection[UUID], at: datetime) -> dict[UUID, str]:
    """Digest of what each subject covers as of a moment: its merged group, their IDs and sessions. One query.

    What agents add later under these IDs is not part of it, and is erased all the same.
    """
    with connection.cursor() as cursor:
        cursor.execute(EXTENTS, {"subjects": list(subject_ids), "at": at})
        return dict(cursor.fetchall())
