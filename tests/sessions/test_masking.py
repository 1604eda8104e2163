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
from tests.cases import for_each
from tests.sessions.timeline.items import EXAMPLES, Raw, call, output, stored, user

CARD, MAIL, PHONE, KEY = "4242 4242 4242 4242", "anna@example.com", "+49 30 901820", "AKIAIOSFODNN7EXAMPLE"


def masked(value: Any) -> StoredItem:
    return Masker().item(stored(value))


def test_item_without_a_value_is_the_very_same() -> None:
    item = stored(Raw('{"role":"user",  "content":"caf\\u00e9", "content":"tea"}'))
    assert Masker().item(item) is item


@for_each(
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
    assert_nothing_has_its_values(value)


def assert_nothing_has_its_values(value: Any) -> None:
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


@for_each("example", EXAMPLES, ids=lambda example: str(example.get("type", example["item"]))[:30])
def test_masking_changes_nothing_else_about_an_item(example: dict[str, Any]) -> None:
    item = masked(example["item"])
    again = Masker().item(replace(item, masked_count=0))
    assert again.masked_count == 0
    kinds = [
        [event.kind for event in build_timeline([one], starts_session=True, ends_session=True).events]
        for one in (item, stored(example["item"]))
    ]
    assert kinds[0] == kinds[1]


@for_each("value", [user(f"long text {CARD}"), Raw(f"broken {CARD}"), call("a", arguments=f'"{CARD}"')], ids=str)
def test_an_item_beyond_the_limit_is_hidden(value: Any) -> None:
    item = Masker(steps=5).item(stored(value))
    assert "4242" not in item.raw
    assert HIDDEN in item.raw
    assert item.is_hidden
    assert item.masked_count == 1
    assert next(build_timeline([item], starts_session=True, ends_session=True).events)


def test_a_hidden_item_has_its_identity_and_no_values() -> None:
    item = call("a", arguments=CARD) | {"name": MAIL, MAIL: CARD}
    hidden = Masker(steps=5).item(stored(item))
    shown = {"type": "function_call", "call_id": "a", "name": "[e-mail ••••@example.com]", "arguments": HIDDEN}
    assert {name: value for name, value in json.loads(hidden.raw).items() if name in item and name != "id"} == shown
    assert MAIL not in hidden.raw


def test_one_item_beyond_its_share_does_not_hide_the_others() -> None:
    masker = Masker(steps=20_000, share=5_000)
    items = [stored(user(text)) for text in ("tea", "tea " * 2_000, f"tea {CARD}")]
    shown = [masker.item(item) for item in items]
    assert [item.is_hidden for item in shown] == [False, True, False]
    assert "[card •••• 4242]" in shown[2].raw
    for _ in range(4):
        masker.item(items[1])
    assert masker.item(items[0]).is_hidden, "the page's own limit"
    assert not Masker.of_one_item().item(items[1]).is_hidden


def test_hidden_in_a_file_is_still_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values were searched within the limit, and the text as it is stored was not."""
    masker = Masker(steps=5)
    monkeypatch.setattr(masker, "item", lambda item: item)
    item = masker.file_item(stored(user("a long text")))
    assert json.loads(item.raw) == {"content": HIDDEN, "role": "user"}


def test_numbers_stay_numbers_or_become_strings_and_json_stays_json() -> None:
    raw = (
        '{"a": 1.4242424242424242e-05, "b": 0.4242424242424242, "c": 4242424242424242, "d": 4242424242424242.0,'
        ' "e": 42424242424242.42, "f": -1.5e300, "c": "tea", "g": "1.4242424242424242e-05"}'
    )
    for item in (stored(Raw(raw)), stored(Raw(raw.replace('"d": 4242424242424242.0,', "")))):
        shown = json.loads(Masker.of_one_item().file_item(item).raw)
        assert shown == json.loads(item.raw) | ({"d": "[card •••• 4242]"} if "d" in shown else {})
    shown_text = Masker.of_one_item().file_item(stored(Raw('{"c": 4242424242424242, "c": 1.4242424242424242e-05}'))).raw
    assert shown_text == '{"c": "[card •••• 4242]", "c": 1.4242424242424242e-05}'


def test_escapes_divide_no_value_in_the_end_of_an_item() -> None:
    tail = r'4242\u00a04242\n4242 4242 anna\u200b@example.com \u0061nna@example.com", "x": 1.4242424242424242e-05}'
    item = Masker().item(replace(stored(user("tea")), raw_tail=tail))
    masks = "[card •••• 4242] [e-mail ••••@example.com] [e-mail ••••@example.com]"
    assert item.raw_tail == f'{masks}", "x": 1.4242424242424242e-05}}'


def test_a_card_before_encoded_data_is_masked() -> None:
    item = masked(
        {"type": "odd", "a": "4242424242424242" + "Ab" * 2_000, "b": "data:image/png;base64," + "4Bc" * 1_400}
    )
    assert json.loads(item.raw)["a"] == "[card •••• 4242]" + "Ab" * 2_000
    assert item.masked_count == 1


def test_a_key_without_an_end_hides_nothing_in_the_next_part() -> None:
    item = masked([f"BEGIN RSA PRIVATE KEY {CARD}", f"tea {MAIL}", "tea"])
    assert json.loads(item.raw) == ["[key BEGI••••]", "tea [e-mail ••••@example.com]", "tea"]


def test_words_that_stand_in_a_mask_are_no_hit_and_not_in_the_snippet() -> None:
    raw = json.dumps(user(f"Please write to {MAIL} about the tea"))
    found = snippet(raw, ParsedSearch.parse("anna").visible_pattern())
    assert str(found) == "Please write to [e-mail ••••@example.com] about the tea"
    assert not any(is_hit for _, is_hit in found.parts)


def test_a_masker_that_sees_only_the_first_level_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken variant: text that is JSON once more is taken for words."""
    monkeypatch.setattr(masking, "json_inside", lambda text: None)
    with pytest.raises(AssertionError):
        assert_nothing_has_its_values(output("a", '{"mail": "anna\\u0040example.com", "n": 1}'))
