"""The wheel holds all that a console needs: it is built, unpacked away from the checkout, and run from there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from django.conf import settings

pytestmark = pytest.mark.slow

RENDER_A_PAGE = """
import django
from django.test import Client
django.setup()
from django.conf import settings
assert not settings.IS_CHECKOUT
page = Client(HTTP_HOST="localhost").get("/accounts/login/")
print(page.status_code, settings.ASSETS_DIR)
"""


def test_the_wheel_runs_without_the_checkout(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)],
        check=True,
        cwd=settings.CHECKOUT_DIR,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = tmp_path.glob("memadmin-*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    (entry_points,) = installed.glob("*.dist-info/entry_points.txt")
    assert "memadmin = memadmin.__main__:main" in entry_points.read_text()

    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMADMIN_")}
    environment = {
        **inherited,
        "PYTHONPATH": os.pathsep.join([str(installed), sysconfig.get_path("purelib")]),
        "DJANGO_SETTINGS_MODULE": "memadmin.settings",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data-of-the-user"),
    }

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command], check=True, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
        ).stdout

    run("-m", "memadmin", "migrate", "--verbosity=0")
    run("-m", "memadmin", "collectstatic", "--noinput", "--verbosity=0")
    assert run("-c", RENDER_A_PAGE) == f"200 {installed}/memadmin/assets\n"
    assert (tmp_path / "data-of-the-user" / "memadmin" / "postgres" / "PG_VERSION").exists()
