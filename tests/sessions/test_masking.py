"""Items as everybody may see them: no value of them is left in anything that is made from their text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import masking
from sessions_app.items import StoredItem
from sessions_app.masking import HIDDEN, Masker
from sessions_app.search.snippets import snippet
from sessions_app.search_syntax import ParsedSearch
from sessions_app.timeline import build_timeline, to_markdown
from tests.sessions.timeline.items import EXAMPLES, Raw, call, output, stored, user

CARD, MAIL, PHONE, KEY = "4242 4242 4242 4242", "anna@example.com", "+49 30 901820", "AKIAIOSFODNN7EXAMPLE"


def masked(value: Any) -> StoredItem:
    return Masker().item(stored(value))


def test_item_without_a_value_is_the_very_same() -> None:
    item = stored(Raw('{"role":"user",  "content":"caf\\u00e9", "content":"tea"}'))
    assert Masker().item(item) is item


@pytest.mark.parametrize(
    "value",
    [
        user(f"{CARD} and {MAIL}"),
        {"role": "user", "content": [{"type": "input_text", "text": CARD}, {"type": "input_text", "text": MAIL}]},
        call("a", arguments=json.dumps({"card": CARD, "mail": MAIL})),
        call("a", arguments=json.dumps({"deep": json.dumps({"note": f"line\n{MAIL}", "card": 4242424242424242})})),
        output("a", f'{{"card": "{CARD}", "mail": "anna\\u0040example.com"}}'),
        output("a", f"{CARD} {MAIL} {{not JSON"),
        {"type": "unheard_of", MAIL: [CARD]},
        {"type": "unheard_of", "x": {"password": "hunter2", "n": 4242424242424242}},
        [CARD, MAIL],
        f"{CARD} {MAIL}",
        Raw(f"{{broken {CARD} {MAIL}"),
        Raw(f'{{"role": "user", "content": "caf\\u00e9\\n{MAIL}\\t{CARD}"}}'),
    ],
    ids=str,
)  # fmt: skip
def test_nothing_made_from_an_item_has_its_values(value: Any) -> None:
    item = masked(value)
    assert item.masked_count == 2
    timeline = build_timeline([item], starts_session=True, ends_session=True)
    told = item.raw + repr(timeline) + to_markdown(timeline)
    for piece in ("4242 4242", "42424242", "anna", "hunter2"):
        assert piece not in told
    assert next(timeline.events).masked_items == (item,)


def test_arguments_with_masks_are_still_json() -> None:
    item = masked(call("a", arguments='{"card": 4242424242424242, "amount": 42.5, "many": 12345678901234567890123}'))
    (event,) = build_timeline([item], starts_session=True, ends_session=True).events
    assert event.detail == '(card: "[card •••• 4242]", amount: 42.5, many: 12345678901234567890123)'


def test_what_a_member_is_called_hides_what_it_holds() -> None:
    item = masked({"type": "odd", "api_key": "abcd", "otp": 123456, "password": None, "pin": True, "secrets": ["abcd"]})
    assert json.loads(item.raw) == {
        "type": "odd",
        "api_key": "[key ••••]",
        "otp": "[key ••••]",
        "password": None,
        "pin": True,
        "secrets": ["[key ••••]"],
    }


def test_two_members_with_the_same_mask_both_stay() -> None:
    item = masked({"type": "odd", "a@example.com": 1, "b@example.com": 2})
    assert sorted(json.loads(item.raw).values(), key=str) == [1, 2, "odd"]


def test_what_a_reader_of_json_passes_over_is_masked_where_the_text_is_shown() -> None:
    item = stored(Raw(f'{{"role": "user", "content": "{CARD}", "content": "tea"}}'))
    assert Masker().item(item) is item, "the timeline never sees the first"
    shown = Masker().file_item(item)
    assert shown.raw == '{"role": "user", "content": "[card •••• 4242]", "content": "tea"}'
    assert shown.masked_count == 1


@given(st.integers(min_value=0, max_value=80))
def test_item_that_was_read_in_part_shows_no_half_of_a_value(cut: int) -> None:
    raw = json.dumps({"type": "function_call", "name": "pay", "arguments": f"{'x ' * 100}{MAIL} {CARD} {PHONE} {KEY}"})
    head = raw[: len(raw) - 2 - cut]
    item = Masker().item(
        replace(stored(Raw(raw)), raw=head, raw_tail=f'{MAIL} {CARD}\\n{MAIL}", "status": "completed"}}')
    )
    for piece in ("4242 4242", "901820"[:3], "anna", "IOSF"):
        assert piece not in item.raw + item.raw_tail
    (event,) = build_timeline([item], starts_session=False, ends_session=False).events
    assert event.title == "pay"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.get("type", example["item"]))[:30])
def test_masking_changes_nothing_else_about_an_item(example: dict[str, Any]) -> None:
    item = masked(example["item"])
    again = Masker().item(replace(item, masked_count=0))
    assert again.masked_count == 0
    kinds = [
        [event.kind for event in build_timeline([one], starts_session=True, ends_session=True).events]
        for one in (item, stored(example["item"]))
    ]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    "value", [user(f"long text {CARD}"), Raw(f"broken {CARD}"), call("a", arguments=f'"{CARD}"')], ids=str
)
def test_what_could_not_be_looked_through_in_time_is_not_shown(value: Any) -> None:
    item = Masker(seconds=-1).item(stored(value))
    assert "4242" not in item.raw
    assert HIDDEN in item.raw
    assert item.masked_count == 1
    assert next(build_timeline([item], starts_session=True, ends_session=True).events)


def test_a_store_that_takes_its_time_takes_none_of_the_masking(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    masker = Masker()
    clock[0] += 10 * masking.PAGE_SECONDS
    assert masker.item(stored(user("tea"))).raw == stored(user("tea")).raw
    clock[0] += 10 * masking.PAGE_SECONDS
    assert HIDDEN in masker.item(stored(user("tea"))).raw


def test_what_is_hidden_in_a_file_is_no_broken_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the work was done in time: the value was looked through, and its text not any more."""
    masker = Masker()
    monkeypatch.setattr(masker, "item", lambda item: item)
    masker.seconds = -1
    item = masker.file_item(stored(user("a long text")))
    assert json.loads(item.raw) == {"content": HIDDEN, "role": "user"}


def test_words_that_stand_in_a_mask_are_no_hit_and_not_in_the_snippet() -> None:
    raw = json.dumps(user(f"Please write to {MAIL} about the tea"))
    found = snippet(raw, ParsedSearch.parse("anna").visible_pattern())
    assert str(found) == "Please write to [e-mail ••••@example.com] about the tea"
    assert not any(is_hit for _, is_hit in found.parts)


def test_a_masker_that_sees_only_the_first_level_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: text that is JSON once more is taken for words."""
    monkeypatch.setattr(masking, "json_inside", lambda text: None)
    with pytest.raises(AssertionError):
        test_nothing_made_from_an_item_has_its_values(output("a", '{"mail": "anna\\u0040example.com", "n": 1}'))
