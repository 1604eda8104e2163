"""Forms of ids and names: each is found wherever it stands, and what only looks similar is not."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memadmin.erasure.scan import variants
from memadmin.erasure.scan.variants import Finder

FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "upper": str.upper,
    "lower": str.lower,
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "JSON": json.dumps,
    "JSON with capital digits": lambda text: json.dumps(text).replace("\\u00e9", "\\u00E9"),
    "JSON without escapes": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON within JSON": lambda text: json.dumps({"arguments": json.dumps({"who": text})}),
    "JSON within JSON within JSON": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "JSON with slashes escaped": lambda text: json.dumps(text).replace("/", "\\/"),
    "decomposed JSON": lambda text: json.dumps(unicodedata.normalize("NFD", text)),
    "address": lambda text: quote(text, safe=""),
    "address in lower case": lambda text: quote(text, safe="").lower(),
    "form field": quote_plus,
    "address within an address": lambda text: quote(quote(text, safe=""), safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 of JSON": lambda text: base64.b64encode(json.dumps({"who": text}).encode()).decode(),
    "base64 within JSON": lambda text: json.dumps(base64.b64encode(text.encode()).decode()).replace("/", "\\/"),
}

# Letters whose cases are one character each: those of others have no single answer.
LETTERS = "abzXYZ019éÜñČ漢ж😀 @.+-_/'\"\\&%"
IDENTIFIERS = (
    st.text(LETTERS, min_size=3, max_size=24)
    .map(lambda text: unicodedata.normalize("NFC", text).strip())
    .filter(lambda text: len(text) >= 3 and sum(each.isalnum() for each in text) >= 2)
)
AROUND = st.text('abc XYZ,.!?\n"\\é漢😀{}:', max_size=12)


@pytest.mark.parametrize("form", FORMS)
@given(identifier=IDENTIFIERS, before=AROUND, after=AROUND)
@settings(max_examples=25, deadline=None)
def test_each_form_is_found_wherever_it_stands(form: str, identifier: str, before: str, after: str) -> None:
    if form in ("upper", "lower"):
        # Characters whose other case is another text, such as ß.
        assume(len(FORMS[form](identifier)) == len(identifier))
    # Beside a letter a short one counts as a part of something else.
    text = FORMS[form](f"{before} {identifier} {after}")
    assert Finder([identifier]).finds(text)
    assert Finder(["nobody@example.org", identifier]).finds(f"…{text}…")


@pytest.mark.parametrize("few", [1, 3, 64])
@given(
    identifiers=st.lists(IDENTIFIERS, min_size=1, max_size=5),
    before=AROUND,
    after=AROUND,
    form=st.sampled_from(sorted(FORMS)),
)
@settings(max_examples=100, deadline=None)
def test_the_quick_search_misses_none_of_several(
    few: int, identifiers: list[str], before: str, after: str, form: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variants, "FEW", few)
        finder = Finder(identifiers)
    for identifier in identifiers:
        text = FORMS[form](f"{before} {identifier} {after}")
        assert finder.may_find(text.encode())
        assert finder.finds(text)


def test_one_of_very_many_is_found_and_named() -> None:
    finder = Finder([f"customer-{number}-eu" for number in range(300)])
    assert finder.finds("about CUSTOMER-271-EU") == ["customer-271-eu"]
    encoded = base64.b64encode(b"customer-4-eu met customer-14-eu").decode()
    assert sorted(finder.finds(encoded)) == ["customer-14-eu", "customer-4-eu"]
    assert not finder.finds("about customer-301-eu")


@pytest.mark.parametrize("before", range(3))
@pytest.mark.parametrize("identifier", ["ada", "1042", "ada@example.com", "José Núñez"])
def test_base64_is_found_at_every_alignment(identifier: str, before: int) -> None:
    encoded = base64.b64encode(("..."[:before] + identifier + " and more").encode()).decode()
    assert Finder([identifier]).finds(f'{{"file": "{encoded}"}}')


@given(st.text("0123456789abcdef -\n", max_size=200))
def test_text_without_it_is_not_found(text: str) -> None:
    assert not Finder(["Ada Lovelace", "ada@example.com", "x-77-zz"]).finds(text)


@given(st.binary(max_size=3_000))
@settings(max_examples=150, deadline=None)
def test_keys_and_images_in_base64_are_not_found(content: bytes) -> None:
    """Characters of a short text occur in much base64 by chance."""
    encoded = base64.b64encode(content).decode()
    try:
        content.decode()
    except UnicodeDecodeError:
        assume(b"ada" not in content.lower())
        assert not Finder(["ada"]).finds(encoded)


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("1042", "order 31042"),
        ("1042", "10421"),
        ("1042", "a1042"),
        ("1042", "1042é"),
        ("1042", '"\\u00e91042"'),
        ("1042", '"1042\\u00e9"'),
        ("ada", "Canada"),
        ("ada", "adapter"),
        ("12345678901", "912345678901"),
        ("1042", base64.b64encode(b"order 31042").decode()),
        ("1042", base64.b64encode(b"10421").decode()),
        ("ada@example.com", "ada@example.org"),
        ("jose@x.com", "josé@x.com"),
    ],
)
def test_part_of_something_else_is_no_hit(identifier: str, text: str) -> None:
    assert not Finder([identifier]).finds(text)


@pytest.mark.parametrize(
    ("identifier", "text"),
    [
        ("1042", "order 1042, please"),
        ("1042", json.dumps("number:\n1042\nplease")),
        ("1042", json.dumps("\u00a01042\u00a0")),
        ("1042", "?customer=1042&x=1"),
        ("1042", quote("customer: 1042")),
        ("1042", "customer_1042"),
        ("ada", "X\x03\\000\\000\\000ada\x94"),
        ("1042", base64.b64encode(b"order 1042, please").decode()),
        ("customer-1042-eu", "xcustomer-1042-eux"),
        ("ada@example.com", "<ADA@Example.com>"),
        ("José Núñez", "JOSÉ NÚÑEZ"),
        # Nothing of it is the same in every form.
        ("'/\"", "called '/\", they say"),
    ],
)
def test_what_stands_alone_is_a_hit(identifier: str, text: str) -> None:
    assert Finder([identifier]).finds(text)


def test_without_texts_nothing_is_looked_for() -> None:
    assert not Finder([])
    assert not Finder([]).finds("anything")
