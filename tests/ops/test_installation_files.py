"""Container file, compose file and systemd units against the commands, settings and files that they name.

The image is not built, for that takes a container engine. Its build of the wheel, from the files that it copies, is
carried out.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands, load_command_class

from memadmin.variables import SECTIONS
from memadmin.web.serving import STOP_WITHIN

ROOT = Path(settings.CHECKOUT_DIR)
UNITS = sorted((ROOT / "docs/systemd").glob("memadmin-w*.service"))
KNOWN = {variable.name for variables in SECTIONS.values() for variable in variables}
OF_POSTGRES_IMAGE = {"POSTGRES_DB", "POSTGRES_PASSWORD"}


def check_command(words: Sequence[str]) -> dict[str, Any]:
    """Options of a command of memadmin or Django. Fails unless it exists and has them."""
    name, *options = words
    command = load_command_class(get_commands()[name], name)
    return vars(command.create_parser("memadmin", name).parse_args(list(options)))


def section(unit: Path, name: str) -> dict[str, list[str]]:
    """The values of each key of a section, since a key may come several times."""
    text = unit.read_text().partition(f"[{name}]\n")[2].partition("\n[")[0]
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return values


def container_file() -> list[tuple[str, str]]:
    """Instructions with their arguments."""
    text = (ROOT / "Containerfile").read_text()
    return [
        (line.split()[0], line.partition(" ")[2]) for line in text.splitlines() if line and not line.startswith("#")
    ]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return found


def test_there_are_units_of_both_processes() -> None:
    assert [unit.name for unit in UNITS] == ["memadmin-web.service", "memadmin-worker@.service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_exists_under_its_own_user(unit: Path) -> None:
    parser = RawConfigParser(strict=False)
    parser.read(unit)  # as INI, which systemd's files are
    service = section(unit, "Service")
    program, *words = shlex.split(service["ExecStart"][0])
    assert program == "/opt/memadmin/bin/memadmin"
    check_command([word.replace("%i", "1") for word in words])
    assert service["User"] == ["memadmin"]
    assert service["ProtectSystem"] == ["strict"]
    (variable,) = service["Environment"]
    name, _, folder = variable.partition("=")
    assert name in KNOWN
    # The only folder that the process may write to.
    assert folder == f"/var/lib/{service['StateDirectory'][0]}"


def test_workers_report_metrics_at_a_port_of_their_own_on_their_machine_alone() -> None:
    """docs/monitoring/alerts.yml has alerts on them."""
    command = section(ROOT / "docs/systemd/memadmin-worker@.service", "Service")["ExecStart"][0]
    ports = [check_command(shlex.split(command.replace("%i", number))[1:])["metrics_port"] for number in "129"]
    assert ports == [9101, 9102, 9109]
    assert check_command(shlex.split(command.replace("%i", "1"))[1:])["metrics_host"] == "127.0.0.1"
    worker = compose()["services"]["worker"]
    assert worker["ports"] == [f"127.0.0.1:9101:{check_command(worker['command'])['metrics_port']}"]


def test_systemd_waits_longer_than_the_web_server_for_its_requests() -> None:
    service = section(ROOT / "docs/systemd/memadmin-web.service", "Service")
    assert int(service["TimeoutStopSec"][0]) > STOP_WITHIN.total_seconds()


def test_the_image_runs_memadmin_as_an_ordinary_user() -> None:
    instructions = container_file()
    assert [kind for kind, _ in instructions].count("FROM") == 2
    last = dict(instructions)
    assert last["USER"] == "10001:10001"
    assert json.loads(last["ENTRYPOINT"]) == ["memadmin"]
    check_command(json.loads(last["CMD"]))
    names = re.findall(r"(MEMADMIN_\w+)=", last["ENV"])
    assert names
    assert set(names) <= KNOWN


@pytest.mark.release
@pytest.mark.slow
def test_the_wheel_is_built_from_the_files_that_the_image_copies(tmp_path: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    source = tmp_path / "source"
    source.mkdir()
    for kind, value in container_file():
        if kind == "COPY" and not value.startswith("--from"):
            *names, target = value.split()
            for name in names:
                assert f"!{name}" in ignored
                path = ROOT / name
                if path.is_dir():
                    shutil.copytree(path, source / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(path, source / target)
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "."]
    subprocess.run([*wheel, "--wheel-dir", str(tmp_path)], cwd=source, check=True)
    (built,) = tmp_path.glob("memadmin-*.whl")
    carried = set(zipfile.ZipFile(built).namelist())
    assert {"memadmin/assets/templates/base.html", "memadmin/assets/static/app.css", "memadmin/wsgi.py"} <= carried


def test_the_services_start_commands_that_exist_with_known_settings() -> None:
    services = compose()["services"]
    assert set(services) == {"database", "setup", "web", "worker"}
    for name, service in services.items():
        if "command" in service:
            check_command(service["command"])
        assert set(service["environment"]) <= (OF_POSTGRES_IMAGE if name == "database" else KNOWN)


def test_the_services_may_write_to_their_volumes_alone() -> None:
    found = compose()
    for name, service in found["services"].items():
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in found["volumes"]
        if name != "database":
            assert service["read_only"] is True
            assert service["cap_drop"] == ["ALL"]


def test_only_this_machine_reaches_the_processes_and_only_the_worker_has_the_signing_key() -> None:
    services = compose()["services"]
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:8000:8000"], "worker": ["127.0.0.1:9101:9101"]}
    assert [name for name, service in services.items() if "MEMADMIN_SIGNING_KEY" in service["environment"]] == [
        "worker"
    ]
    roles = {name: services[name]["environment"]["DATABASE_URL"] for name in ("web", "worker")}
    assert "memadmin_web:" in roles["web"]
    assert "memadmin_worker:" in roles["worker"]
