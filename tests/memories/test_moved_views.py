"""The migration that makes saved views of the review queue saved views of every list."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.people import person

BEFORE = [("memories_app", "0008_oldest_signals_and_recalls")]
AFTER = [("memories_app", "0009_saved_views_of_all_lists")]


@pytest.mark.django_db(transaction=True)
def test_saved_views_of_the_queue_are_kept_both_ways() -> None:
    owner = person("reviewer")
    back = MigrationExecutor(connection)
    old = back.migrate(BEFORE).apps
    try:
        old.get_model("memories_app", "SavedView").objects.create(owner_id=owner.pk, name="Risky", query="risk=any")
    finally:
        new = MigrationExecutor(connection).migrate(AFTER).apps
        # Later migrations were undone, too.
        latest = MigrationExecutor(connection)
        latest.migrate(latest.loader.graph.leaf_nodes("memories_app"))
    views = new.get_model("home", "SavedView").objects
    assert list(views.values_list("owner", "list_name", "name", "query", "is_default")) == [
        (owner.pk, "reviews-list", "Risky", "risk=any", False)
    ]
