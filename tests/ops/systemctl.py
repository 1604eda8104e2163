"""A stand-in for `systemctl`, run as a program: it starts and stops what units name, without systemd and its limits.

Arguments: the folder that stands for the root of the file system, the port of the web server, and those of systemctl.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import psutil

OWN_FOLDERS = re.compile(
    r"(?<![\w./])/(etc|opt|var/lib|var/backups|usr/local/sbin)/(?=memadmin|nginx|ssl|systemd|prometheus)"
)
"""The beginnings of the paths that docs/production.md may write to."""

STOPS_WITHIN_SECONDS = 60


class Systemctl:
    def __init__(self, root: Path, web_port: str) -> None:
        self.root, self.web_port = root, web_port

    def carry_out(self, command: str, *words: str) -> None:
        names = [word for word in words if not word.startswith("-")]
        if command == "reload":
            self.reload_nginx(names)
        elif command in ("enable", "start", "stop", "restart", "disable"):
            for name in names if command in ("stop", "restart", "disable") else ():
                self.stop(name)
            for name in names if command not in ("stop", "disable") else ():
                self.start(name)
        elif command != "daemon-reload":
            sys.exit(f"systemctl: {command} has no stand-in")

    def reload_nginx(self, names: list[str]) -> None:
        """On Debian it runs from its installation on; here from the first time on."""
        assert names == ["nginx"]
        pid = self.root / "nginx.pid"
        is_running = pid.exists() and pid.read_text().strip()  # `nginx -t` leaves an empty one
        subprocess.run(["nginx", *(["-s", "reload"] if is_running else [])], check=True)

    def start(self, name: str) -> None:
        """Starts what the unit names, with its settings alone, besides what the test needs to find its database.

        Waits for the end of what has one. A timer has to be there, and starts nothing.
        """
        if name.endswith(".timer"):
            assert (self.root / f"etc/systemd/system/{name}").exists()
            return
        unit, at, instance = name.partition("@")
        lines = self.here((self.root / f"etc/systemd/system/{unit}{at}.service").read_text()).splitlines()
        environment = {name: os.environ[name] for name in ("PGPORT", "PATH")}
        command: list[str] = []
        ends = False
        for key, _, value in (line.partition("=") for line in lines):
            if key == "Environment":
                environment |= self.settings(value)
            elif key == "EnvironmentFile":
                environment |= self.settings(*Path(value).read_text().splitlines())
            elif key == "ExecStart":
                command = shlex.split(value.replace("%i", instance))
            elif (key, value) == ("Type", "oneshot"):
                ends = True
        if "serve" in command:
            command += ["--port", self.web_port]
        if "--metrics-port" in command:
            # Any free one, because another test run may use the unit's own.
            command[command.index("--metrics-port") + 1] = "0"
        with (self.root / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd="/",
                env=environment,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        if ends:
            if process.wait():
                sys.exit(f"{name} failed")
            return
        (self.root / f"{name}.pid").write_text(str(process.pid))

    def settings(self, *lines: str) -> dict[str, str]:
        pairs = (line.partition("=") for line in lines if line)
        return {name: value for name, _, value in pairs}

    def here(self, text: str) -> str:
        return OWN_FOLDERS.sub(rf"{self.root}/\1/", text)

    def stop(self, name: str) -> None:
        """By SIGTERM, and waits for its end."""
        if name.endswith(".timer"):
            return
        path = self.root / f"{name}.pid"
        process = psutil.Process(int(path.read_text()))
        process.terminate()
        deadline = time.monotonic() + STOPS_WITHIN_SECONDS
        # Nobody but the first process of the machine could bury it.
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                sys.exit(f"{name} did not stop")
            time.sleep(0.1)
        path.unlink()


if __name__ == "__main__":
    Systemctl(Path(sys.argv[1]), sys.argv[2]).carry_out(*sys.argv[3:])
