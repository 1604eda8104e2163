"""Text goes out of every item that the SDK can store, and the item stays the one that it was."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.redaction import MARKER, InvalidText, TextToRedact, without_all_text, without_text
from sessions_app.redaction.items import KEPT, KEPT_WHOLE, WITHOUT_TEXT
from sessions_app.redaction.replay import is_input, keeps_its_place
from tests.cases import for_each
from tests.sessions.timeline.items import EXAMPLES

SECRET = 'Zügspitze-"4711"\n😀 end'
KEY = "sk-live-4711abc"


def stored(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def without(value: Any, text: str = KEY) -> Any:
    """The decoded item without the text; a string is its stored text."""
    raw = value if isinstance(value, str) else stored(value)
    return json.loads(without_text(raw, TextToRedact.parse(text)).raw)


def planted(value: Any, text: str, name: str = "") -> Any:
    """The item with the text in all its strings that are no ids, names or choices of words."""
    match value:
        case str() if name not in KEPT | KEPT_WHOLE | {
            "url",
            "image_url",
            "file_data",
            "result",
            "code",
            "data",
            "encrypted_content",
        }:
            return f"a {text} b"
        case dict() if name not in KEPT_WHOLE | {"schema", "parameters", "input_schema"}:
            return {key: planted(member, text, key) for key, member in value.items()}
        case list():
            return [planted(member, text, name) for member in value]
    return value


@for_each("example", EXAMPLES, ids=lambda example: example["variant"][:60])
def test_every_item_stays_what_it_is_to_the_sdk(example: Any) -> None:
    raw = stored(example["item"])
    redacted = without_all_text(raw)
    assert keeps_its_place(raw, redacted.raw)
    assert is_input(redacted.raw) or not is_input(raw)
    assert without_all_text(redacted.raw).places == 0, "it finds something in what is redacted already"


@for_each("example", EXAMPLES, ids=lambda example: example["variant"][:60])
def test_nothing_of_the_text_stays_in_any_item(example: Any) -> None:
    item = example["item"]
    if "__enc__" in item or (isinstance(item, dict) and item.get("type") in WITHOUT_TEXT):
        return
    raw = stored(planted(item, KEY))
    redacted = without_text(raw, TextToRedact.parse(KEY))
    assert KEY not in redacted.raw
    assert redacted.places == raw.count(KEY)
    assert keeps_its_place(raw, redacted.raw)
    everything = without_all_text(raw)
    assert KEY not in everything.raw
    assert keeps_its_place(raw, everything.raw)


def test_a_walk_that_forgets_a_kind_of_text_is_found() -> None:
    """What the tests above are worth: an output that is left out shows."""
    item = {"type": "function_call_output", "call_id": "call_1", "output": f"the key is {KEY}"}
    kept = without_text(stored({**item, "name": KEY, "output": "none"}), TextToRedact.parse(KEY))
    assert KEY in kept.raw, "a member that the walk leaves alone"
    assert (kept.places, kept.kept) == (0, 1)
    assert KEY not in without_text(stored(item), TextToRedact.parse(KEY)).raw


def test_ids_types_names_and_pairs_stay_whatever_is_looked_for() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": '{"q":"call_1 look_up"}'}
    assert without(call, "call_1") == {**call, "arguments": '{"q":"[redacted] look_up"}'}
    assert without(call, "look_up") == {**call, "arguments": '{"q":"call_1 [redacted]"}'}
    assert without(call, "function_call") == call
    assert without_text(stored(call), TextToRedact.parse("function_call")).kept == 1


@for_each("inside", ['{"p":"sk-live-4711abc","p":""}', '[{"p":"sk-live-4711abc","p":""}]'])
@for_each("name", ["arguments", "output"])
def test_a_member_that_occurs_twice_in_json_in_a_string_goes(name: str, inside: str) -> None:
    redacted = without_text(stored({"type": "other", name: inside}), TextToRedact.parse(KEY))
    assert redacted.places == 1
    assert KEY not in redacted.raw


@for_each("output", [{"phone": 491701234567}, [491701234567], {"491701234567": True}])
def test_what_stays_in_numbers_and_names_of_members_is_counted(output: Any) -> None:
    item = {"type": "function_call_output", "call_id": "c", "output": output}
    redacted = without_text(stored(item), TextToRedact.parse("491701234567"))
    assert (redacted.places, redacted.kept) == (0, 1)


@for_each(
    "spelled",
    [
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET)[1:-1].replace("\\u00fc", "\\u00FC").replace("\\ud83d\\ude00", "\\uD83D\\uDE00"),
        "".join(f"\\u{ord(each):04x}" if ord(each) < 0x10000 else "\\ud83d\\ude00" for each in SECRET),
        json.dumps(SECRET.replace("\n", "\r\n"))[1:-1],
        json.dumps("Zu\u0308gspitze" + SECRET[9:])[1:-1],
        json.dumps(json.dumps(SECRET))[3:-3],
        json.dumps(json.dumps(json.dumps(SECRET)))[7:-7],
    ],
    ids=["escaped", "as it is", "capital hex", "all escaped", "CRLF", "decomposed", "twice", "three times"],
)
def test_every_spelling_in_json_is_found(spelled: str) -> None:
    raw = f'{{"role":"user","content":"before {spelled} after"}}'
    assert json.loads(raw)
    assert without(raw, SECRET) == {"role": "user", "content": f"before {MARKER} after"}


def test_lines_of_a_form_are_those_that_were_stored() -> None:
    assert without({"role": "user", "content": "a\nb\nc"}, "a\r\nb")["content"] == f"{MARKER}\nc"


def test_arguments_stay_json() -> None:
    def arguments(text: str, wanted: str = KEY) -> str:
        call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": text}
        return str(without(call, wanted)["arguments"])

    assert arguments(f'{{"key": "{KEY}", "n": [1, {{"deep": "x{KEY}"}}]}}') == (
        '{"key":"[redacted]","n":[1,{"deep":"x[redacted]"}]}'
    )
    card = "4111111111111111"
    assert arguments(f'{{"card": {card}, "cents": 12}}', card) == '{"card":"[redacted]","cents":12}'
    assert arguments(f'{{"{KEY}": 1, "x{KEY}": 2}}') == '{"[redacted]":1,"x[redacted]":2}'
    assert arguments(json.dumps({"inner": json.dumps({"key": KEY})})) == json.dumps(
        {"inner": '{"key":"[redacted]"}'}, separators=(",", ":")
    )
    # It cuts through the JSON: nothing of it can stay.
    assert json.loads(arguments('{"city":"Berlin","n":7}', '"Berlin","n"')) == {"redacted": MARKER}
    assert arguments(f"{{bad {KEY}") == "{bad [redacted]"


def test_what_spells_a_text_again_goes_with_it() -> None:
    tokens = [{"token": part, "bytes": [], "logprob": 0.0, "top_logprobs": []} for part in (KEY[:6], KEY[6:])]
    cites = [{"type": "url_citation", "url": "https://x.example", "title": "T", "start_index": 9, "end_index": 22}]
    part = {"type": "output_text", "text": f"the key {KEY}", "annotations": cites, "logprobs": tokens}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    (redacted,) = without(message)["content"]
    assert redacted["logprobs"] == []
    assert redacted["annotations"][0]["end_index"] <= len(redacted["text"])
    untouched = without({**message, "status": "completed"}, "nothing of the kind")
    assert untouched == message


def test_a_member_that_is_there_twice_hides_nothing() -> None:
    raw = f'{{"role":"user","content":"{KEY}","content":"harmless"}}'
    assert KEY not in without_text(raw, TextToRedact.parse(KEY)).raw


def test_what_no_agent_can_read_is_redacted_and_stays_unreadable() -> None:
    raw = f'{{"content": "{KEY}'
    for redacted in (without_text(raw, TextToRedact.parse(KEY)), without_all_text(raw)):
        assert KEY not in redacted.raw
        with pytest.raises(json.JSONDecodeError):
            json.loads(redacted.raw)


def test_reasoning_loses_its_sealed_part_with_all_its_text_and_keeps_it_otherwise() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    assert json.loads(without_all_text(stored(reasoning)).raw) == {"type": "reasoning", "id": "rs_1", "summary": []}
    assert without(reasoning, "gAAA") == reasoning


def test_what_is_not_changed_stays_to_the_byte() -> None:
    raw = '{ "role": "user",  "content": "x\\u0041", "n": 1.50 }'
    assert without_text(raw, TextToRedact.parse("nothing")).raw == raw
    odd = without_text('{"role":"user","content":"\\ud800 ü sk-live-4711abc"}', TextToRedact.parse(KEY))
    assert json.loads(odd.raw)["content"] == f"\ud800 ü {MARKER}"
    odd.raw.encode()


@for_each("text", ["", "  ", "ab", "a\0bc", "x" * 10_001])
def test_texts_that_nothing_can_be_looked_for_with(text: str) -> None:
    with pytest.raises(InvalidText, match=r"\.$"):
        TextToRedact.parse(text)


def test_the_text_does_not_show_in_a_log() -> None:
    assert KEY not in repr(TextToRedact.parse(KEY))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON, st.text(min_size=3, max_size=12), st.booleans())
def test_whatever_is_stored_nothing_of_the_text_is_left_and_nothing_breaks(
    value: Any, text: str, is_ascii: bool
) -> None:
    try:
        wanted = TextToRedact.parse(text)
    except InvalidText:
        return
    item = {"type": "function_call_output", "call_id": "c", "output": [value, text, {"x": json.dumps({"y": [text]})}]}
    raw = json.dumps(item, ensure_ascii=is_ascii)
    redacted = without_text(raw, wanted)
    after = json.loads(redacted.raw)
    assert after["call_id"] == "c"
    assert redacted.places >= 2
    if MARKER not in text and text.strip() not in MARKER:
        left = [each for each in strings_of(after["output"]) if text.strip() in re.sub(re.escape(MARKER), "", each)]
        assert not left


def strings_of(value: Any, name: str = "") -> list[str]:
    match value:
        case str() if name not in KEPT | KEPT_WHOLE:
            return [value]
        case list():
            return [text for member in value for text in strings_of(member, name)]
        case dict() if name not in KEPT_WHOLE:
            return [text for key, member in value.items() for text in strings_of(member, key)]
    return []
