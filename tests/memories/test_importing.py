"""Memories that come from files of other systems."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories_app.models import LearningStop, Memory
from tests.builders import make_subject

pytestmark = pytest.mark.django_db


def imported(tmp_path: Path, value: Any) -> tuple[str, str]:
    """What the command tells, and what it complains of."""
    file = tmp_path / "profile.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    told, complaints = StringIO(), StringIO()
    try:
        call_command("import_memories", str(file), stdout=told, stderr=complaints)
    except SystemExit:
        assert complaints.getvalue()
    return told.getvalue(), complaints.getvalue()


def test_a_profile_becomes_proposals_once(tmp_path: Path) -> None:
    profile = {"user_42": {"favorite_drink": "chai"}}
    assert "1 proposed, 0 known" in imported(tmp_path, profile)[0]
    assert "0 proposed, 1 known" in imported(tmp_path, profile)[0]
    memory = Memory.objects.get()
    assert memory.statement == "Their favorite drink is chai."
    assert (memory.kind, memory.key, memory.source) == ("preference", "favorite_drink", "import")
    assert (memory.status, memory.subject and memory.subject.label) == ("proposed", "user_42")


def test_what_cannot_be_read_is_named_and_the_rest_is_proposed(tmp_path: Path) -> None:
    LearningStop.objects.create(subject=make_subject("says_no"))
    told, complaints = imported(
        tmp_path,
        {
            "a": 7,
            "b": {"x": [1], "y": "", "tea": "green", "z": "n" * 3000},
            "says_no": {"tea": "black"},
            "": {"t": "u"},
        },
    )
    assert "1 proposed, 0 known already, 6 not readable" in told
    for place in ("a:", "b.x:", "b.y:", "b.z:", "says_no.tea:", ".t:"):
        assert any(line.startswith(place) for line in complaints.splitlines()), place


@pytest.mark.parametrize("text", ["[]", "nonsense", "", "[" * 100_000])
def test_another_file_is_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(CommandError):
        imported(tmp_path, text)
