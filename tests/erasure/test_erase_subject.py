"""The command `erase_subject`."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from memadmin.erasure.management.commands import erase_subject
from memadmin.erasure.models import SubjectRequest
from memories_app.models import Memory
from tests.builders import make_subject
from tests.erasure.builders import work_off
from tests.memories.builders import proposed


def call(*given: str) -> str:
    out = StringIO()
    call_command("erase_subject", "ada", *given, stdout=out)
    return out.getvalue()


def test_it_counts_and_erases(
    agent_tables: None, officer: User, second: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase_subject, "RECEIPT_SECONDS", 0)
    proposed("likes tea", subject=make_subject("ada"))
    counted: dict[str, Any] = json.loads(call("--preview", "--json"))
    assert counted["counts"]["memories"] > 0
    assert f"counts  memories: {counted['counts']['memories']}" in call("--preview")
    assert Memory.objects.exists()
    people = ("--requested-by", officer.username, "--approved-by", second.username)
    receipt = tmp_path / "receipt.json"
    with pytest.raises(CommandError, match="needs a --reason"):
        call(*people)
    erase = (*people, "--reason", "consent", "--receipt", str(receipt), "--json")
    with pytest.raises(CommandError, match="is not finished"):
        call(*erase)  # the log has not sequenced the events yet
    assert not Memory.objects.exists()
    assert not receipt.exists()
    work_off(SubjectRequest.objects.get())
    assert SubjectRequest.objects.get().state == "scanning"
