"""The places of a redaction with the text around them: all, in nested JSON too, other values masked."""

from __future__ import annotations

import json
from typing import Any

from sessions_app.masking import HIDDEN, Masker
from sessions_app.redaction import TextToRedact, without_all_text, without_text
from sessions_app.redaction.places import CONTEXT_CHARACTERS, MASKED, WHOLE_CHARACTERS, PlaceContext, contexts_of
from tests.cases import for_each
from tests.sessions.timeline.items import EXAMPLES

KEY = "sk-live-4711abc"
CARD = "4242 4242 4242 4242"


def places_in(value: Any, text: str = KEY, *, show: int = 50, masker: Masker | None = None) -> list[PlaceContext]:
    raw = value if isinstance(value, str) else json.dumps(value)
    redacted = without_text(raw, TextToRedact.parse(text), show=show)
    assert len(redacted.shown) == min(redacted.places, show)
    return contexts_of(redacted.shown, masker or Masker())


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_place_has_its_path_and_the_text_before_and_after() -> None:
    (place,) = places_in(message(f"My key is {KEY}, thanks."))
    assert place == PlaceContext("content / 1 / text", "My key is ", KEY, ", thanks.", is_whole=False)


def test_long_surroundings_are_cut_and_every_occurrence_is_one_place() -> None:
    places = places_in(message("a" * 500 + KEY + "b" * 500 + KEY))
    assert [len(place.before) for place in places] == [CONTEXT_CHARACTERS + 1] * 2
    assert places[0].before.startswith("…a")
    assert places[0].after == "b" * CONTEXT_CHARACTERS + "…"
    assert places[1].after == ""


def test_nested_json_and_keys_and_numbers_are_places_with_the_names_that_lead_to_them() -> None:
    inner = json.dumps({"order": {"notes": [f"use {KEY}"], KEY: 1}})
    call = {"type": "function_call", "call_id": "c", "name": "look_up", "arguments": json.dumps({"body": inner})}
    places = places_in(call)
    assert [(place.where, place.before) for place in places] == [
        ("arguments / body / order / notes", "use "),
        ("arguments / body / order", ""),
    ]
    number = {"type": "function_call", "call_id": "c", "name": "n", "arguments": json.dumps({"pin": 471147114711})}
    (place,) = places_in(number, "471147114711")
    assert (place.where, place.found) == ("arguments / pin", "471147114711")


def test_arguments_that_go_as_a_whole_are_shown_as_a_whole() -> None:
    """A text across values: without it the arguments would be no JSON."""
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": '{"a":"left","b":"right"}'}
    (place,) = places_in(call, 'left","b"')
    assert place.is_whole
    assert place.found == call["arguments"]


def test_member_that_agents_do_not_see_is_a_place() -> None:
    raw = f'{{"type":"message","role":"user","content":"hidden {KEY}","content":"seen"}}'
    (place,) = places_in(raw)
    assert place.is_whole
    assert KEY in place.found


def test_text_that_is_no_json_is_a_place() -> None:
    (place,) = places_in(f"broken {{ {KEY} }}")
    assert (place.where, place.before) == ("", "broken { ")


@for_each(
    "said",
    [
        f"card {CARD} key {KEY}",
        # The value reaches beyond what is shown, and beyond the place.
        f"card {CARD}{' ' * (CONTEXT_CHARACTERS - 6)}{KEY}",
        f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQ4242' * 40}\n{KEY}\n{'Zm9v4242' * 40}\n-----END PRIVATE KEY-----",
    ],
)
def test_other_values_around_a_place_are_masked(said: str) -> None:
    (place,) = places_in(message(said))
    assert place.found == KEY
    assert MASKED in place.before
    assert "4242" not in place.before + place.after


def test_rest_of_a_value_of_which_the_text_is_a_part_is_masked() -> None:
    (place,) = places_in(message(f"card {CARD}"), "4242 4242 4242")
    assert (place.before, place.found, place.after) == ("card ", "4242 4242 4242", MASKED)


def test_value_is_secret_by_the_name_of_its_member() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": json.dumps({"password": f"x1{KEY}y2"})}
    (place,) = places_in(call)
    assert (place.before, place.after) == (MASKED, MASKED)
    call["arguments"] = json.dumps({"me@example.com": KEY})
    (place,) = places_in(call)
    assert "me@" not in place.where


def test_text_that_takes_too_long_to_check_is_not_shown() -> None:
    (place,) = places_in(message(f"card {CARD} key {KEY} " + "word " * 200), masker=Masker(steps=1))
    assert (place.before, place.found, place.after) == (HIDDEN, KEY, HIDDEN)


def test_only_as_many_places_are_kept_as_are_wanted() -> None:
    assert len(places_in(message(f"{KEY} " * 100), show=7)) == 7
    assert places_in(message(f"{KEY} " * 100), show=0) == []


def test_all_text_of_an_item_is_shown_masked_and_cut() -> None:
    item = message(f"card {CARD} " + "words " * 200)
    redacted = without_all_text(json.dumps(item), show=50)
    (place,) = contexts_of(redacted.shown, Masker())
    assert place.is_whole
    assert place.found.startswith(f"card {MASKED} words")
    assert len(place.found) == WHOLE_CHARACTERS + 1


@for_each("example", EXAMPLES, ids=lambda example: example["variant"][:60])
def test_every_place_of_every_item_is_shown(example: Any) -> None:
    redacted = without_all_text(json.dumps(example["item"]), show=1_000)
    assert len(redacted.shown) == redacted.places
    assert without_all_text(json.dumps(example["item"])).shown in ([], ())
