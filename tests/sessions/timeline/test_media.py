"""Pictures and addresses: what a page may display, and what it only names."""

from __future__ import annotations

import base64

from sessions_app.timeline.blocks import Picture, Reference
from sessions_app.timeline.media import PICTURE_BYTES, file_part, link, picture, picture_from_base64
from tests.cases import for_each

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SVG = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>').decode()


def test_small_png_is_displayed() -> None:
    shown = picture(f"data:image/png;base64,{PNG}", "Picture")
    assert shown == Picture(f"data:image/png;base64,{PNG}", "Picture", 70)
    assert picture_from_base64(PNG, "Picture") == shown


def test_type_is_told_by_the_content_not_by_the_claim() -> None:
    shown = picture(f"data:image/svg+xml;base64,{PNG}", "Picture")
    assert isinstance(shown, Picture)
    assert shown.data_uri.startswith("data:image/png;base64,")


@for_each(
    "source",
    [
        f"data:image/svg+xml;base64,{SVG}",
        f"data:image/png;base64,{SVG}",
        "data:image/svg+xml,<svg onload=alert(1)>",
        "data:text/html;base64,PGgxPg==",
        f'data:image/png;base64,{PNG}" onerror="alert(1)',
        "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(PICTURE_BYTES)).decode(),
        "data:image/png;base64,",
        "data:",
    ],
    ids=["svg", "svg called png", "svg as text", "html", "broken out of", "too large", "empty", "nothing"],
)
def test_everything_else_is_only_named(source: str) -> None:
    shown = picture(source, "Picture")
    assert isinstance(shown, Reference)
    assert not shown.url


def test_remote_picture_is_named_with_its_host_and_never_loaded() -> None:
    shown = picture("https://tracker.example.com/pixel.png?customer=1", "Picture")
    assert shown == Reference(
        "eye-off",
        "Picture",
        "tracker.example.com, not loaded",
        url="https://tracker.example.com/pixel.png?customer=1",
    )


@for_each(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " https://example.com",
        "https://example.com\n/x",
        "https://exa\u202emple.com",
        "https://bank.example@evil.example/",
        "https:\\\\example.com",
        "http://[::1",
        "//example.com",
        "ftp://example.com",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "blob:https://example.com/x",
        "view-source:https://example.com",
        "https://b\u0430nk.example/",
        "https://example%2ecom/",
        "https://example.com:99999999/",
        "https://",
        "https://example.com/" + "x" * 5_000,
        "\ud800",
        "",
    ],
)
def test_only_plain_web_addresses_can_be_followed(address: str) -> None:
    assert link(address).url == ""


def test_link_shows_where_it_leads_whatever_its_title_claims() -> None:
    shown = link("https://evil.example/login", "https://bank.example")
    assert (shown.label, shown.detail) == ("https://bank.example", "https://evil.example/login")


@for_each(
    ("address", "host"),
    [
        ("https://shop.example/a?b#c", "shop.example"),
        ("http://shop.example:8080/", "shop.example:8080"),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
    ],
)
def test_a_link_names_the_host_that_it_opens(address: str, host: str) -> None:
    assert (link(address).url, link(address).host) == (address, host)


def test_file_is_named_with_type_and_size() -> None:
    shown = file_part(
        {"filename": "report.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQKJcOkw7zDtsOfCg=="}
    )
    assert (shown.label, shown.detail) == ("report.pdf", "application/pdf, about 21 bytes")
