"""Values in text: which are found, which are not, and what stands in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memadmin.values import OVERLAP, WINDOW, numbers
from memadmin.values.effort import StepLimit, TooMuchWork
from memadmin.web.masking import MASK, find_values, is_secret_member, mask_text

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("My card is 4242 4242 4242 4242, until 12/27", "My card is [card •••• 4242], until 12/27"),
        ("card:4111111111111111!", "card:[card •••• 1111]!"),
        ("3782-822463-10005", "[card •••• 0005]"),
        ("4111-1111-1111-1111", "[card •••• 1111]"),
        ("two of 12: 4111 1111 1111 1111 123", "two of 12: [card •••• 1111] 123"),
        ("4111\u200b1111\u00a01111\u20111111", "[card •••• 1111]"),
        ("４１１１１１１１１１１１１１１１", "[card •••• １１１１]"),  # noqa: RUF001
        ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "[card •••• 1111]"),
        ("pay to DE89 3704 0044 0532 0130 00 soon", "pay to [account DE •••• 3000] soon"),
        ("gb82west12345698765432.", "[account GB •••• 5432]."),
        ("a.b+c@example.com, <d@mail.example>", "[e-mail ••••@example.com], <[e-mail ••••@mail.example]>"),
        ("mailto:guest@example.com?subject=x", "mailto:[e-mail ••••@example.com]?subject=x"),
        ("https://shop.example/?e=guest%40example.com&a", "https://shop.example/?e=[e-mail ••••@example.com]&a"),
        ("müller@bücher.example", "[e-mail ••••@bücher.example]"),
        ("+49 30 901820, 0049 30 901820, +1 (415) 555-2671", "[phone •••• 20], [phone •••• 20], [phone •••• 71]"),
        ("AKIAIOSFODNN7EXAMPLE", "[key AKIA••••]"),
        ("token ghp_" + "a1" * 18, "token [key ghp_••••]"),
        ("use sk-proj-abcdefghijklmnopqrstuvwx12", "use [key sk-p••••]"),
        ("xoxb-123-456-abcdef", "[key ••••]"),
        (f"Bearer {JWT} and on", "Bearer [key eyJh••••] and on"),
        (f"before {PRIVATE_KEY} after", "before -----[key BEGI••••] after"),
        ("postgres://agent:hunter2@db.example/x", "postgres://agent:[key ••••]/x"),
        ("my password = 'correct horse battery'", "my password = '[key ••••]'"),
        ("password: hunter2 is what I use", "password: [key ••••] is what I use"),
        ("API_KEY=abc123def", "API_KEY=[key ••••]"),
        ("4242\t4242\t4242\t4242", "[card •••• 4242]"),
        ("card 4242 4242\n4242 4242\n12/27", "card [card •••• 4242]\n12/27"),
        ("4242/4242/4242/4242 12/27", "[card •••• 4242] 12/27"),
        ("4242_4242_4242_4242", "[card •••• 4242]"),
        ("?card=4242+4242+4242+4242&x", "?card=[card •••• 4242]&x"),
        ("?card=4242%204242%204242%204242", "?card=[card •••• 4242]"),
        ("3782/822463/10005", "[card •••• 0005]"),
        ("2027\n4242/4242/4242/4242", "2027\n[card •••• 4242]"),
        ("Authorization: Bearer s3cr3tvalue", "Authorization: Bearer [key ••••]"),
        ("curl -H 'authorization: Basic YWRhOmh1bnRlcjI='", "curl -H 'authorization: Basic [key ••••]'"),
        ("it sends Bearer a1b2c3d4e5f6a7b8 then", "it sends Bearer [key ••••] then"),
        ("Cookie: sid=a1b2; theme=dark\nHost: x", "Cookie: [key ••••]\nHost: x"),
        ("Set-Cookie: sid=a1b2; HttpOnly", "Set-Cookie: [key ••••]; HttpOnly"),
        ("npm_" + "a1" * 18, "[key npm_••••]"),
        ("guest@\u200bexample.com", "[e-mail ••••@example.com]"),
        ("guest@exam\u00adple.com.", "[e-mail ••••@example.com]."),
        ("ghp_" + "a1\u200b" * 18 + " x", "[key ghp_••••] x"),
        ("pass\u200bword: hunter2", "pass\u200bword: [key ••••]"),
        ("password: hunter2, secret: hunter3", "password: [key ••••], secret: [key ••••]"),
    ],
)  # fmt: skip
def test_value_is_masked(text: str, shown: str) -> None:
    assert mask_text(text) == (shown, len(MASK.findall(shown)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Order SO-20417 of 2026-11-21 19:30:00, refund RF-20417, 42.00 EUR",
        "4111 1111 1111 1112",
        "1764000000000000 and 0000000000000000",
        "12 34 56 78 90 11 22 33 44",
        "DE89 1704 0044 0532 0130 01",
        "call_9f3b2a7c41d84e5fa0b1c2d3 resp_68f1a2b3c4d5e6f708192a3b4c5d6e7f __fake_id__",
        "3f2b8c1e-6f0a-4b7e-9c55-0d2f6a1b7c88",
        "react@18.2.0 and package@1.2.34, user@localhost, @guest, a @ b",
        "The monkey and the passenger have a key, and a secret of tea",
        "Password: ********",
        "030 901820 and (415) 555-2671",
        "10:00 2026-01-05 00:15",
        "2021/2022/2023/2024 and 2026/11/21 12:00",
        "4242/4242/4242/4243",
        "4242\t4242\t4242\t4242\t4242",
        "4242_4242/4242_4242",
        "1.4242424242424242e-05, 0.4242424242424242",
        "Bearer authentication of the customer, authorization: granted, Authorization: Bearer <token>, Bearer $TOKEN",
        "Cookie: a biscuit, and a cookie jar",
        "npm_config_registry_of_the_whole_company_network",
        "a\u200bb 3f2b8c1e-6f0a-4b7e\u200b-9c55-0d2f6a1b7c88",
        "Password: ________",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert mask_text(text) == (text, 0)


def test_number_without_a_country_code_needs_a_region() -> None:
    assert mask_text("030 901820", regions=["DE"])[0] == "[phone •••• 20]"
    assert mask_text("(415) 555-2671", regions=["DE", "US"])[0] == "[phone •••• 71]"
    assert mask_text("Order 20417 of 21 11 2026", regions=["DE", "US"])[1] == 0


VALUES = st.sampled_from(
    ["4242 4242 4242 4242", "DE89370400440532013000", "guest@example.com", "+49 30 901820", JWT, "AKIAIOSFODNN7EXAMPLE"]
)
SURROUNDINGS = st.text(st.sampled_from("abc ,;.!\n\té\u202e\U0001f600"), max_size=40)


@given(SURROUNDINGS, VALUES, SURROUNDINGS)
def test_value_is_found_wherever_it_stands(before: str, value: str, after: str) -> None:
    shown, count = mask_text(f"{before} {value} {after}")
    assert count == 1
    assert value not in shown


@pytest.mark.parametrize("value", ["4111 1111 1111 1111", JWT, "guest@example.com", "+49 30 901820"])
@pytest.mark.parametrize("place", [0, WINDOW - OVERLAP - 5, WINDOW - 9, WINDOW, 3 * WINDOW - 3])
def test_value_is_found_where_a_long_text_is_parted(value: str, place: int) -> None:
    text = "tea " * 5_000
    text = f"{text[:place]} {value} {text[place:]}"
    shown, count = mask_text(text)
    assert count == 1
    assert value[:4] not in shown.replace("[key eyJh", "")


def test_key_that_is_longer_than_any_part_of_a_text_is_masked_whole() -> None:
    long_key = f"{JWT}{'A9' * WINDOW}"
    assert mask_text(f"a {long_key} b")[0] == "a [key eyJh••••] b"
    long_pem = PRIVATE_KEY.replace("IBAAKC", "IBAAKC\n" * 2_000)
    assert mask_text(f"a {long_pem} b")[0] == "a -----[key BEGI••••] b"


def test_letters_with_a_longer_small_form_hide_nothing_behind_them() -> None:
    for before in ("İ" * 130, "İ" * 300, "İ " * 150):
        shown, count = mask_text(f"{before} password = 'hunter2secret'")
        assert (shown, count) == (f"{before} password = '[key ••••]'", 1)


@given(st.text())
def test_masking_twice_is_masking_once_and_the_rest_stays(text: str) -> None:
    shown, _ = mask_text(text)
    assert mask_text(shown)[0] == shown
    place = 0
    for found in find_values(text):
        assert text[place : found.start] in shown
        place = found.end
    assert text[place:] in shown


@given(st.text(st.sampled_from("0123456789" * 3 + "ABab()/- .+\u00a0\u0661\uff0b"), max_size=80))
def test_nothing_is_passed_over_for_being_quick(text: str) -> None:
    """Where numbers are looked for is what their expressions would find in the whole text."""
    runs = numbers.runs_of_digits(text)
    for form in (
        numbers.CARD_PROPOSED,
        numbers.PHONE_PROPOSED,
        numbers.DIALLED_ABROAD,
        numbers.LOCAL_PHONE_PROPOSED,
    ):
        assert spans(numbers.in_runs(form, text, runs)) == spans(form.finditer(text))


@pytest.mark.parametrize("first", ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "AB12"])
def test_an_account_number_after_another_is_masked(first: str) -> None:
    """Also after what only looks like one."""
    shown, found = mask_text(f"{first} GB82 WEST 1234 5698 7654 32")
    assert shown.endswith(" [account GB •••• 5432]")
    assert found == 1 + first.startswith("DE")


def spans(matches: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    return [match.span() for match in matches]


def test_a_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(TooMuchWork):
        mask_text("tea", limit=StepLimit(2))
    with pytest.raises(TooMuchWork):
        mask_text("+49 30 901820", limit=StepLimit(1_000))


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("password", "hunter2", True),
        ("api-key", "abcd", True),
        ("X_API_KEY", "abcd", True),
        ("access_token", "a1b2c3d4e5f6a7b8", True),
        ("cvc", "123", True),
        ("token", "Hello", False),
        ("logprob_token", "Hel", False),
        ("password_hint", "the name of my cat", False),
        ("monkey", "Bobo", False),
        ("content", "x" * 100, False),
        ("Authorization", "Bearer a1b2c3", True),
        ("authorization", "the customer agreed", False),
        ("Set-Cookie", "sid=a1b2; Path=/", True),
    ],
)
def test_what_a_member_is_called_tells_a_secret(name: str, value: str, is_secret: bool) -> None:
    assert is_secret_member(name, value) is is_secret
