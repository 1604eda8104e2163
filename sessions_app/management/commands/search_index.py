"""`search_index`: builds, drops or describes the full-text index of a store."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memadmin import audit
from sessions_app import audit_events, registry
from sessions_app.models import SessionStore
from sessions_app.search.indexes import NONE_OF_THIS_KIND, sentence_about
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.search_protocol import IndexNotPossible, IndexState, SearchIndex


class Command(BaseCommand):
    help = (
        "Reports whether a store has a full-text index for searches in messages, and its size. Without one, a search"
        " reads sessions from the newest on, for a few seconds. The index is built while agents run; it needs about"
        " half the disk space of the items and slows the agents' writes a little."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the store, for example main")
        verb = parser.add_mutually_exclusive_group()
        verb.add_argument("--create", action="store_true", help="build the index; an interrupted build starts again")
        verb.add_argument("--drop", action="store_true", help="drop the index; searches read sessions again")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object, for scripts")

    def handle(self, *, name: str, create: bool, drop: bool, as_json: bool, **options: Any) -> None:
        seconds = None
        try:
            store = registry.known_store(name)
            word_index = backend_for(store).word_index
            if word_index is None:
                raise IndexNotPossible(f"{store}: {NONE_OF_THIS_KIND}")
            before = word_index.state()
            if create:
                self.write_notice(before, as_json)
                seconds = word_index.create()
                audit.record_alone(audit_events.SEARCH_INDEX_BUILT, target=store)
            elif drop:
                word_index.drop()
                audit.record_alone(audit_events.SEARCH_INDEX_DROPPED, target=store)
            index = word_index.state()
        except (IndexNotPossible, StoreUnavailable, registry.UnknownStore) as refusal:
            raise CommandError(str(refusal)) from refusal
        if as_json:
            self.stdout.write(json.dumps(summary(store, index, seconds), indent=2))
            return
        self.stdout.write(f"{store}: {sentence_about(index)}")
        if seconds is not None:
            was = "its statistics were updated" if before.is_ready else "it was built"
            self.stdout.write(f"{was.capitalize()} in {seconds:.1f} s.")

    def write_notice(self, index: SearchIndex, as_json: bool) -> None:
        if as_json or index.is_ready:
            return
        if index.state == IndexState.INVALID:
            self.stdout.write("An earlier build was interrupted. Its remains are dropped and the index is built again.")
        self.stdout.write(
            "Building. Agents can go on writing. The build waits for all transactions that are open now, and takes"
            " about a minute per million items."
        )


def summary(store: SessionStore, index: SearchIndex, seconds: float | None) -> dict[str, object]:
    """The JSON object for scripts: keys are added, never renamed."""
    return {
        "store": store.name,
        "state": index.state.value,
        "index": index.name,
        "size_bytes": index.size_bytes,
        "built_in_seconds": None if seconds is None else round(seconds, 1),
    }
