"""Where the list of memories is measured, beside that of sessions: newest, deep, of one subject, and by words.

In a process of its own, on the bench's database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.urls import reverse

from memadmin.web.paging import sign_cursor, sort_keys
from memories_app.models import Memory
from sessions_app.models import Subject
from sessions_app.search.remembered import remember_search
from tests.benchmarks.prepare import PLACES, sign_in

WORDS: Mapping[str, str] = {
    "a word of one in twelve": "refund",
    "three words of one in seven hundred": "refund card prefers",
}


def tell() -> dict[str, Any]:
    """Where the pages are, and the cookie of somebody who may read them; collects the static files they need."""
    call_command("collectstatic", interactive=False, verbosity=0)
    return {"cookie": sign_in()["cookie"], "pages": addresses(User.objects.get(username="bench"))}


def addresses(reader: User) -> dict[str, list[str]]:
    newest = reverse("memories:list")
    memories = Memory.objects.newest_first()
    keys = sort_keys(memories)
    # Each a good way into the list; found by their time, as a page is.
    latest = memories.values_list("proposed_at", flat=True)[0]
    oldest = memories.reverse().values_list("proposed_at", flat=True)[0]
    depths = [latest - (latest - oldest) * place / (PLACES + 1) for place in range(1, PLACES + 1)]
    deep = [sign_cursor("older", memories.filter(proposed_at__lte=depth)[0], keys, "memories") for depth in depths]
    subjects = Subject.objects.filter(aliases__key__startswith="bench_").order_by("pk")[:PLACES]
    return {
        "session list": [reverse("sessions:list")],
        "memories, newest": [newest],
        "memories, deep": [f"{newest}?cursor={cursor}" for cursor in deep],
        "memories, one subject": [f"{newest}?subject={subject.pk}" for subject in subjects],
        **{
            f"memories, {title}": [f"{newest}?search={remember_search(reader, words).pk}"]
            for title, words in WORDS.items()
        },
    }
