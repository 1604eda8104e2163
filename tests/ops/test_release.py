"""What `make release` requires and publishes. The packages are those that are installed here; nothing is downloaded."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from tests.ops.environments import linked_environment, locked_requirements
from tools import release


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of which 1.2.0 can be released."""
    (tmp_path / "memadmin").mkdir()
    (tmp_path / "memadmin/__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2026-05-01)\n")
    release.git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(checkout: Path) -> None:
    release.git(checkout, "add", "--all")
    names = ("-c", "user.name=maintainers", "-c", "user.email=maintainers@memadmin.invalid")
    release.git(checkout, *names, "commit", "--quiet", "--allow-empty", "--message", "a commit")


def test_the_version_of_the_package_is_released(checkout: Path) -> None:
    release.git(checkout, "tag", "v1.2.0")
    assert release.releasable_version(checkout) == "1.2.0"


def test_a_version_without_a_dated_section_is_not_released(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased (1.2.0)\n")
    commit(checkout)
    with pytest.raises(release.NotReleasable, match=r'no section "## 1\.2\.0 \(YEAR-MONTH-DAY\)"'):
        release.releasable_version(checkout)


def test_what_is_not_committed_is_not_released(checkout: Path) -> None:
    (checkout / "new.py").write_text("")
    with pytest.raises(release.NotReleasable, match="not committed"):
        release.releasable_version(checkout)


def test_a_version_is_not_released_twice(checkout: Path) -> None:
    release.git(checkout, "tag", "v1.2.0")
    commit(checkout)
    with pytest.raises(release.NotReleasable, match=r"The tag v1\.2\.0 is at another commit"):
        release.releasable_version(checkout)


def test_files_are_verified_by_their_hashes(tmp_path: Path) -> None:
    (tmp_path / "memadmin-1.2.0.tar.gz").write_bytes(b"source")
    (tmp_path / "memadmin-1.2.0.cdx.json").write_text("{}")
    release.write_hashes(tmp_path)
    verify = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(verify, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.count(": OK") == 2
    (tmp_path / "memadmin-1.2.0.tar.gz").write_bytes(b"another source")
    assert subprocess.run(verify, cwd=tmp_path, check=False, capture_output=True).returncode == 1


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("environment")
    linked_environment(folder)
    return release.packages_of(folder / "bin/python")


@pytest.mark.release
def test_the_bill_names_every_locked_package_and_npm_package_with_a_licence(
    packages: dict[str, Any], tmp_path: Path
) -> None:
    bill = release.bill_of_materials(packages, "1.2.0")
    release.write_bill(bill, tmp_path, "1.2.0")
    assert bill["metadata"]["component"]["version"] == "1.2.0"
    named = {canonicalize_name(component["name"]) for component in bill["components"]}
    assert {canonicalize_name(requirement.name) for requirement in locked_requirements()} <= named
    licences = (tmp_path / "memadmin-1.2.0-licences.txt").read_text()
    for line in ("chart.js 4.6.1: MIT", "@fontsource-variable/inter 5.3.0: OFL-1.1", "wordllama "):
        assert f"\n{line}" in licences
    assert all(release.licence_of(component) for component in bill["components"])


@pytest.mark.release
def test_the_client_has_a_bill_of_its_own_without_django(tmp_path: Path) -> None:
    lock = release.LOCKS["-client"]
    linked_environment(tmp_path / "environment", lock)
    bill = release.bill_of_materials(release.packages_of(tmp_path / "environment/bin/python"), "1.2.0", lock)
    named = {canonicalize_name(component["name"]) for component in bill["components"]}
    assert {canonicalize_name(requirement.name) for requirement in locked_requirements(lock)} <= named
    assert {"openai-agents", "psycopg", "wordllama"} <= named
    assert not any(name.startswith("django") for name in named)
    release.write_bill(bill, tmp_path, "1.2.0-client")
    assert "\nwordllama " in (tmp_path / "memadmin-1.2.0-client-licences.txt").read_text()


@pytest.mark.release
def test_a_package_without_a_known_licence_stops_it(packages: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(release.LICENCES, "wordllama")
    with pytest.raises(release.NotReleasable, match="licence of wordllama is unknown"):
        release.bill_of_materials(packages, "1.2.0")


def test_a_package_that_is_not_locked_stops_it() -> None:
    other = {"name": "other", "version": "1.0", "licenses": [{"license": {"id": "MIT"}}]}
    packages = {"metadata": {"component": {"name": "memadmin"}}, "components": [other]}
    with pytest.raises(release.NotReleasable, match=r"other 1\.0 is not what requirements.txt names"):
        release.bill_of_materials(packages, "1.2.0")


def test_every_vendored_file_is_in_the_table_that_the_bill_is_made_from() -> None:
    assert {component["name"] for component in release.vendored()} == {
        "@tabler/core",
        "@tabler/icons",
        "@fontsource-variable/inter",
        "chart.js",
    }
    table = (release.ROOT / "static/vendor/README.md").read_text()
    for file in (release.ROOT / "static/vendor").iterdir():
        assert file.name == "README.md" or file.name in table
