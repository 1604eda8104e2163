"""The cast: who appears in the tests, each signed in to a browser of their own."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache
from django.core.management import call_command
from django.core.management.commands import flush
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.test import Client, TransactionTestCase
from hypothesis import HealthCheck
from hypothesis import settings as effort
from pytest_django import DjangoDbBlocker

from memadmin.audit.log.proofs import share_keys
from memadmin.deploy.roles import Roles
from sessions_app.models import SessionStore
from sessions_app.stores import circuit_breaker
from tests.agents import agent_process, drop_agent_tables
from tests.deploy.connecting import bring_into_force, our_roles, take_away
from tests.flushing import empty, flush_as_owner, remember_first_rows
from tests.kept_store import kept_main_store as the_kept_store
from tests.people import person, signed_in
from tests.template_database import template_database

gc.disable()  # until everything is collected, see below

# The same examples in each run, and no hurry: a slow machine or a rare example fails nobody who changed nothing.
# `pytest --hypothesis-profile=default` looks for others.
effort.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
effort.load_profile("repeatable")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_keepdb: bool, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """A new database is a copy of one that is migrated; one that is kept (`--reuse-db`) is migrated as ever."""
    with django_db_blocker.unblock(), ExitStack() as stack:
        if not django_db_keepdb:
            test = connection.settings_dict["TEST"]
            test["TEMPLATE"] = stack.enter_context(template_database())
        with django_db_blocker.block():
            yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    with django_db_blocker.unblock():
        remember_first_rows()
        # A database that is kept, or copied, may be from a run with another secret key.
        share_keys()
        # Events of migrations: the first tests begin as those do that follow one with real transactions.
        empty(connection.introspection.django_table_names(only_existing=True, include_views=False))


@pytest.fixture(scope="session", autouse=True)
def _flush_as_owner() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(DatabaseOperations, "execute_sql_flush", flush_as_owner)
        # Would make roles and rights that are there, at the cost of sixty statements for each test.
        patching.setattr(flush, "emit_post_migrate_signal", lambda *_: None)
        # A new connection for each test knows no table yet: learning them takes PostgreSQL longer than most tests.
        patching.setattr(TransactionTestCase, "_should_reload_connections", lambda _: False)
        yield


@pytest.fixture(autouse=True)
def nobody_tried_before() -> Iterator[None]:
    """What the cache knows of earlier tries would slow down the next test."""
    yield
    cache.clear()


@pytest.fixture(autouse=True, scope="module")
def agents_end(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The next file's agents open their own connections, on tables of their own."""
    yield
    agent_process.end()
    with django_db_blocker.unblock():
        the_kept_store.end()


@pytest.fixture(autouse=True)
def only_who_asks_has_the_kept_store(request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker) -> None:
    if "kept_main_store" not in request.fixturenames:
        with django_db_blocker.unblock():
            the_kept_store.end()


@pytest.fixture(autouse=True)
def no_store_rests() -> Iterator[None]:
    """The next test has other stores, and other ids or the same ones."""
    yield
    circuit_breaker.wake_all()


@pytest.fixture
def operator(db: None) -> Client:
    """Support staff: reads conversations."""
    return signed_in(person("support"))


@pytest.fixture
def reviewer(db: None) -> Client:
    """Decides which learned memories agents may use."""
    return signed_in(person("reviewer"))


@pytest.fixture
def administrator(db: None) -> Client:
    """Users and stores; no conversation content."""
    return signed_in(person("administrator"))


@pytest.fixture
def auditor(db: None) -> Client:
    """Reads the log, and nothing of what it is about."""
    return signed_in(person("auditor"))


@pytest.fixture
def compliance(db: None) -> Client:
    """Decides on grants, redacts, and reads the log with the names in it."""
    return signed_in(person("compliance"))


@pytest.fixture
def outsider(db: None) -> Client:
    """Signed in, without any right."""
    return signed_in(person())


@pytest.fixture(scope="module")
def shared_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction around all tests of a file, for rows that a fixture of scope "module" adds once: each test begins
    with them, and its own changes are rolled back. For files without real transactions and other connections.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)
    ContentType.objects.clear_cache()


@pytest.fixture(scope="module")
def committed_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Lets a fixture of scope "module" commit rows, such as a store that is attached and what agents wrote into it, for
    tests that are rolled back. After the file everything is emptied. For files without real transactions.
    """
    with django_db_blocker.unblock():
        yield
        agent_process.end()
        drop_agent_tables()
        call_command("flush", interactive=False, verbosity=0)
        connection.close()


@pytest.fixture(scope="module")
def kept_in_force(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Roles]:
    """Roles in force for all connections from a file's first test that asks for them to its last. Making them and
    taking them away costs half a second.
    """
    names = our_roles()
    with django_db_blocker.unblock():
        bring_into_force(names)
        connection.close()
    yield names
    with django_db_blocker.unblock():
        take_away(names)
        connection.close()


@pytest.fixture
def kept_main_store(transactional_db: None) -> Iterator[SessionStore]:
    """The main store, attached and empty; agents write in connections of their own. Tests that follow each other take
    over its tables, which costs a tenth of `agent_tables` and attaching: see kept_store.py.
    """
    yield the_kept_store.begin()
    the_kept_store.after_test()


@pytest.fixture
def agent_tables(transactional_db: None) -> Iterator[None]:
    """A database in which agents create their tables and write, in connections of their own; all gone afterwards."""
    yield
    drop_agent_tables()


def pytest_configure(config: pytest.Config) -> None:
    """Gives each run a folder of its own. Each run closes the one that all runs of a user share, although the servers
    of a run as root work below it under another user.
    """
    if not (config.option.basetemp or os.environ.get("PYTEST_DEBUG_TEMPROOT")):
        # Short, because a path to a socket has 107 characters at most.
        folder = config.option.basetemp = tempfile.mkdtemp(prefix="memadmin-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright's event loop runs until the end, and commands bring a loop of their own. Of
    their files those with most tests come first, so that both processes end with a short one.

    They are slow, as are tests with real transactions, after each of which tables are dropped and emptied, and those of
    a release.
    """
    for item in items:
        if is_in_browser(item) or has_real_transactions(item) or item.get_closest_marker("release"):
            item.add_marker(pytest.mark.slow)
        fixtures = set(getattr(item, "fixturenames", ()))
        if worlds := {"shared_world", "committed_world"} & fixtures:
            assert not has_real_transactions(item), f"{item.nodeid} would empty {worlds} for the rest of its file."
        if "kept_main_store" in fixtures:
            assert "agent_tables" not in fixtures, f"{item.nodeid} would drop the tables of the kept store."
    in_browser = Counter(item.path for item in items if is_in_browser(item) and not item.get_closest_marker("release"))
    items.sort(key=lambda item: (is_in_browser(item), -in_browser[item.path]))


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end. Looking through it for garbage takes half of the time of the
    collection, and a tenth of the suite's. Looking after every 700 new objects, as Python does, takes another tenth.
    """
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def has_real_transactions(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("django_db")
    return "transactional_db" in getattr(item, "fixturenames", ()) or bool(mark and mark.kwargs.get("transaction"))


def is_in_browser(item: pytest.Item) -> bool:
    return "browser" in item.path.relative_to(item.config.rootpath).parts
