"""A relay between agents and the database that counts how often an agent waits for an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Relay:
    """Listens on a port of 127.0.0.1, and passes on to the database what it receives.

    A round trip begins with the first bytes that the agent sends after it has received some, so that it is counted
    however the bytes are divided into packets.
    """

    def __init__(self, dsn: str) -> None:
        given = conninfo_to_dict(dsn)
        self._place = f"{given['host']}/.s.PGSQL.{given['port']}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.dsn = make_conninfo(dsn, host="127.0.0.1", port=port, sslmode="disable")
        self.round_trips = 0
        self._counting = threading.Lock()
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def counting(self) -> Iterator[list[int]]:
        """The list gets the number of round trips of the block."""
        before, counted = self.round_trips, list[int]()
        yield counted
        counted.append(self.round_trips - before)

    def close(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                agent, _ = self._listener.accept()
                database = socket.socket(socket.AF_UNIX)
                database.connect(self._place)
                self._open += [agent, database]
                waits = threading.Event()
                threading.Thread(target=self._send, args=(agent, database, waits), daemon=True).start()
                threading.Thread(target=self._answer, args=(database, agent, waits), daemon=True).start()

    def _send(self, agent: socket.socket, database: socket.socket, waits: threading.Event) -> None:
        with suppress(OSError):
            while sent := agent.recv(65536):
                if not waits.is_set():
                    waits.set()
                    with self._counting:
                        self.round_trips += 1
                database.sendall(sent)
            database.shutdown(socket.SHUT_WR)

    def _answer(self, database: socket.socket, agent: socket.socket, waits: threading.Event) -> None:
        with suppress(OSError):
            while answered := database.recv(65536):
                waits.clear()
                agent.sendall(answered)
            agent.shutdown(socket.SHUT_WR)
