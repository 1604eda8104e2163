"""Conversations are found in JSON and JSON Lines, gzipped or not, and what cannot be read is named by its line."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest

from memadmin import json_files
from memadmin.json_files import UnreadableValue
from sessions_app.transcripts.parsing import Conversation, parse_conversations
from tests.cases import for_each

SAID = [{"role": "user", "content": "Où est ma commande?"}]


def read(content: bytes) -> list[Conversation | UnreadableValue]:
    return list(parse_conversations(io.BufferedReader(io.BytesIO(content))))


def sessions(content: bytes) -> list[tuple[int, str]]:
    found = read(content)
    assert all(isinstance(entry, Conversation) for entry in found), found
    return [(entry.line, entry.session_id) for entry in found if isinstance(entry, Conversation)]


def line(session: object = "s1", **fields: Any) -> bytes:
    return json.dumps({"session": session, "messages": SAID, **fields}, ensure_ascii=False).encode()


FORMS = {
    "lines": (line("a") + b"\n" + line("b") + b"\n", [(1, "a"), (2, "b")]),
    "lines without a last line break": (line("a") + b"\n" + line("b"), [(1, "a"), (2, "b")]),
    "lines from Windows, with a mark and blank lines": (
        b"\xef\xbb\xbf\r\n" + line("a") + b"\r\n\r\n  \r\n" + line("b") + b"\r\n",
        [(2, "a"), (5, "b")],
    ),
    "an array on one line": (b"[" + line("a") + b"," + line("b") + b"]", [(1, "a"), (1, "b")]),
    "an array over lines": (b"[\n" + line("a") + b",\n\n" + line("b") + b"\n]\n", [(2, "a"), (4, "b")]),
    "an indented array, with a mark": (
        b"\xef\xbb\xbf\n"
        + json.dumps([json.loads(line("a")), json.loads(line("b"))], indent=2, ensure_ascii=False).encode(),
        [(3, "a"), (12, "b")],
    ),
    "one conversation over lines": (json.dumps(json.loads(line("a")), indent=2).encode(), [(1, "a")]),
    "an empty array": (b"[]", []),
    "an empty array over lines": (b"[\n]\n", []),
    "nothing": (b"", []),
    "blank lines": (b"\n \n", []),
}


@for_each(("content", "expected"), FORMS.values(), ids=FORMS.keys())
def test_every_form_is_read_plain_and_compressed(content: bytes, expected: list[tuple[int, str]]) -> None:
    assert sessions(content) == expected
    assert sessions(gzip.compress(content)) == expected


@for_each("key", ["session_id", "session", "conversation_id", "id"])
def test_a_session_is_named_by_any_usual_key(key: str) -> None:
    assert sessions(json.dumps({key: 48213, "messages": SAID}).encode()) == [(1, "48213")]


def test_what_stands_beside_the_messages_is_kept() -> None:
    [entry] = read(line(user="cust_48213"))
    assert isinstance(entry, Conversation)
    assert entry.fields["user"] == "cust_48213"


@for_each("indent", [None, 2])
def test_a_bare_list_of_messages_is_one_conversation(indent: int | None) -> None:
    [entry] = read(json.dumps(SAID * 3, indent=indent).encode())
    assert isinstance(entry, Conversation)
    assert len(entry.messages) == 3


def test_a_session_without_a_name_gets_the_same_id_every_time_and_its_own() -> None:
    nameless = [
        json.dumps({"messages": SAID}).encode(),
        json.dumps({"messages": SAID, "user": "other"}).encode(),
        json.dumps({"messages": SAID * 2}).encode(),
    ]
    first, again = sessions(b"\n".join(nameless)), sessions(b"\n".join(nameless))
    assert first == again
    assert len({session_id for _, session_id in first}) == 3
    assert all(session_id.startswith("import:") for _, session_id in first)


def test_bad_lines_are_named_and_the_others_read() -> None:
    found = read(
        b"\n".join(
            [
                b'{"session": "cut',
                line("a"),
                b'{"session": "\xff\xfe", "messages": []}',
                b"42",
                b'{"session": "no messages"}',
                b'{"session": "empty", "messages": []}',
                b'{"session": true, "messages": [{}]}',
                b'{"session": "n\\u0000ul", "messages": [{}]}',
                b'{"session": "half \\ud800", "messages": [{}]}',
                b'{"session": "x", "messages": [NaN]}',
                b"[" * 100_000,
                line("b"),
                b'{"session": "c", "messages": [{"role": "us',
            ]
        )
    )
    assert [entry.line for entry in found] == list(range(1, 14))
    assert {entry.line: entry.reason for entry in found if isinstance(entry, UnreadableValue)} == {
        1: "not JSON: Unterminated string starting at (column 13)",
        3: "not UTF-8",
        4: "neither a conversation with messages nor an array of messages",
        5: "neither a conversation with messages nor an array of messages",
        6: "the conversation has no messages",
        7: "its session id is neither text nor a number",
        8: "its session id has a character that no database can store",
        9: "its session id has a character that no database can store",
        10: "not JSON: NaN is not a number",
        11: "nested too deeply",
        13: "not JSON: Unterminated string starting at (column 40)",
    }


def test_an_array_that_is_cut_off_gives_what_stands_before_the_cut() -> None:
    first, second = read(b"[\n" + line("a") + b",\n" + line("b")[:-9])
    assert isinstance(first, Conversation)
    assert second == UnreadableValue(
        3, "not JSON: Unterminated string starting at; the rest of the array cannot be read"
    )


def test_an_array_without_its_end_is_named() -> None:
    *_, last = read(b"[\n" + line("a") + b"\n" + line("b") + b"\n]")
    assert last == UnreadableValue(3, "not JSON: the array does not go on or end here")


def test_one_element_with_bad_bytes_does_not_end_the_array() -> None:
    found = read(b'[\n{"session": "\xff", "messages": [{}]},\n' + line("b") + b"\n]")
    assert found[0] == UnreadableValue(2, "not UTF-8")
    assert [entry.session_id for entry in found[1:] if isinstance(entry, Conversation)] == ["b"]


def test_a_list_of_messages_that_is_cut_off_is_not_imported_by_halves() -> None:
    [entry] = read(json.dumps(SAID * 3, indent=1).encode()[:-20])
    assert isinstance(entry, UnreadableValue)


def test_a_damaged_gzip_file_gives_what_can_be_unpacked() -> None:
    lines = b"".join(line(f"s{number}", noise="x" * number) + b"\n" for number in range(5_000))
    found = read(gzip.compress(lines)[:-40])
    assert isinstance(found[0], Conversation)
    assert found[-1] == UnreadableValue(len(found), "the compressed file is damaged or cut off from here on")


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "compressed"])
def test_an_endless_line_is_named_and_not_held(monkeypatch: pytest.MonkeyPatch, place: int, pack: Any) -> None:
    monkeypatch.setattr(json_files, "LONGEST_LINE_BYTES", 1024**2)
    lines = [line("a"), line("b")]
    lines.insert(place, line("x" * 2 * 1024**2))
    found = read(pack(b"\n".join(lines)))
    assert found[place] == UnreadableValue(place + 1, "longer than 1 MB")
    assert [entry.session_id for entry in found if isinstance(entry, Conversation)] == ["a", "b"]


def test_a_line_of_ten_megabytes_is_a_line() -> None:
    huge = json.dumps({"id": "huge", "messages": [{"role": "user", "content": "x" * 10_000_000}]}).encode()
    assert sessions(huge + b"\n" + line("b")) == [(1, "huge"), (2, "b")]
