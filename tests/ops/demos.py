"""A demo that tests start as a program, and somebody who signs in to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from threading import Timer
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import psutil
import pytest
from django.conf import settings

PASSWORD = "tried by a test"

GREETS_WITHIN_SECONDS = 600
"""Minutes more than it takes on a busy machine."""


class Demo:
    """A running `memadmin demo` with a data directory and a port of its own."""

    def __init__(
        self,
        data_dir: Path,
        port: int,
        *,
        command: Sequence[str] = (sys.executable, "manage.py"),
        folder: Path = settings.CHECKOUT_DIR,
        **variables: str,
    ) -> None:
        """`folder` is where it is started, by `command`."""
        ours = ("MEMADMIN_", "OPENAI_", "DJANGO_SETTINGS_MODULE")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.address = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [*command, "demo"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **inherited,
                "MEMADMIN_DATA_DIR": str(data_dir),
                "MEMADMIN_PORT": str(port),
                "MEMADMIN_DEMO_PASSWORD": PASSWORD,
                **variables,
            },
        )

    def wait_until_it_greets(self) -> str:
        """Greeting of the demo.

        A demo without a greeting is stopped after GREETS_WITHIN_SECONDS, and fails the test.
        """
        assert self.process.stdout
        said = []
        patience = Timer(GREETS_WITHIN_SECONDS, self.process.terminate)
        patience.start()
        try:
            for line in self.process.stdout:
                said.append(line)
                if line.startswith("Press Ctrl-C"):
                    return "".join(said)
        finally:
            patience.cancel()
        pytest.fail(f"It ended with {self.process.wait()}: {''.join(said)}{self.complaint()}")

    def complaint(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read()

    def programs(self) -> list[psutil.Process]:
        return [psutil.Process(self.process.pid), *psutil.Process(self.process.pid).children(recursive=True)]

    def stop(self, signal_number: int = signal.SIGINT) -> int:
        self.process.send_signal(signal_number)
        return self.process.wait(60)


def sign_in(demo: Demo, name: str) -> OpenerDirector:
    """A browser for this person, whom the login led on to a page that everybody may see."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    page = browser.open(f"{demo.address}/accounts/login/").read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token
    form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token[1], "next": "/healthz"}
    arrived = browser.open(f"{demo.address}/accounts/login/", urlencode(form).encode())
    assert arrived.url == f"{demo.address}/healthz"
    return browser
