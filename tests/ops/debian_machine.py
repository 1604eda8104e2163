"""A Debian machine for the commands of docs/production.md, in a folder: nothing outside of it is changed.

PostgreSQL 15, nginx, bash, openssl, curl and the programs of memadmin are the real ones. Stand-ins are `useradd` and
`chown`, which do nothing, `apt-get`, which makes the programs of its packages available, `sudo`, which only names the
database's administrator, `systemctl`, and `pip` for the packages of the lock file, which are those that are installed
here.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil
from django.conf import settings

from tests.ops.systemctl import OWN_FOLDERS
from tests.ports import free_port
from tests.processes import kill_with_children
from tests.stores.postgres import PostgresServer
from tests.stores.servers import without

HOST = "memadmin.example.org"

FOLDERS = (
    *("etc/nginx/sites-available", "etc/nginx/sites-enabled", "etc/systemd/system", "etc/prometheus"),
    *("etc/ssl/private", "etc/ssl/certs", "opt", "var/lib/memadmin", "var/backups", "usr/local/sbin", "programs"),
)
"""What a Debian machine has, or systemd makes by `StateDirectory`."""

DOES_NOTHING = "#!/bin/sh\n"

PACKAGED = {"sudo": "sudo", "nginx": "nginx", "openssl": "openssl", "curl": "curl", "psql": "postgresql"}
"""Packages of the programs that a minimal Debian lacks. Without its package a program only says so."""

NOT_INSTALLED = """#!/bin/sh
echo "{name}: command not found; its package is {package}" >&2
exit 127
"""

APT_GET = """#!/bin/sh
for package; do
    for program in $(ls {root}/packages/$package 2> /dev/null); do
        rm {root}/programs/$program
        [ ! -s {root}/packages/$package/$program ] || cp -p {root}/packages/$package/$program {root}/programs/
    done
done
"""

SUDO = """#!/bin/sh
[ "$1 $2" = "-u postgres" ] || exit 1
shift 2
PGHOST={socket} PGUSER=postgres PGDATABASE=postgres exec "$@"
"""

SYSTEMCTL = """#!/bin/sh
exec {python} {systemctl} {root} {web_port} "$@"
"""

NGINX = """#!/bin/sh
exec {nginx} -e {root}/nginx.log -c {root}/nginx.conf "$@"
"""

NGINX_CONFIG = """
pid {root}/nginx.pid;
error_log {root}/nginx.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {root}/nginx-body;
    proxy_temp_path {root}/nginx-proxy;
    fastcgi_temp_path {root}/nginx-fastcgi;
    uwsgi_temp_path {root}/nginx-uwsgi;
    scgi_temp_path {root}/nginx-scgi;
    include {root}/etc/nginx/sites-enabled/*;
}}
"""

PYTHON = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 1
cd {checkout}
DJANGO_SETTINGS_MODULE=tests.settings exec {python} -m {environments} "$3"
"""
"""Makes an environment whose packages are those of the lock file, installed already."""


class DebianMachine:
    """A shell of root, in which commands are carried out one block after the other."""

    def __init__(self, root: Path, server: PostgresServer, programs: Path) -> None:
        """`programs` are those of PostgreSQL, psql included."""
        self.root, self.web_port, self.tls_port = root, free_port(), free_port()
        self.umask = 0o022
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True)
        (root / "nginx.conf").write_text(NGINX_CONFIG.format(root=root))
        given = {
            "root": root,
            "web_port": self.web_port,
            "socket": server.socket_dir,
            "python": sys.executable,
            "nginx": nginx(),
            "checkout": settings.CHECKOUT_DIR,
            "systemctl": settings.CHECKOUT_DIR / "tests/ops/systemctl.py",
            "environments": "tests.ops.environments",
        }
        stand_ins = {"sudo": SUDO, "systemctl": SYSTEMCTL, "nginx": NGINX, "python3": PYTHON}
        stand_ins |= {"apt-get": APT_GET, **dict.fromkeys(("useradd", "chown"), DOES_NOTHING)}
        for name, package in PACKAGED.items():
            packaged = root / "packages" / package / name
            packaged.parent.mkdir(parents=True)
            packaged.write_text(stand_ins.pop(name, "").format(**given))
            packaged.chmod(0o755)
            stand_ins[name] = NOT_INSTALLED.format(name=name, package=package)
        for name, text in stand_ins.items():
            path = root / "programs" / name
            path.write_text(text.format(**given))
            path.chmod(0o755)
        ours = ("MEMADMIN_", "AGENT_", "DATABASE_URL", "DJANGO_", "PG")
        self.variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
            "PATH": f"{root}/programs:{programs}:{os.environ['PATH']}:/usr/sbin:/sbin",
            "PGPORT": str(server.port),  # of addresses without one
        }

    def run(self, commands: str, folder: Path) -> str:
        """Carries commands out, of which each must succeed. What they export is there for the next ones, as is their
        mask of new files.

        Returns what they printed, errors included.
        """
        kept = self.root / "variables.json"
        program = "import json, os; print(json.dumps([dict(os.environ), os.umask(0)]))"
        keep = f"{shlex.quote(sys.executable)} -c '{program}' > {kept}"
        done = subprocess.run(
            ["bash", "-eu", "-c", f"umask {self.umask:03o}\n{self.here(commands)}\n{keep}"],
            cwd=folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{commands}\nended with {done.returncode}:\n{done.stdout}\n{self.logs()}"
        self.variables, self.umask = json.loads(kept.read_text())
        return done.stdout

    def here(self, commands: str) -> str:
        """With the folders and ports of this machine."""
        commands = OWN_FOLDERS.sub(rf"{self.root}/\1/", commands)
        return (
            commands.replace("listen 443", f"listen 127.0.0.1:{self.tls_port}")
            .replace(f"{HOST}:443", f"{HOST}:{self.tls_port}")
            .replace(f"https://{HOST}/", f"https://{HOST}:{self.tls_port}/")
            .replace("127.0.0.1:8000", f"127.0.0.1:{self.web_port}")
        )

    def browse(self, path: str, *options: str) -> str:
        """Asks nginx for a page, as a person whose cookies are kept. Returns the page, after redirects."""
        jar = self.root / "cookies"
        address = f"https://{HOST}:{self.tls_port}{path}"
        given: Sequence[str] = (
            *(
                "curl",
                "--silent",
                "--show-error",
                "--fail",
                "--location",
                "--cookie",
                str(jar),
                "--cookie-jar",
                str(jar),
            ),
            *(
                "--cacert",
                str(self.root / "etc/ssl/certs/memadmin.pem"),
                "--resolve",
                f"{HOST}:{self.tls_port}:127.0.0.1",
            ),
            # The proxy passes the host without its port, which in a real installation is the usual one.
            *("--referer", f"https://{HOST}/", *options, address),
        )
        done = subprocess.run(given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{path}: {done.stderr}\n{self.logs()}"
        (self.root / "last-page.html").write_text(done.stdout)
        return done.stdout

    def closed_to_others(self, *folders: str) -> list[Path]:
        """What the system's other users cannot read, among them those who run memadmin, nginx and Prometheus."""
        found = [path for folder in folders for path in (self.root / folder, *(self.root / folder).rglob("*"))]
        readable = {True: 0o005, False: 0o004}
        return [
            path
            for path in found
            if not path.is_symlink() and path.stat().st_mode & (wanted := readable[path.is_dir()]) != wanted
        ]

    def logs(self) -> str:
        """The ends of the programs' logs."""
        return "\n".join(f"{path.name}: {path.read_text()[-2000:]}" for path in sorted(self.root.glob("*.log")))

    def end(self) -> None:
        """Ends what is running."""
        for path in self.root.glob("*.pid"):
            with contextlib.suppress(psutil.NoSuchProcess, ValueError):
                kill_with_children(int(path.read_text()))


def nginx() -> str:
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    return found or without("nginx", "nginx")
