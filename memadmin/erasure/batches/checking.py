"""Check of parsed lines against the database: the subject of each, or its problem. A few queries for any number."""

from __future__ import annotations

import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from django.db import connection

from memadmin.erasure.batches.parsing import SEPARATORS, ParsedLine
from memadmin.erasure.batches.sealed import LineText, seal
from memadmin.erasure.models import BatchLine, SubjectRequest
from memadmin.retention.models import LegalHold
from sessions_app.models import Subject, SubjectAlias

Problem = BatchLine.Problem

MOST_SUGGESTIONS = 20
"""Unknown keys for which a similar one is looked for."""
LONGEST_SUGGESTED = 40

# The first hold on each subject or on one that was merged into it.
FIRST_HOLDS = """
WITH RECURSIVE member(root, id) AS (
    SELECT id, id FROM unnest(%s::uuid[]) AS id
    UNION
    SELECT member.root, s.id FROM member JOIN sessions_app_subject AS s ON s.merged_into_id = member.id
)
SELECT root, min(number) FROM member, memadmin_holds_on(NULL, member.id, '{}') AS number GROUP BY root
"""


def check_lines(lines: Sequence[ParsedLine], taken: Mapping[UUID, int] | None = None) -> list[BatchLine]:
    """Rows to store, without their batch: each line with its subject or its problem. `taken` are subjects of other
    lines of the batch, with their numbers.

    At most seven queries.
    """
    readable = [line for line in lines if not line.problem]
    aliases = SubjectAlias.objects.filter(key__in={line.text.key for line in readable}).select_related("subject")
    known = {(alias.kind, alias.key): alias.subject for alias in aliases}
    subjects = {line.number: known.get((line.text.kind, line.text.key)) for line in readable}
    standing = {subject.pk for subject in subjects.values() if subject and subject.merged_into_id is None}
    # The problem of a merged subject names the remaining one, which a request would be about.
    into = Subject.objects.labels({each.merged_into_id for each in subjects.values() if each and each.merged_into_id})
    similar = similar_keys([line.text for line in readable if subjects[line.number] is None])
    open_cases = SubjectRequest.objects.open().filter(kind=SubjectRequest.Kind.ERASURE, subject_id__in=standing)
    first_lines = dict(taken or {})
    obstacles = {
        Problem.DUPLICATE: first_lines,
        Problem.OPEN: dict(open_cases.order_by().values_list("subject_id", "number")),
        Problem.HELD: first_holds(standing),
    }
    checked = []
    for line in lines:
        row, text = BatchLine(number=line.number, problem=line.problem), line.text
        if not line.problem:
            subject = subjects[line.number]
            if subject is None:
                is_cut = any(separator in text.key for separator in SEPARATORS)
                row.problem = Problem.SEPARATORS if is_cut else Problem.UNKNOWN
                text = replace(text, other_key=similar.get(text.key, ""))
            elif subject.merged_into_id:
                row.problem = Problem.MERGED
                text = replace(text, other_key=into.get(subject.merged_into_id, ""))
            else:
                row.subject = subject
                for problem, others in obstacles.items():
                    if subject.pk in others:
                        row.problem, row.other = problem, others[subject.pk]
                        break
                first_lines.setdefault(subject.pk, line.number)
        row.sealed = seal(text)
        checked.append(row)
    return checked


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
