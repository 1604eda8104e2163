"""Triggers that keep out what is of an erased session or about an erased subject."""

from __future__ import annotations

import pgtrigger

from memadmin.audit.log.triggers import Calling


def not_of_erased(function: str, *columns: str) -> list[Calling]:
    """Triggers that call a function for new rows, and for those that get another source by these columns."""
    before, after = (f"ROW({', '.join(f'{row}.{column}' for column in columns)})" for row in ("OLD", "NEW"))
    return [
        Calling("not_of_erased", function, before="INSERT", level=pgtrigger.Row),
        Calling(
            "not_to_erased",
            function,
            before="UPDATE",
            level=pgtrigger.Row,
            condition=pgtrigger.Condition(f"{before} IS DISTINCT FROM {after}"),
        ),
    ]
