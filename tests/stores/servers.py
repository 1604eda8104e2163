"""Servers of other makers, started for the tests in folders of their own: nothing of the machine is used or changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import pytest
import redis

from tests.ports import free_port
from tests.waiting import wait_until

REDIS = shutil.which("redis-server") or shutil.which("redis-check-rdb")
"""One program, which is a server when it is called redis-server."""


def without(server: str, package: str) -> NoReturn:
    """Skips the test, loudly, or fails it where everything has to be there."""
    reason = f"NO {server.upper()}: the tests of its stores did not run. `apt-get install {package}` gives them one."
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class RedisServer:
    """A Redis of one's own, which keeps nothing on the disk unless it is told to."""

    def __init__(self, folder: Path, *, password: str = "", is_on_tls: bool = False, **settings: str) -> None:
        assert REDIS
        self.folder, self.socket = folder, folder / "redis.sock"
        self.password, self.port = password, int(settings.pop("port", 0)) or free_port()
        ports = ["--port", "0", "--tls-port", str(self.port)] if is_on_tls else ["--port", str(self.port)]
        given = {"save": "", "bind": "127.0.0.1", "dir": str(folder), "unixsocket": str(self.socket), **settings}
        if password:
            given["requirepass"] = password
        arguments = [
            *ports,
            *(part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)),
        ]
        with (folder / "redis.log").open("w") as log:
            self.process = subprocess.Popen(["redis-server", *arguments], executable=REDIS, stdout=log, stderr=log)
        self.client = redis.Redis(unix_socket_path=str(self.socket), password=password or None)
        wait_until(lambda: self.answers() or self.process.poll() is not None, "the server answers")
        assert self.process.poll() is None, (folder / "redis.log").read_text()

    @property
    def address(self) -> str:
        password = f":{self.password}@" if self.password else ""
        return f"redis://{password}127.0.0.1:{self.port}/0"

    def answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.exceptions.RedisError:
            return False

    def leftovers(self, words: str) -> list[str]:
        """The keys that have the words in their names or in what they hold."""
        return [key.decode() for key in self.client.scan_iter() if words.encode() in key + b" " + self.dump(key)]

    def dump(self, key: bytes) -> bytes:
        client: Any = self.client
        match client.type(key):
            case b"hash":
                return b" ".join(part for pair in client.hgetall(key).items() for part in pair)
            case b"list":
                return b" ".join(client.lrange(key, 0, -1))
            case _:
                return client.get(key) or b""

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections, and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def own_redis(**settings: Any) -> Iterator[RedisServer]:
    if not REDIS:
        without("Redis", "redis-server")
    # A path of a socket may have 107 letters, which a folder of pytest's is soon longer than.
    with TemporaryDirectory(prefix="redis-") as folder:
        server = RedisServer(Path(folder), **settings)
        try:
            yield server
        finally:
            server.end()
