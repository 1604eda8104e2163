"""The client as those who write agents get it: from the wheel, without Django, and with the snippet of the docs."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from packaging.requirements import Requirement

from tests.ops.demos import Demo
from tests.ops.environments import built_wheel, linked_environment
from tests.ports import free_port

pytestmark = pytest.mark.release

MOST_DEPENDENCIES = 10

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import memadmin.client, memadmin.values

for package in (memadmin.client, memadmin.values):
    for module in pkgutil.iter_modules(package.__path__):
        print(importlib.import_module(f"{package.__name__}.{module.name}").__name__)
for name in ("django", "procrastinate", "sqlalchemy", "pgvector", "psutil"):
    assert importlib.util.find_spec(name) is None, name
"""

RECALL_BY_MEANING = """
from memadmin.client.embedding import OFFLINE, embed, load
print(len(embed(load(OFFLINE), ["Drinks tea."])[0]))
"""

# What a program adds to the snippet: its customer, its session, and here a model that needs no provider.
PROGRAM = """
import asyncio
from dataclasses import dataclass

from agents import SQLiteSession
from agents.testing import ScriptedModel, assistant_message


@dataclass
class Customer:
    user_id: str
    ticket: str


model = config.model = ScriptedModel([[assistant_message("To your card, as ever.")]])
customer = Customer("cust_48213", "T-90001")
result = asyncio.run(answer(SQLiteSession("from-the-docs"), "I prefer my card. Where is my money?", customer))
print(result.final_output)
print(model.calls[0].system_instructions)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def client(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment with the wheel, what requirements-client.txt names, and nothing else."""
    folder = tmp_path_factory.mktemp("client")
    pip = linked_environment(folder, "requirements-client.txt")
    # Without an index pip refuses the wheel if it needs anything that the lock file does not name.
    subprocess.run([*pip, "install", "--no-index", str(wheel)], check=True, cwd=folder)
    subprocess.run([*pip, "check"], check=True, cwd=folder)
    return folder


def run(client: Path, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(client / "bin/python"), "-c", program]
    return subprocess.run(command, cwd=client, env=variables, capture_output=True, text=True, check=False)


def test_the_client_has_few_dependencies(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(files.read(name).decode())
    needed = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    alone = {each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})}
    console = {each.name for each in needed if each.marker and each.marker.evaluate({"extra": "console"})}
    assert {"openai-agents", "psycopg", "wordllama"} <= alone
    assert len(alone) <= MOST_DEPENDENCIES
    assert "django" in console - alone


def test_every_module_of_the_client_is_imported_without_the_console(client: Path) -> None:
    done = run(client, IMPORT_EVERYTHING)
    assert done.returncode == 0, done.stderr
    for package in ("client", "values"):
        for path in (settings.CHECKOUT_DIR / "memadmin" / package).glob("[a-z]*.py"):
            assert f"memadmin.{package}.{path.stem}\n" in done.stdout


def test_meanings_are_compared_without_an_extra(client: Path) -> None:
    assert run(client, RECALL_BY_MEANING).stdout == "256\n"


def test_the_command_says_what_is_missing(client: Path) -> None:
    command = str(client / "bin/memadmin")
    done = subprocess.run([command, "serve"], cwd=client, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "memadmin: only the client for agents is installed. pip install 'memadmin[console]' brings the console.\n"
    )
    version = subprocess.run([command, "--version"], cwd=client, env={}, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version.stdout)


@pytest.fixture(scope="module")
def greeting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    demo = Demo(tmp_path_factory.mktemp("demo"), free_port())
    try:
        yield demo.wait_until_it_greets()
    finally:
        demo.stop()


def snippet() -> tuple[str, str]:
    """The first example of docs/client.md, and the address in it."""
    text = (settings.CHECKOUT_DIR / "docs/client.md").read_text()
    found = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found
    address = re.search(r'"(postgresql://[^"]+)"', found[1])
    assert address
    return found[1], address[1]


def test_the_snippet_of_the_documentation_runs_on_the_demo(client: Path, greeting: str) -> None:
    example, address = snippet()
    (ours,) = re.findall(r"^  (postgresql://\S+)$", greeting, re.MULTILINE)
    host = ours.partition("?host=")[2]
    with psycopg.connect(host=host, user="postgres", dbname="memadmin", autocommit=True) as administrator:
        with administrator.transaction():
            # As if people had approved it: reviews have tests of their own.
            administrator.execute("SET LOCAL session_replication_role = replica")
            approved = administrator.execute(
                "UPDATE memories_app_memory SET status = 'approved' WHERE id = ("
                " SELECT m.id FROM memories_app_memory AS m JOIN sessions_app_subjectalias AS a USING (subject_id)"
                " WHERE a.key = 'cust_48213' AND status = 'proposed' LIMIT 1) RETURNING statement"
            ).fetchone()
        assert approved
        done = run(client, example.replace(address, ours) + PROGRAM, OPENAI_AGENTS_DISABLE_TRACING="1")
        assert done.returncode == 0, done.stderr
        assert "responding" not in done.stderr
        assert done.stdout.startswith("To your card, as ever.\n")
        assert f'<memories subject="cust_48213">\n- {approved[0]}' in done.stdout
        registered = administrator.execute(
            "SELECT id, ticket FROM sessions_app_sessionrecord WHERE session_id = 'from-the-docs'"
        ).fetchall()
        assert [ticket for _, ticket in registered] == ["T-90001"]
        signals = administrator.execute(
            "SELECT kind FROM memories_app_signal WHERE record_id = %s ORDER BY kind", [registered[0][0]]
        ).fetchall()
        assert signals == [("outcome",), ("preference",)]
        recalls = "SELECT count(*) FROM memories_app_recall WHERE record_id = %s"
        assert administrator.execute(recalls, [registered[0][0]]).fetchone() == (1,)


def test_the_address_of_the_demo_is_that_of_the_agents_role(greeting: str) -> None:
    (ours,) = re.findall(r"^  (postgresql://\S+)$", greeting, re.MULTILINE)
    with psycopg.connect(ours) as agent:
        assert agent.execute("SELECT current_user::text").fetchone() == ("memadmin_agents",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            agent.execute("SELECT FROM auth_user")
