"""The wheel holds all that a console needs: it is built, installed away from the checkout, and run from there."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath

import pytest
from django.conf import settings
from packaging.requirements import Requirement

from tests.ops.demos import Demo, sign_in
from tests.ports import free_port

pytestmark = pytest.mark.slow

CARRIED = {
    **{package: PurePosixPath(package) for package in ("memadmin", "sessions_app", "memories_app")},
    **{assets: PurePosixPath("memadmin/assets", assets) for assets in ("templates", "static")},
}
"""Where in the wheel the files of a folder of the checkout are."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)],
        check=True,
        cwd=settings.CHECKOUT_DIR,
        stdout=subprocess.DEVNULL,
    )
    (built,) = folder.glob("memadmin-*.whl")
    return built


@pytest.fixture(scope="module")
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with what requirements.txt names and nothing else: no tools, no extras, no checkout.

    The packages are links to those that are installed here, for a test downloads nothing.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for requirement in locked_requirements():
        installed = distribution(requirement.name)
        for name in {PurePosixPath(file).parts[0] for file in installed.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(installed.locate_file(name))  # type: ignore[arg-type]
    return folder


def locked_requirements() -> Iterator[Requirement]:
    lines = (settings.CHECKOUT_DIR / "requirements.txt").read_text().splitlines()
    for line in lines:
        if re.match(r"\w", line):
            requirement = Requirement(line.rstrip("\\ "))
            if requirement.marker is None or requirement.marker.evaluate():
                yield requirement


def test_every_file_is_in_the_wheel(wheel: Path) -> None:
    carried = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        (place / file.relative_to(settings.CHECKOUT_DIR / folder)).as_posix()
        for folder, place in CARRIED.items()
        for file in (settings.CHECKOUT_DIR / folder).rglob("*")
        if file.is_file() and file.parent.name != "__pycache__"
    }
    assert len(wanted) > 300
    assert wanted - carried == set()


def test_installed_with_pip_it_gives_a_working_demo(wheel: Path, clean_environment: Path, tmp_path: Path) -> None:
    # Without an index pip refuses the wheel if it needs anything that requirements.txt does not name.
    pip = [str(clean_environment / "bin" / "python"), "-m", "pip", "--isolated", "--quiet"]
    subprocess.run([*pip, "install", "--no-index", str(wheel)], check=True, cwd=tmp_path)
    subprocess.run([*pip, "check"], check=True, cwd=tmp_path)

    demo = Demo(
        Path(),
        free_port(),
        command=[str(clean_environment / "bin" / "memadmin")],
        folder=tmp_path,
        HOME=str(tmp_path),
        XDG_DATA_HOME=str(tmp_path / "data-of-the-user"),
        MEMADMIN_DATA_DIR="",
    )
    try:
        assert str(tmp_path / "data-of-the-user" / "memadmin") in demo.wait_until_it_greets()
        browser = sign_in(demo, "support")

        def read(address: str) -> str:
            return str(browser.open(demo.address + address).read().decode())

        session = re.search(r"/sessions/[0-9a-f-]{36}/", read("/sessions/"))
        assert session
        timeline = read(session[0])
        assert 'class="tl-item' in timeline
        vendored = {
            *re.findall(r'(?:href|src)="(/static/[^"#]+)', timeline),
            *re.findall(r'href="(/static/[^"]+\.svg)#', timeline),
        }
        assert {PurePosixPath(each).suffix for each in vendored} == {".css", ".js", ".svg"}
        for each in vendored:
            assert read(each)
        assert demo.stop() == 0
    finally:
        if demo.process.poll() is None:
            demo.stop()
    complaint = demo.complaint()
    assert "ERROR" not in complaint
    assert "Traceback" not in complaint
