"""Django's PostgreSQL backend, with a server of our own behind it."""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from memadmin.embedded import cluster
from memadmin.embedded.server import server_for


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL from the wheel, with its files in `settings_dict["DATA_DIR"]`."""

    def get_connection_params(self) -> dict[str, Any]:
        """Connection parameters; starts the server, and creates the database, when necessary.

        Django asks before each connection, from a pool too, so a server that was killed is started again here.
        """
        server = server_for(self.settings_dict["DATA_DIR"])
        name = self.settings_dict["NAME"]
        try:
            running = server.ensure_running()
            # Test databases are left to Django's test runner, which must find them absent.
            if name and not name.startswith("test_"):
                server.ensure_database(name)
        except cluster.CannotStart as problem:
            raise OperationalError(str(problem)) from problem
        self.settings_dict.update(
            HOST=running.socket_dir, PORT=str(cluster.PORT), USER=self.settings_dict.get("ROLE") or cluster.SUPERUSER
        )
        params: dict[str, Any] = super().get_connection_params()
        return params
