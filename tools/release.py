"""`make release`: what is published of a version, in dist/.

- the source distribution and the wheel, for the console and for the client of agents
- `memadmin-VERSION.cdx.json`: a software bill of materials (CycloneDX 1.6): what requirements.txt names, and the npm
  packages of which static/vendor/ has files
- `memadmin-VERSION-licences.txt`: the licence of each of them
- the same two of the client alone, by requirements-client.txt: `memadmin-VERSION-client.cdx.json`, and so on
- `SHA256SUMS`, for `sha256sum --check`

The version is that of memadmin/__init__.py. CHANGELOG.md must have a section of it, and everything must be committed.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r'^__version__ = "(?P<version>[^"]+)"$', re.MULTILINE)
LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>\S+)", re.MULTILINE)
VENDORED = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<version>[\d.]+) \| (?P<licence>[^,|]+), `", re.MULTILINE)
LOCKS = {"": "requirements.txt", "-client": "requirements-client.txt"}
"""The lock file of the console, and that of the client of agents, by what their bills are called."""

LICENCES = {"ahocorasick-rs": "Apache-2.0", "wordllama": "MIT"}
"""Of packages that state theirs in a form that CycloneDX does not read: from their own metadata."""


class NotReleasable(Exception):
    """The message says what to do first."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build what is published of this version.")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="an empty folder, or one that is made")
    into = parser.parse_args().into
    try:
        version = releasable_version(ROOT)
        if into.exists() and any(into.iterdir()):
            raise NotReleasable(f"{into} is not empty. Move its files away, for only one version belongs in it.")
        into.mkdir(parents=True, exist_ok=True)
        build(into)
        for part, lock in LOCKS.items():
            with tempfile.TemporaryDirectory() as folder:
                python = installed(Path(folder), into, lock)
                bill = bill_of_materials(packages_of(python), version, lock)
            write_bill(bill, into, f"{version}{part}")
        write_hashes(into)
    except NotReleasable as problem:
        sys.exit(str(problem))
    except subprocess.CalledProcessError as problem:
        sys.exit(f"Not released: {' '.join(map(str, problem.cmd))} ended with {problem.returncode}.")
    print(f"{version} is in {into}. Tag this commit v{version}, and publish all files together.")


def releasable_version(root: Path) -> str:
    """The version of the checkout at `root`. NotReleasable with what is missing."""
    found = VERSION.search((root / "memadmin/__init__.py").read_text())
    if found is None:
        raise NotReleasable('memadmin/__init__.py has no line __version__ = "…".')
    version = found["version"]
    if not re.search(
        rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    ):
        raise NotReleasable(f'CHANGELOG.md has no section "## {version} (YEAR-MONTH-DAY)".')
    if git(root, "status", "--porcelain"):
        raise NotReleasable("There are changes that are not committed. A release is built from a commit.")
    tag = git(root, "tag", "--list", f"v{version}")
    if tag and git(root, "rev-list", "-n", "1", tag) != git(root, "rev-parse", "HEAD"):
        raise NotReleasable(f"The tag {tag} is at another commit. Give memadmin/__init__.py a new version.")
    return version


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def build(into: Path) -> None:
    """The source distribution and, made of it alone, the wheel."""
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(ROOT)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def installed(folder: Path, wheels: Path, lock: str) -> Path:
    """The interpreter of a new environment with the wheel and, by hashes, what a lock file names. Downloads it."""
    venv.create(folder)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
    requirements = str(ROOT / lock)
    subprocess.run([*pip, "install", "--require-hashes", "--requirement", requirements], check=True)
    subprocess.run([*pip, "install", "--no-index", *map(str, wheels.glob("*.whl"))], check=True)
    subprocess.run([*pip, "check"], check=True)
    subprocess.run([str(folder / "bin" / "memadmin"), "--version"], check=True, stdout=subprocess.DEVNULL)
    return python


def packages_of(python: Path) -> dict[str, Any]:
    """The environment of `python` as a CycloneDX document."""
    arguments = ["environment", str(python), "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    tool = [sys.executable, "-m", "cyclonedx_py"]
    done = subprocess.run([*tool, *arguments], check=True, capture_output=True, text=True)
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def bill_of_materials(packages: dict[str, Any], version: str, lock: str = "requirements.txt") -> dict[str, Any]:
    """The document of an environment, completed: with the version, the npm packages, and a licence for each component.

    NotReleasable if the environment has another package or another version than the lock file names, or if a licence
    is unknown.
    """
    bill = copy.deepcopy(packages)
    bill["metadata"]["component"]["version"] = version
    bill["components"] = [component for component in bill["components"] if component["name"] != "memadmin"]
    locked = {
        (canonicalize_name(found["name"]), found["version"]) for found in LOCKED.finditer((ROOT / lock).read_text())
    }
    for component in bill["components"]:
        name = canonicalize_name(component["name"])
        if (name, component["version"]) not in locked:
            raise NotReleasable(f"{name} {component['version']} is not what {lock} names.")
        if not component.get("licenses"):
            if name not in LICENCES:
                raise NotReleasable(f"The licence of {name} is unknown. Look it up, and add it to LICENCES.")
            component["licenses"] = [{"license": {"id": LICENCES[name]}}]
    bill["components"] += vendored()
    return bill


def vendored() -> list[dict[str, Any]]:
    """Components of the npm packages whose files static/vendor/ contains, from the table in its README."""
    return [
        {
            "type": "library",
            "bom-ref": f"npm:{package['name']}",
            "name": package["name"],
            "version": package["version"],
            "purl": f"pkg:npm/{package['name'].replace('@', '%40')}@{package['version']}",
            "licenses": [{"license": {"id": package["licence"].strip()}}],
        }
        for package in VENDORED.finditer((ROOT / "static/vendor/README.md").read_text())
    ]


def licence_of(component: dict[str, Any]) -> str:
    """As the package states it: an SPDX expression, identifiers, or the names of trove classifiers."""
    stated = (
        entry.get("expression") or entry["license"].get("id") or entry["license"]["name"]
        for entry in component["licenses"]
    )
    return "; ".join(dict.fromkeys(name.removeprefix("License :: OSI Approved :: ") for name in stated))


def write_bill(bill: dict[str, Any], into: Path, version: str) -> None:
    (into / f"memadmin-{version}.cdx.json").write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
    lines = [f"memadmin {version}: MIT. It is distributed with, or installs, the following packages.", ""]
    lines += [
        f"{component['name']} {component['version']}: {licence_of(component)}"
        for component in sorted(bill["components"], key=lambda component: component["name"].lower())
    ]
    (into / f"memadmin-{version}-licences.txt").write_text("\n".join(lines) + "\n")


def write_hashes(into: Path) -> None:
    """SHA256SUMS of all files in the folder."""
    files = sorted(path for path in into.iterdir() if path.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (into / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    main()
