"""Messages in the form of their Markdown: asked for by an address, and never by default."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from sessions_app.models import SessionRecord, SessionStore
from sessions_app.views.window import PAGE_ITEMS
from tests.agents import add_items, assistant

REPLY = "**Done.** Write to anna@example.com, or see [the rules](https://example.com/rules)"


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", assistant(REPLY))
    return SessionRecord.objects.get()


def test_messages_are_shown_as_they_were_typed_unless_asked_otherwise(record: SessionRecord, operator: Client) -> None:
    page = operator.get(record.get_absolute_url())
    assert "**Done.**" in page.text
    formed = operator.get(f"{record.get_absolute_url()}{page.context['other_form']}")
    assert "<strong>Done.</strong>" in formed.text
    back = operator.get(f"{record.get_absolute_url()}{formed.context['other_form']}")
    assert "**Done.**" in back.text


def test_masks_come_before_the_form_and_links_are_text(record: SessionRecord, operator: Client) -> None:
    page = operator.get(record.get_absolute_url(), {"form": "markdown"}).text
    assert 'Write to <span class="masked">e-mail ••••@example.com</span>, or see the rules (https://' in page
    assert "anna" not in page
    assert 'href="https://example.com' not in page


def test_the_form_goes_along_from_page_to_page_and_while_the_agent_writes(
    record: SessionRecord, operator: Client
) -> None:
    for number in range(0, PAGE_ITEMS, 10):
        add_items("s", "On", *[assistant(f"**{number + place}**") for place in range(10)])
    page = operator.get(record.get_absolute_url(), {"form": "markdown", "start": ""})
    later = operator.get(page.context["later_url"])
    assert "<strong>99</strong>" in later.text
    add_items("s", assistant("**new**"))
    assert "<strong>new</strong>" in operator.get(later.context["live_url"]).text
    earlier = operator.get(later.context["earlier_url"])
    assert "<strong>Done.</strong>" in earlier.text


def test_unknown_form_is_none(record: SessionRecord, operator: Client) -> None:
    assert "**Done.**" in operator.get(record.get_absolute_url(), {"form": "html"}).text
    assert operator.get(reverse("sessions:live", args=[record.pk]), {"form": "x"}).status_code == 200


def test_what_a_search_found_is_marked_and_the_form_stays(record: SessionRecord, operator: Client) -> None:
    add_items("s", assistant("The *rules* of <rules>"))
    found = operator.post(reverse("sessions:find", args=[record.pk]), {"q": "rules", "form": "markdown"}, follow=True)
    assert "see the <mark>rules</mark> (https://example.com/<mark>rules</mark>)" in found.text
    assert "The <em><mark>rules</mark></em> of &lt;<mark>rules</mark>&gt;" in found.text
    onward = operator.get(found.context["find"].next_url, follow=True)
    assert "<em><mark>rules</mark></em>" in onward.text
