"""The SQL function behind the search in message text: what it finds in an item, and that nothing makes it fail."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.search_syntax import ParsedSearch, item_words
from tests.agents import database_role, run_sql, second_connection, value_of

pytestmark = pytest.mark.django_db

SDK_ITEMS = Path(__file__).parents[2] / "data" / "sdk-items.jsonl"


def words(stored: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tsvector_to_array(memadmin_item_words(%s))", [stored])
        return set(cursor.fetchone()[0])


def notices_of(stored: str) -> list[str]:
    """What PostgreSQL tells the writer while it reads the words of an item."""
    heard: list[str] = []
    connection.ensure_connection()
    connection.connection.add_notice_handler(handler := lambda notice: heard.append(notice.message_primary))
    try:
        words(stored)
    finally:
        connection.connection.remove_notice_handler(handler)
    return heard


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (json.dumps({"content": "Zürich, s'il vous plaît", "role": "user"}), {"zürich", "s", "il", "vous", "plaît"}),
        (json.dumps({"content": "Zürich", "role": "user"}, ensure_ascii=False), {"zürich"}),
        ('{"content":"line one\\nline two\\tend","role":"user"}', {"line", "one", "two", "end"}),
        # A tool's output is often JSON inside of JSON.
        (json.dumps({"output": json.dumps({"name": "José", "note": "a\nb"})}), {"name", "josé", "note", "a", "b"}),
        (json.dumps({"content": "T-90420, order/123, jane@shop.example"}), {"t", "90420", "order", "123"}),
        (json.dumps({"content": "<b>bold</b> Tom &amp; Jerry"}), {"b", "bold", "tom", "amp", "jerry"}),
        (json.dumps({"content": "東京タワー"}), set("東京タワー")),
        (json.dumps({"content": "“Quoted”—dash…"}), {"quoted", "dash"}),
        (json.dumps({"content": "\N{GRINNING FACE} smile"}), {"smile"}),
        ('{"content": "half \\ud83d, null \\u0000, caf\\u00e9 \\ude00 end"}', {"half", "null", "café", "end"}),
        ("not JSON at all, café", {"not", "json", "at", "all", "café"}),
        ('{"content": "cut off in the mid', {"cut", "off", "in", "the", "mid"}),
        ('{"content": "a bad escape \\x and \\', {"a", "bad", "escape", "x", "and"}),
        ("[" * 100_000 + '"deep"' + "]" * 100_000, {"deep"}),
        ("", set()),
    ],
)
def test_what_was_said_is_found(stored: str, found: set[str]) -> None:
    assert found <= words(stored)
    assert found <= set(item_words(stored))


def test_what_the_sdk_says_of_every_item_is_not(db: None) -> None:
    spoken: dict[str, object] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    spoken |= {"content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}]}

    for stored in (json.dumps(spoken), json.dumps(spoken, separators=(",", ":"))):
        assert words(stored) == set(item_words(stored)) == {"msg", "1", "hello"}


def test_a_word_of_the_sdk_is_found_where_a_person_said_it() -> None:
    assert {"the", "user", "completed", "role"} <= words(
        json.dumps({"role": "user", "content": 'the user completed "role": '})
    )


@pytest.mark.parametrize(
    "stored",
    [
        '{"__enc__":1,"v":1,"kid":"hkdf-v1","payload":"gAAAAABvery secret"}',
        '{"v": 1, "kid": "hkdf-v1", "__enc__": 1, "payload": "gAAAAAB"}',
    ],
)
def test_an_encrypted_item_has_no_words(stored: str) -> None:
    assert words(stored) == set(item_words(stored)) == set()


def test_a_picture_has_no_words() -> None:
    picture = base64.b64encode(random.Random(1).randbytes(30_000)).decode()
    assert words(json.dumps({"type": "image_generation_call", "result": picture})) == {"image", "generation", "call"}


@pytest.mark.parametrize(
    "stored",
    [
        " ".join(f"word{number:07}" for number in range(170_000)),
        " ".join(chr(0x4E00 + number % 20_000) for number in range(700_000)),
        " ".join(f"\N{GREEK SMALL LETTER OMEGA}{number:x}" for number in range(200_000)),
        json.dumps({"content": " ".join(f"é{number:x}" for number in range(200_000))}),
        "-".join(f"{number:x}." for number in range(300_000)),
        "/".join(f"{number:x}.example" for number in range(200_000)),
    ],
    ids=["words", "signs", "letters", "escapes", "hyphens", "paths"],
)
def test_two_megabytes_of_different_words_do_not_fail(stored: str) -> None:
    """PostgreSQL refuses to hold the words of such an item in one value; the naive expression fails the INSERT."""
    assert len(stored) > 1_000_000
    assert words(stored)


@pytest.mark.parametrize(
    "stored",
    [
        "a" * 3_000,
        "éa" * 2_000,
        "─ " * 2_000,
        '{\\"a\\":1},' * 999,
        "é" * 3_000,
        "=" * 5_000,
        " " * 5_000,
        "─" * 5_000,
        "http://x.example/" + "a/" * 3_000,
        "한" * 4_000,
    ],
)
def test_words_without_end_are_left_out_in_silence(stored: str) -> None:
    assert notices_of(stored) == []


def test_every_item_the_sdk_can_store_is_read_the_same_by_who_reads_without_postgresql() -> None:
    for line in SDK_ITEMS.read_text().splitlines():
        stored = json.dumps(json.loads(line)["item"])
        assert set(item_words(stored)) == words(stored)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.sampled_from(
                ["\\", '"', "\\u", "\\ud83d", "\\ude00", "\\u0000", "\\uFFFF", "\\\\u00e9", "\\n", "{", "<!--"]
            ),
            st.builds(
                lambda text, times: text * times,
                st.text("ab é=-/.@\\u0dD8", min_size=1, max_size=4),
                st.integers(1, 999),
            ),
        )
    ).map("".join)
)
def test_nothing_makes_it_fail_or_complain(db: None, stored: str) -> None:
    assert notices_of(stored) == []


@pytest.mark.django_db(transaction=True)
def test_an_agent_with_no_rights_but_on_its_tables_writes_with_the_index() -> None:
    run_sql("CREATE TABLE diary (message_data text)")
    run_sql("CREATE INDEX ON diary USING gin (memadmin_item_words(message_data::text))")
    try:
        with database_role("diarist") as diarist, second_connection() as agent:
            run_sql(f"GRANT INSERT ON diary TO {diarist}")
            agent.execute(f"SET ROLE {diarist}; SET search_path TO ''")
            table = agent.execute("SELECT 'public.diary'::regclass::oid").fetchone()
            assert table
            agent.execute('INSERT INTO public.diary VALUES (\'{"content":"caf\\u00e9"}\')')
            agent.commit()
        assert value_of("SELECT count(*) FROM diary WHERE memadmin_item_words(message_data::text) @@ 'café'") == 1
    finally:
        run_sql("DROP TABLE diary")


@pytest.mark.django_db(transaction=True)
def test_the_naive_expression_would_fail_the_agent() -> None:
    """Why there is a function at all: without it this INSERT, and with it the agent's run, fails."""
    run_sql("CREATE TABLE diary (message_data text)")
    run_sql("CREATE INDEX ON diary USING gin (to_tsvector('simple', message_data))")
    stored = " ".join(f"word{number:07}" for number in range(170_000))
    try:
        with second_connection() as agent, pytest.raises(psycopg.errors.ProgramLimitExceeded):
            agent.execute("INSERT INTO diary VALUES (%s)", [stored])
    finally:
        run_sql("DROP TABLE diary")


PIECES = [
    "refund",
    "REFUND",
    "card",
    "t 90420",
    " ",
    " ",
    ", ",
    ".",
    ";",
    "(",
    ")",
    '"',
    "\n",
    "\t",
    "-",
    "_",
    "/",
    "\\",
]
PIECES += [
    "<",
    ">",
    "&amp;",
    "@",
    ":",
    "=",
    "é",
    "\u2014",
    "東",
    '"refund": ',
    '"message"',
    "x" * 250,
    "1e5",
    "%",
    "'",
    "+",
]


@given(
    st.sampled_from(["refund", "refund card", '"refund card"', "card or T-90420", "90420", "refund -card", "message"]),
    st.sampled_from(
        ['{{"content":{}}}', '{{"refund card": {}}}', "[{}, 1]", "no JSON: {}", '{{"refund":{{"card":{}}}}}']
    ),
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_plainly_said_needs_no_closer_look(typed: str, form: str, text: str) -> None:
    """The expressions that spare a search the words of an item find nothing that its words are not."""
    parsed, stored = ParsedSearch.parse(typed), form.format(json.dumps(text))
    plain = list(filter(None, parsed.plain_patterns()))
    expressions = [expression for alternative in plain for expression in alternative]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memadmin_item_words(%s) @@ websearch_to_tsquery('simple', %s),"
            " ARRAY(SELECT %s ~* pattern FROM unnest(%s::text[]) AS pattern)",
            [stored, str(parsed), stored, expressions],
        )
        says_so, answers = cursor.fetchone()
    is_found = dict(zip(expressions, answers, strict=True))
    assert says_so or not any(all(map(is_found.get, alternative)) for alternative in plain)


def test_what_is_left_out_is_always_looked_for_closely() -> None:
    assert ParsedSearch.parse("refund -card or tea").plain_patterns() == [[], ['[ "(]tea[ ,.;!?]']]
