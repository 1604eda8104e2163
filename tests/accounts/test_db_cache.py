"""What all processes know together."""

from __future__ import annotations

import pytest
from django.db import connection

from memadmin.accounts.db_cache import SWEPT, TableCache

pytestmark = pytest.mark.django_db


@pytest.fixture
def cache() -> TableCache:
    return TableCache("", {})


def age(*, seconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memadmin_cache SET expires_at = expires_at - make_interval(secs => %s)", [seconds])


def test_value_stays_until_its_end(cache: TableCache) -> None:
    cache.set("tries", [1.5, 2], 60)
    assert cache.get("tries") == [1.5, 2]
    age(seconds=61)
    assert cache.get("tries", "none") == "none"


def test_only_the_first_adds(cache: TableCache) -> None:
    assert cache.add("code", "used", 30)
    assert not cache.add("code", "again", 30)
    assert cache.get("code") == "used"
    age(seconds=31)
    assert cache.add("code", "later", 30)


def test_deleted_is_gone(cache: TableCache) -> None:
    cache.set("tries", [], 60)
    assert cache.delete("tries")
    assert not cache.delete("tries")


def test_what_expired_is_swept_and_what_lives_is_never_crowded_out(cache: TableCache) -> None:
    cache.set("alive", 1, 3600)
    for number in range(SWEPT):
        cache.set(f"short {number}", 1, 1)
    age(seconds=2)
    cache.set("fresh", 1, 60)
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM memadmin_cache ORDER BY key")
        assert [key.rsplit(":", 1)[1] for (key,) in cursor.fetchall()] == ["alive", "fresh"]


def test_reading_runs_no_code(cache: TableCache) -> None:
    """As unpickling would, for whoever can write a row."""
    cache.set("tries", 1, 60)
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM memadmin_cache")
        assert cursor.fetchone() == ("1",)
