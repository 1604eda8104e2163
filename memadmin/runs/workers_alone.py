"""Triggers for columns that workers alone write, because they sign what is in them."""

from __future__ import annotations

from collections.abc import Collection

import pgtrigger

from memadmin.audit.log.triggers import Calling


def workers_alone(
    name: str,
    columns: Collection[str],
    *,
    may_be_emptied: Collection[str] = (),
    operations: Collection[str] = ("INSERT", "UPDATE"),
    condition: str = "",
) -> list[Calling]:
    """Triggers for a model's `Meta.triggers`: the web server's role adds rows in which these columns are empty, and
    does not change them afterwards.

    It may empty some. Arguments are names of columns in the database.
    """
    arguments = ", ".join(f"'{','.join(each)}'" for each in (columns, may_be_emptied))
    return [
        Calling(
            f"{name}_{operation.lower()}",
            f"memadmin_workers_alone({arguments})",
            before=operation,
            level=pgtrigger.Row,
            condition=pgtrigger.Condition(condition) if condition else None,
        )
        for operation in operations
    ]
