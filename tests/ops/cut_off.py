"""A program that loses the network to its database: `unshare --net python -m tests.ops.cut_off DATA_DIR`.

In a network of its own, where nothing else runs, it takes down the one interface by which it reaches the server.
Packets are lost, as behind a broken switch; no connection is closed. Prints what its two statements end with.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
import threading
from pathlib import Path

import django

from memadmin.embedded import cluster

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
LOCAL = "127.0.0.1"


def network(*, is_up: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP * is_up))


def main(data_dir: Path) -> None:
    network(is_up=True)
    cluster.SETTINGS |= {"listen_addresses": LOCAL, "fsync": "off"}
    data_dir.mkdir(mode=0o755)
    cluster.start(data_dir / "postgres", data_dir / "log")
    # In the settings of production, with less patience.
    quick = "tcp_user_timeout=2000&keepalives_idle=1&keepalives_interval=1&keepalives_count=2"
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "memadmin.settings",
        "DATABASE_URL": f"postgres://{cluster.SUPERUSER}@{LOCAL}:{cluster.PORT}/postgres?{quick}",
        "MEMADMIN_DATA_DIR": str(data_dir),
    }
    django.setup()
    from django.db import OperationalError, connection

    from memadmin.web.errors import is_database_away

    try:
        for statement, cut_after in (("SELECT 1", 0.0), ("SELECT pg_sleep(3600)", 1.0)):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                cut = threading.Timer(cut_after, network, kwargs={"is_up": False})
                cut.start()
                if not cut_after:
                    cut.join()
                try:
                    cursor.execute(statement)
                except OperationalError as problem:
                    print(statement, "is away" if is_database_away(problem) else problem, flush=True)
            cut.join()
            network(is_up=True)
            connection.close()
    finally:
        cluster.stop(data_dir / "postgres")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
