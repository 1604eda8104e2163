"""Lines against the database: which subject each means, and what is in its way. A few queries for any number."""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import connection

from memadmin.erasure.batches.parsing import ParsedLine
from memadmin.erasure.batches.sealed import LineText
from memadmin.erasure.models import BatchLine, SubjectRequest
from memadmin.retention.models import LegalHold
from sessions_app.models import Subject, SubjectAlias

Problem = BatchLine.Problem

MOST_SUGGESTIONS = 20
"""Unknown keys for which a similar one is looked for."""
LONGEST_SUGGESTED = 40

# The subject in which each merged one ends.
MERGE_TARGETS = """
WITH RECURSIVE line(start, id, into_id) AS (
    SELECT id, id, merged_into_id FROM sessions_app_subject WHERE id = ANY (%s)
    UNION ALL
    SELECT line.start, s.id, s.merged_into_id FROM line JOIN sessions_app_subject AS s ON s.id = line.into_id
)
SELECT start, id FROM line WHERE into_id IS NULL
"""

# The first hold on each subject or on one that was merged into it.
FIRST_HOLDS = """
WITH RECURSIVE member(root, id) AS (
    SELECT id, id FROM unnest(%s::uuid[]) AS id
    UNION
    SELECT member.root, s.id FROM member JOIN sessions_app_subject AS s ON s.merged_into_id = member.id
)
SELECT root, min(number) FROM member, memadmin_holds_on(NULL, member.id, '{}') AS number GROUP BY root
"""


@dataclass(frozen=True, slots=True)
class CheckedLine:
    number: int
    text: LineText
    subject_id: UUID | None = None
    problem: str = ""
    other: int | None = None


def check_lines(lines: Iterable[ParsedLine], taken: Mapping[UUID, int] | None = None) -> list[CheckedLine]:
    """Each line with its subject or its problem. `taken` are subjects of other lines of the batch, with their numbers.

    At most seven queries.
    """
    lines = list(lines)
    readable = [line for line in lines if not line.problem]
    known = {
        (kind, key): (subject_id, merged)
        for kind, key, subject_id, merged in SubjectAlias.objects.filter(
            key__in={line.text.key for line in readable}
        ).values_list("kind", "key", "subject_id", "subject__merged_into_id")
    }
    found = {line.number: known.get((line.text.kind, line.text.key)) for line in readable}
    standing = {subject_id for subject_id, merged in filter(None, found.values()) if merged is None}
    targets = merge_targets([subject_id for subject_id, merged in filter(None, found.values()) if merged])
    similar = similar_keys([line.text for line in readable if not found[line.number]])
    open_cases = dict(
        SubjectRequest.objects.open()
        .filter(kind=SubjectRequest.Kind.ERASURE, subject_id__in=standing)
        .order_by()
        .values_list("subject_id", "number")
    )
    holds = first_holds(standing)
    first_lines = dict(taken or {})
    checked = []
    for line in lines:
        result = CheckedLine(line.number, line.text, problem=line.problem)
        if not line.problem:
            match = found[line.number]
            if match is None:
                suggested = replace(line.text, other_key=similar.get(line.text.key, ""))
                result = replace(result, problem=Problem.UNKNOWN, text=suggested)
            elif match[1]:
                merged = replace(line.text, other_key=targets[match[0]])
                result = replace(result, problem=Problem.MERGED, text=merged)
            else:
                subject_id = match[0]
                result = replace(result, subject_id=subject_id)
                for problem, others in (
                    (Problem.DUPLICATE, first_lines),
                    (Problem.OPEN, open_cases),
                    (Problem.HELD, holds),
                ):
                    if subject_id in others:
                        result = replace(result, problem=problem, other=others[subject_id])
                        break
                first_lines.setdefault(subject_id, line.number)
        checked.append(result)
    return checked


def merge_targets(subject_ids: Collection[UUID]) -> dict[UUID, str]:
    """Label of the subject in which each of these merged ones ends. Two queries, and none without ids."""
    if not subject_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(MERGE_TARGETS, [list(subject_ids)])
        ends = dict(cursor.fetchall())
    labels = Subject.objects.labels(set(ends.values()))
    return {subject_id: labels.get(end, "") for subject_id, end in ends.items()}


def first_holds(subject_ids: Collection[UUID]) -> dict[UUID, int]:
    """Number of the first hold on each subject that has one. At most two queries."""
    if not subject_ids or not LegalHold.objects.in_force().exists():
        return {}
    with connection.cursor() as cursor:
        cursor.execute(FIRST_HOLDS, [list(subject_ids)])
        return dict(cursor.fetchall())


def similar_keys(unknown: Iterable[LineText]) -> dict[str, str]:
    """A key that exists for each unknown one that differs from it by one typing mistake. At most one query.

    Only for the first of many: a file of another system has no line that exists.
    """
    texts = [text for text in unknown if len(text.key) <= LONGEST_SUGGESTED][:MOST_SUGGESTIONS]
    if not texts:
        return {}
    variants: dict[tuple[str, str], str] = {}
    for text in texts:
        for variant in one_mistake_away(text.key):
            variants.setdefault((text.kind, variant), text.key)
    existing = SubjectAlias.objects.filter(key__in={key for _, key in variants}).order_by("key")
    found: dict[str, str] = {}
    for kind, key in existing.values_list("kind", "key"):
        if (kind, key) in variants:
            found.setdefault(variants[kind, key], key)
    return found


def one_mistake_away(key: str) -> set[str]:
    """Every text that becomes this one by one missing, added, wrong or exchanged character."""
    alphabet = sorted({*key, *string.ascii_lowercase, *string.digits, "-", "_", "."})
    cuts = [(key[:place], key[place:]) for place in range(len(key) + 1)]
    variants = {before + after[1:] for before, after in cuts if after}
    variants |= {before + after[1] + after[0] + after[2:] for before, after in cuts if len(after) > 1}
    variants |= {before + char + after[1:] for before, after in cuts if after for char in alphabet}
    variants |= {before + char + after for before, after in cuts for char in alphabet}
    return variants - {key, ""}
