"""The web server under measurement: one process, on the loopback interface."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import psutil

START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class WebServer:
    port: int
    process: psutil.Process

    def cpu_seconds(self) -> float:
        """Computed by all its processes so far, to a hundredth."""
        times = [process.cpu_times() for process in self._processes()]
        return sum(each.user + each.system for each in times)

    def peak_memory_mb(self) -> float | None:
        """The most resident memory that any of its processes ever had. None where the system does not tell."""
        peaks = []
        for process in self._processes():
            status = Path(f"/proc/{process.pid}/status")
            if not status.exists():
                return None
            peaks += [int(kilobytes) for kilobytes in re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())]
        return round(max(peaks) / 1024, 1)

    def forget_peak_memory(self) -> float:
        """From now on the peak is that of what comes; returns what it has at rest, in MB. Where the system tells."""
        for process in self._processes():
            with contextlib.suppress(FileNotFoundError):
                Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        return self.peak_memory_mb() or 0

    def _processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextlib.contextmanager
def running_server(environment: dict[str, str], log: Path, *, workers: int = 1) -> Iterator[WebServer]:
    """A web server with these settings, until the block ends. Its words go to the log."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--workers", str(workers)]
    command += ["--blocking-threads", "8"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--no-ws", "memadmin.wsgi:application"]
    with log.open("wb") as output:
        started = psutil.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until_answering(started, port, log)
            yield WebServer(port, started)
        finally:
            started.terminate()
            try:
                started.wait(15)
            except psutil.TimeoutExpired:
                for process in [*started.children(recursive=True), started]:
                    process.kill()


def wait_until_answering(process: psutil.Popen, port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            connection = HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"The web server did not start: {log.read_text(errors='replace')[-2000:]}")
