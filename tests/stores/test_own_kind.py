"""A kind of one's own, as docs/own-kind.md has it: the example there is run, and has to keep the contract."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from agents.memory import SessionABC
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from sessions_app import registry
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores.checks import kinds_of_stores_are_there
from sessions_app.stores.kinds import kinds
from tests.stores.contract import Agent, Item, StoreContract, Trouble, in_agent


class LinesSession(SessionABC):
    """A team's own session class, which the SDK's runner takes like its own."""

    def __init__(self, session_id: str, folder: Path) -> None:
        self.session_id = session_id
        self.file = folder / f"{quote(session_id, safe='')}.jsonl"

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    async def get_items(self, limit: int | None = None) -> Any:
        return [json.loads(line) for line in self.lines()][-(limit or 0) :]

    async def add_items(self, items: Any) -> None:
        with self.file.open("a") as file:
            file.writelines(json.dumps(item) + "\n" for item in items)

    async def pop_item(self) -> Any:
        *rest, last = self.lines()
        self.file.write_text("".join(f"{line}\n" for line in rest))
        return json.loads(last)

    async def clear_session(self) -> None:
        self.file.unlink(missing_ok=True)


class LinesAgent(Agent):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.store = declare_store("lines", kind="lines", options={"path": str(folder)})
        attach_store(self.store)

    def session(self, session_id: str) -> LinesSession:
        return LinesSession(session_id, self.folder)

    def add(self, session_id: str, *items: Item) -> None:
        in_agent(self.session(session_id).add_items(items))

    def read(self, session_id: str) -> list[Item]:
        return cast(list[Item], in_agent(self.session(session_id).get_items()))

    def pop(self, session_id: str) -> None:
        in_agent(self.session(session_id).pop_item())

    def forget(self, session_id: str) -> None:
        in_agent(self.session(session_id).clear_session())

    def stored(self, session_id: str) -> list[str]:
        return self.session(session_id).lines()

    def leftovers(self, words: str) -> list[str]:
        return [file.name for file in sorted(self.folder.iterdir()) if words in file.name or words in file.read_text()]

    def can_name(self, session_id: str) -> bool:
        return len(session_id) < 100

    @contextmanager
    def away(self) -> Iterator[str]:
        aside = self.folder.with_name("aside")
        self.folder.rename(aside)
        try:
            yield "There is no folder"
        finally:
            aside.rename(self.folder)

    def troubles(self) -> dict[str, Trouble]:
        return {"folder is gone": self.away}


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example of the documentation as a file outside of this project, named by the setting."""
    text = (settings.CHECKOUT_DIR / "docs" / "own-kind.md").read_text()
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found, "docs/own-kind.md has no example any more"
    (tmp_path / "kinds_of_a_team.py").write_text(found[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(settings, "STORE_KINDS", ["kinds_of_a_team.KIND"])
    kinds.cache_clear()
    yield
    kinds.cache_clear()
    sys.modules.pop("kinds_of_a_team", None)


class TestExample(StoreContract):
    @pytest.fixture
    def agent(self, db: None, example: None, tmp_path: Path) -> LinesAgent:
        return LinesAgent(tmp_path / "lines")

    @pytest.mark.parametrize(("kind", "more"), [("lines", {}), ("json_file", {"ending": ".jsonl"})])
    def test_its_place_is_known_however_it_is_said_and_by_whichever_kind(
        self, agent: LinesAgent, tmp_path: Path, kind: str, more: dict[str, str]
    ) -> None:
        link = tmp_path / "another-name"
        link.symlink_to(tmp_path, target_is_directory=True)
        with pytest.raises(registry.AttachRefused, match="The store lines already uses this location"):
            attach_store(declare_store("again", kind=kind, options={"path": str(link / agent.folder.name), **more}))
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        attach_store(declare_store("third", kind=kind, options={"path": str(elsewhere), **more}))


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nowhere.KIND", "nowhere.KIND cannot be imported"),
        ("sessions_app.stores.base.StoreHealth", "is not a StoreKind"),
        ("sessions_app.stores.sqlite.backend.KIND", "is a second kind called sqlite"),
    ],
)
def test_a_setting_that_names_no_kind_is_told(path: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "STORE_KINDS", [path])
    kinds.cache_clear()
    try:
        with pytest.raises(ImproperlyConfigured, match=sentence):
            kinds()
        (told,) = kinds_of_stores_are_there()
        assert sentence in told.msg
    finally:
        kinds.cache_clear()
