"""Parts of addresses used by several pages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import urlencode
from uuid import UUID


def at_item(address: str, item_id: str, query: Mapping[str, str] = MappingProxyType({})) -> str:
    """Address of an item on the page of its session: `{{ record.get_absolute_url|at_item:item.id }}`."""
    return f"{address}?{urlencode({**query, 'item': item_id})}#item-{item_id}"


def uuid_in(text: str) -> UUID | None:
    """The UUID that a parameter of an address says; None if it says none."""
    try:
        return UUID(text)
    except ValueError:
        return None
