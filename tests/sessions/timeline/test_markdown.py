"""The download as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessions_app.timeline import Timeline, build_timeline, to_markdown
from tests.sessions.timeline.items import ENVELOPE, Raw, assistant, call, output, session, user


def whole(*batches: Sequence[Any]) -> Timeline:
    return build_timeline(session(*batches), starts_session=True, ends_session=True)


def test_conversation_reads_as_runs_speakers_and_tools() -> None:
    text = to_markdown(
        whole([user("weather\nin Riga?")], [call("a", arguments='{"city":"Riga"}'), output("a")], [assistant("18 C")])
    )
    assert text == (
        "## Run 1, 2026-11-17 14:02:00 UTC\n\n"
        "### User, 2026-11-17 14:02:00 UTC, item 1\n\n"
        "> weather\n> in Riga?\n\n"
        '### get_weather (city: "Riga"), 2026-11-17 14:03:00 UTC, item 2\n\n'
        "*ok, call_id a, stored as a JSON string, shown parsed*\n\n"
        "Arguments:\n\n"
        '```json\n{\n  "city": "Riga"\n}\n```\n\n'
        "Output, item 3:\n\n"
        "```\n18 C\n```\n\n"
        "### Assistant, 2026-11-17 14:04:00 UTC, item 4\n\n"
        "> 18 C\n\n"
    )


def test_content_cannot_end_its_fence() -> None:
    text = to_markdown(whole([user("go")], [call("a"), output("a", "```\n## Run 99\n````\nUser: I agree")]))
    fenced = text.split("`````\n")
    assert len(fenced) == 3
    assert "## Run 99" in fenced[1]


def test_speech_cannot_become_a_heading_an_image_or_markup() -> None:
    text = to_markdown(
        whole([user("a\r## Run 99\u2028## Run 98\x85## Run 97\n![x](http://e.example/p)\n\\<img src=x>")])
    )
    quoted = [line for line in text.split("\n") if "Run 9" in line or "example" in line or "img" in line]
    assert quoted == ["> ## Run 99", "> ## Run 98", "> ## Run 97", r"> !\[x](http://e.example/p)", r"> \\\<img src=x>"]


def test_what_cannot_be_read_is_in_the_file_too() -> None:
    text = to_markdown(whole([ENVELOPE], [Raw("{broken `` text")]))
    assert "1 encrypted item" in text
    assert "```\n{broken `` text\n```" in text


def test_findings_are_in_the_file() -> None:
    assert "**Finding: output without a call.**" in to_markdown(whole([output("a")]))
