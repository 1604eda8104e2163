"""Stored search texts: typed once, then identified by a random id."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.timezone import now

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import TextSearch
from sessions_app.search_syntax import WORD, Unsearchable

MAX_CHARACTERS = 500


class SearchGone(Exception):
    """The search does not exist, or has expired; the two cannot be told apart."""

    def __init__(self) -> None:
        hours = settings.SEARCH_LIFETIME.total_seconds() / 3600
        super().__init__(f"This search has expired. Searches are stored for {hours:g} hours; search again.")


def remember_search(user: User, text: str) -> TextSearch:
    """Stores a search text for settings.SEARCH_LIFETIME, so that an address contains only its id.

    Raises Unsearchable with a sentence for a text that cannot be searched for.
    """
    text = " ".join(text.split())
    if not text:
        raise Unsearchable("Enter part of an ID or ticket, or words from messages.")
    if "\0" in text:
        raise Unsearchable("The text contains a NUL character, which stored texts cannot contain.")
    if len(text) > MAX_CHARACTERS:
        raise Unsearchable(f"This text has {len(text):,} characters; a search takes up to {MAX_CHARACTERS}.")
    if not WORD.search(text):
        raise Unsearchable("Enter at least one letter or digit to search for.")
    with transaction.atomic():
        search = TextSearch(text=text, searched_by=user, expires_at=now() + settings.SEARCH_LIFETIME)
        # Without the words, which are deleted with the search.
        audit.record(audit_events.SEARCH_MADE, by=user, target=search)
        search.save()
        return search


def search_for(search_id: UUID) -> TextSearch:
    """Raises SearchGone. Any user with its id may use it: links to a search are sent to colleagues."""
    search = TextSearch.objects.unexpired(search_id)
    if search is None:
        raise SearchGone
    return search
