"""Pieces of addresses that several pages build."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import quote, urlencode


def quoted(text: str) -> str:
    """For one piece of an address, be it of the path or of the query."""
    return quote(text, safe="")


def at_item(address: str, item_id: str, query: Mapping[str, str] = MappingProxyType({})) -> str:
    """Where an item stands on the page of its session: `{{ record.get_absolute_url|at_item:item.id }}`."""
    before = f"{urlencode(query)}&" if query else ""
    return f"{address}?{before}item={quoted(item_id)}#item-{item_id}"
