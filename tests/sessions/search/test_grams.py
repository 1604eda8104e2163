"""The pieces by which part of a subject's key or of a ticket is found."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.django_db

AS_INDEXED_AT_FIRST = """
SELECT array_agg(DISTINCT substr(lower(left(%(value)s::text, 200)), place, 3))
FROM generate_series(1, greatest(length(left(%(value)s::text, 200)) - 2, 1)) AS place
"""


def grams_by(query: str, value: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"value": value})
        (grams,) = cursor.fetchone()
    return sorted(grams)


# Texts that PostgreSQL can keep.
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=220) | st.text("aAb1-", max_size=220))
@example("")
@example("TCK-4711")
@example("aaaaaa")
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_they_are_those_of_the_first_release(value: str) -> None:
    """The indexes of running installations hold those, and are not built anew."""
    assert grams_by("SELECT memadmin_grams(%(value)s::text)", value) == grams_by(AS_INDEXED_AT_FIRST, value)


PLANTED = """
CREATE SCHEMA stranger;
CREATE FUNCTION stranger.planted(text[], text) RETURNS text[] LANGUAGE sql RETURN ARRAY['planted'];
CREATE OPERATOR stranger.|| (LEFTARG = text[], RIGHTARG = text, FUNCTION = stranger.planted);
CREATE FUNCTION stranger.lower(text) RETURNS text LANGUAGE sql RETURN 'planted';
"""


def test_no_function_of_a_stranger_has_a_part_in_them() -> None:
    """They are made for whoever searches and whoever writes, in the search_path of that person."""
    with connection.cursor() as cursor:
        cursor.execute(PLANTED)
        cursor.execute("SET LOCAL search_path = stranger, pg_catalog, public")
        cursor.execute("SELECT ARRAY['a'] || 'b'::text, lower('A'::text)")
        assert cursor.fetchone() == (["planted"], "planted")
        cursor.execute("SELECT memadmin_grams('TCK-1'), memadmin_grams('TCK-1' COLLATE \"C\")")
        assert cursor.fetchone() == (["tck", "ck-", "k-1"], ["tck", "ck-", "k-1"])
