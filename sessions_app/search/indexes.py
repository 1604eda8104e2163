"""The optional full-text index of a store, as a sentence for people."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from django.template.defaultfilters import filesizeformat

from sessions_app.models import SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.search_protocol import IndexState, SearchIndex

NONE_OF_THIS_KIND = "This kind of store has no search index; a search reads sessions one by one, newest first."


def sentence_about(index: SearchIndex) -> str:
    size = filesizeformat(index.size_bytes).replace("\xa0", " ")
    match index.state:
        case IndexState.ABSENT:
            to_do = " Run `search_index --create` to build it." if index.is_possible else ""
            return f"No search index; a search reads sessions one by one, newest first.{to_do}"
        case IndexState.BUILDING:
            progress = "" if index.percent_built is None else f", {index.percent_built} % of the table read"
            return f"The search index is being built{progress}."
        case IndexState.INVALID:
            return f"Incomplete search index of {size}, not used. Run `search_index --create` to build it again."
    return f"Search index ready, {size}."


def stores_without_index(stores: Iterable[SessionStore]) -> list[SessionStore]:
    """Those of which an index could be built and is not. A query for each; stores that do not respond are left out."""
    found = []
    for store in stores:
        with suppress(StoreUnavailable):
            if (index := backend_for(store).word_index) and index.state().is_missing:
                found.append(store)
    return found


def about_search_index(store: SessionStore) -> str:
    """Raises StoreUnavailable."""
    index = backend_for(store).word_index
    return sentence_about(index.state()) if index else NONE_OF_THIS_KIND
