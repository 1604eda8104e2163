"""Other words for a memory: who proposes them does not decide, and agents read the old ones until then."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from memories_app.learning.proposing import ChangedSinceRead, propose_change
from memories_app.models import Memory
from memories_app.review.decisions import OwnProposal, approve_memory
from tests.memories.queue import a_reviewer, approved, screened
from tests.people import signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return a_reviewer("ada")


@pytest.fixture
def memory() -> Memory:
    return approved("Drinks tea.", key="drink", agents=["Barista"], data={"drink": "tea"})


def address(memory: Memory) -> str:
    return reverse("memories:change", args=[memory.pk])


def test_it_waits_for_somebody_else(ada: User, memory: Memory) -> None:
    desk = signed_in(ada)
    assert address(memory) in desk.get(memory.get_absolute_url()).text
    assert "Drinks tea." in desk.get(address(memory)).text
    said = {"statement": "Drinks green tea.", "content_hash": memory.content_hash}
    page = desk.post(address(memory), said, follow=True)
    assert "Another reviewer has to approve your change." in page.text
    assert "A newer proposal would replace this memory." in page.text
    proposal = screened(Memory.objects.awaiting_review().get())
    assert (proposal.replaces, proposal.base_version, proposal.proposed_by) == (memory, 1, ada)
    assert (proposal.key, proposal.agents, proposal.data) == ("drink", ["Barista"], {"drink": "tea"})
    assert AuditEvent.objects.filter(type="memory.proposed", object_ref=proposal.pk).exists()
    memory.refresh_from_db()
    assert memory.statement == "Drinks tea."
    read = proposal.content_hash
    with pytest.raises(OwnProposal):
        approve_memory(proposal, by=ada, content_hash=read, base_version=1)
    approve_memory(proposal, by=a_reviewer(), content_hash=read, base_version=1)
    memory.refresh_from_db()
    assert (memory.statement, memory.version, memory.status) == ("Drinks green tea.", 2, "approved")


def test_words_for_a_text_that_changed_meanwhile_are_not_lost(ada: User, memory: Memory) -> None:
    read = memory.content_hash
    Memory.objects.filter(pk=memory.pk).update(statement="Drinks gin.", status="needs_revalidation")
    with pytest.raises(ChangedSinceRead):
        propose_change(memory, by=ada, statement="Drinks green tea.", content_hash=read)
    page = signed_in(ada).post(address(memory), {"statement": "Drinks green tea.", "content_hash": read})
    assert page.status_code == 409
    assert "Your change was not saved; read the current version." in page.text
    assert "Drinks green tea.</textarea>" in page.text
    assert "Drinks gin." in page.text
    assert not Memory.objects.filter(replaces=memory).exists()


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("", "cannot be empty"),
        ("x" * 2001, "at most 2,000 characters"),
        ("Pays with [card •••• 1111].", "the mask itself would be stored"),
        ("Drinks tea.", "The memory already has this text."),
    ],
)
def test_nonsense_is_refused_in_words(statement: str, why: str, ada: User, memory: Memory) -> None:
    page = signed_in(ada).post(address(memory), {"statement": statement, "content_hash": memory.content_hash})
    assert page.status_code == 422
    assert why in page.text
    assert not Memory.objects.filter(replaces=memory).exists()


def test_what_agents_do_not_recall_is_not_changed(ada: User, memory: Memory) -> None:
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.RETIRED)
    desk = signed_in(ada)
    assert address(memory) not in desk.get(memory.get_absolute_url()).text
    page = desk.post(address(memory), {"statement": "Drinks gin.", "content_hash": memory.content_hash})
    assert page.status_code == 409
    assert "Agents no longer use that memory: its status is retired." in page.text
