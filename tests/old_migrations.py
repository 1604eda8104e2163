"""The settings of the test suite with the migrations before the squash, for the test that compares the two."""

from tests.settings import *  # noqa: F403

MIGRATION_MODULES = {
    "audit": "memadmin.audit.old_migrations",
    "accounts": "memadmin.accounts.old_migrations",
    "sessions_app": "sessions_app.old_migrations",
    "memories_app": "memories_app.old_migrations",
}
