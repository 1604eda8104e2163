"""Rehearsal of an action: finds what is wrong with its input, before a password is asked for, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

from django.db import Error, connection, transaction
from django.http.response import HttpResponseBase
from psycopg.errors import ReadOnlySqlTransaction

_rehearsal: ContextVar[Rehearsal | None] = ContextVar("rehearsal", default=None)


class ProofNeeded(Exception):
    """Raised at the first change of a rehearsal."""


class Rehearsal:
    """A run of a view that may read and refuse, and changes nothing: it shows whether the input is valid.

    PostgreSQL holds this, by a read-only transaction. Rows are read without the locks that the action will take.
    """

    def __init__(self) -> None:
        self.is_stopped = False
        self._events: list[Callable[[], object]] = []

    @staticmethod
    def current() -> Rehearsal | None:
        return _rehearsal.get()

    def note(self, write_event: Callable[[], object]) -> None:
        """Keeps an event that is independent of a change, such as a denial: written if the view's response is sent."""
        self._events.append(write_event)

    def refusal_by(self, view: Callable[[], HttpResponseBase]) -> HttpResponseBase | None:
        """The response of a view that refuses, or only redirects; None if it would change or show something.

        Raises what the view raises.
        """
        try:
            with self._read_only():
                response = view()
        except (ProofNeeded, Error):
            return None  # A failure of the database is none of the input: the action itself has to show it.
        except Exception:
            if self.is_stopped:
                return None
            self._write_events()
            raise
        if self.is_stopped or response.status_code == HTTPStatus.OK:
            return None
        self._write_events()
        return response

    @contextmanager
    def _read_only(self) -> Iterator[None]:
        token = _rehearsal.set(self)
        connection.features.has_select_for_update = False
        try:
            with transaction.atomic(), connection.execute_wrapper(self._stop_at_change):
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION READ ONLY")
                yield
        finally:
            del connection.features.has_select_for_update
            _rehearsal.reset(token)

    def _stop_at_change(self, execute: Callable[..., Any], *statement: Any) -> Any:
        try:
            return execute(*statement)
        except Error as problem:
            if isinstance(problem.__cause__, ReadOnlySqlTransaction):
                self.is_stopped = True
                raise ProofNeeded from problem
            raise

    def _write_events(self) -> None:
        for write_event in self._events:
            write_event()
