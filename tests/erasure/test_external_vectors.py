"""An erasure removes vectors from an external index, and is not complete before it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.preview import Preview
from memadmin.runs.models import Run
from memories_app.models import Evidence, Memory
from memories_app.recall import indexing, vectors
from memories_app.recall.vectors import IndexAway, VectorIndex
from sessions_app.models import SessionRecord
from tests.agents import add_items, attach_main_store
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import erased_of, retry
from tests.memories import builders as memories
from tests.retention.builders import make_hold

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def index(settings: Settings) -> Iterator[VectorIndex]:
    """Qdrant within this process is the index that is configured, and empty."""
    settings.VECTOR_INDEX = "qdrant::memory:"
    vectors._outside.cache_clear()
    found = vectors.outside()
    assert found is not None
    yield found
    vectors._outside.cache_clear()


def in_index(index: VectorIndex, statement: str, **columns: Any) -> Memory:
    memory = memories.approved(statement, is_embedded=True, **columns)
    while indexing.carry_vectors():
        pass
    assert index.held([memory.pk])
    return memory


def test_an_index_that_does_not_respond_is_waited_for(
    agent_tables: None, index: VectorIndex, officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach_main_store()
    ada, bob = make_subject("ada-1"), make_subject("bob-1")
    tea, train = in_index(index, "Drinks green tea.", subject=ada), in_index(index, "Travels by train.", subject=bob)
    request = approved(ada, by=officer, second=second)
    counted = {holder.name: holder.counted.rows for holder in Preview.of_json(request.preview).holders}
    assert counted["vectors"] == 1

    def away(*_: object) -> None:
        raise IndexAway

    with monkeypatch.context() as broken:
        broken.setattr(index, "drop", away)
        run = work_off(request)
        assert (run.state, run.reason) == (Run.State.WAITING, "The external vector index does not respond.")
        assert request.state == SubjectRequest.State.RUNNING
        # Without it nobody could say any more which vectors are left.
        assert Memory.objects.filter(pk=tea.pk).exists()
    retry(run)
    work_off(request)
    assert request.state == SubjectRequest.State.SCANNING
    assert not Memory.objects.filter(pk=tea.pk).exists()
    # At once, before the job for changed memories has run.
    assert set(index.held([tea.pk, train.pk])) == {train.pk}
    assert erased_of(request)["vectors"] == 1


def test_a_held_memory_keeps_its_vector(agent_tables: None, index: VectorIndex, officer: User, second: User) -> None:
    attach_main_store()
    ada = make_subject("ada-1")
    add_items("a1", "I drink green tea.")
    add_items("a2", "I travel by train.")
    SessionRecord.objects.update(subject=ada)
    tea, train = in_index(index, "Drinks green tea.", subject=ada), in_index(index, "Travels by train.", subject=ada)
    held = SessionRecord.objects.get(session_id="a1")
    Evidence.objects.create(memory=tea, record_id=held.pk, session_id="a1", quote="I drink green tea.")
    make_hold(held, by=officer)
    request = approved(ada, by=officer, second=second)
    work_off(request)
    assert set(index.held([tea.pk, train.pk])) == {tea.pk}


def test_without_an_external_index_there_is_no_such_step(agent_tables: None, officer: User, second: User) -> None:
    attach_main_store()
    request = approved(make_subject("ada-1"), by=officer, second=second)
    work_off(request)
    assert not ErasureStep.objects.filter(request=request, name="vectors").exists()
