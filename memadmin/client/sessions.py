"""Wrapper for sessions of the SDK that registers them in the console from their first moment."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator
from secrets import token_urlsafe
from typing import Any, Literal, Self, cast
from uuid import UUID

from agents import RunContextWrapper, TResponseInputItem
from agents.memory import Session, SessionSettings
from agents.memory.session import SessionABC

from memadmin.client import runs
from memadmin.client.connection import Connection, Console, ConsoleUnavailable, RefusedByDatabase
from memadmin.client.secret_text import SecretRefused, mask_item
from memadmin.client.subject_keys import SubjectKeyDestroyed, SubjectKeys, SubjectKeysUnavailable
from memadmin.client.subjects import NOBODY, USER_ID, Finder, Named, Subject, find_subject, subject_of

__all__ = ["ERASED", "GovernedSession", "SecretRefused", "Subject", "SubjectErased", "SubjectMismatch"]

logger = logging.getLogger(__name__)

SDK_TTL_SECONDS = 600
"""Default `ttl` of EncryptedSession."""

ERASED = "P0E01"
"""The SQLSTATE with which registry and fence refuse an erased session, and any session of an erased subject."""

OF_ANOTHER = "P0E06"
"""The SQLSTATE with which the registry refuses a session that was registered for another subject."""

REGISTER = "SELECT record, subject FROM memadmin_register_session(%s, %s, %s, %s, %s, %s)"

METHODS = ("get_items", "add_items", "pop_item", "clear_session")

OURS = {
    *("inner", "subject", "record", "session_id", "session_settings", *METHODS),
    *("_console", "_store", "_subject_in", "_ticket", "_agent", "_secrets", "_erased"),
    *("_registered", "_inner_takes_wrapper", "_is_subject_given", "_found_for", "_subject_keys", "_is_key_destroyed"),
}
"""The attributes that are not the inner session's."""


class SubjectErased(Exception):
    """This session, or all data of its subject, was erased at the subject's request: nothing is stored in it again."""

    def __init__(self, session_id: str, *, is_key_destroyed: bool = False) -> None:
        super().__init__(
            "The key of this subject was destroyed with their erasure. Nothing was read or stored."
            if is_key_destroyed
            else "This session was erased and cannot be written to again. Start a new session with another id. If all"
            " data of its subject was erased, none of this subject is stored."
        )
        self.session_id = session_id


class SubjectMismatch(Exception):
    """A run, or another program, names another subject than the session has. Nothing was read, stored or injected."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            "This session belongs to another subject than the context of this run."
            " Use a GovernedSession with its own session id for each subject."
        )
        self.session_id = session_id


class GovernedSession(SessionABC):
    """Wraps a session of the SDK; use it in its place.

    `store` is the console's name for the place where `inner` keeps its items. The subject is given, or
    found in the context of the first run: `subject_in` is the attribute or key of the context object that has it, or a
    function of that object. Both are sent to the console once, as are ticket and agent. A later run whose context names
    another subject raises SubjectMismatch, and so does a session id that was registered for another subject; one whose
    context names none gets no memories of the first.

    `secrets` decides about keys, passwords and card numbers in stored texts: "keep", "mask", or "refuse",
    which raises SecretRefused out of the run. `erased` decides about a write to an erased session: "refuse" raises
    SubjectErased, "drop" lets the run continue and stores nothing of it.

    `encrypt="subject"` wraps `inner` in the SDK's EncryptedSession, with the key that `subject_keys` has for the given
    subject. Once that key is destroyed, the session counts as erased. `ttl` is the SDK's: after so many seconds agents
    no longer read an item. Raises SubjectKeysUnavailable, since nothing may be stored without the key.

    A run does not fail when the console's database is not responding: it is logged, and the next run sends it again.
    """

    def __init__(
        self,
        inner: Session,
        *,
        console: Console,
        store: str,
        subject: Named = None,
        subject_in: Finder = USER_ID,
        ticket: str = "",
        agent: str = "",
        secrets: Literal["keep", "mask", "refuse"] = "keep",
        erased: Literal["refuse", "drop"] = "refuse",
        encrypt: Literal["subject"] | None = None,
        subject_keys: SubjectKeys | None = None,
        ttl: int = SDK_TTL_SECONDS,
    ) -> None:
        self.inner = inner
        self.subject = subject_of(subject) or None
        self.record: UUID | None = None
        self._console, self._store, self._subject_in = console, store, subject_in
        self._ticket, self._agent = ticket, agent
        self._secrets, self._erased = secrets, erased
        self._subject_keys: SubjectKeys | None = None
        self._is_key_destroyed = False
        if encrypt is not None:
            self._encrypt_inner(subject_keys, ttl)
        self._is_subject_given = self.subject is not None
        # The session id for which the subject was found: under another id it is another session.
        self._found_for = ""
        self._registered: tuple[str, Subject | None] | None = None
        # As in the SDK: a session gets the run's context when all four of its methods take it.
        self._inner_takes_wrapper = all(_takes_wrapper(getattr(inner, method)) for method in METHODS)

    # Further methods that the SDK calls on its own sessions (compaction, matching of ids) are the inner session's.
    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet: while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Other attributes are the inner session's: when it compacts, with which model, after what time it expires."""
        if name in OURS:
            object.__setattr__(self, name, value)
        else:
            setattr(self.inner, name, value)

    def __delattr__(self, name: str) -> None:
        if name in OURS:
            object.__delattr__(self, name)
        else:
            delattr(self.inner, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The SDK treats some sessions by their class: it removes the ids of items that OpenAI keeps, and compacts
        within encryption. `isinstance` returns true for this class, too.
        """
        inner = self.__dict__.get("inner")
        return GovernedSession if inner is None else cast(type, inner.__class__)

    async def __aenter__(self) -> Self:
        if enter := getattr(self.inner, "__aenter__", None):
            await enter()
        return self

    async def __aexit__(self, *problem: Any) -> Any:
        leave = getattr(self.inner, "__aexit__", None)
        return await leave(*problem) if leave else None

    @property
    def session_id(self) -> str:
        return self.inner.session_id

    @session_id.setter
    def session_id(self, value: str) -> None:
        if self._subject_keys is not None:
            raise AttributeError("An encrypted session keeps its id: make another GovernedSession for another one.")
        self.inner.session_id = value

    @property
    def session_settings(self) -> SessionSettings | None:
        return self.inner.session_settings

    @session_settings.setter
    def session_settings(self, value: SessionSettings | None) -> None:
        self.inner.session_settings = value

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None, **more: Any
    ) -> list[TResponseInputItem]:
        """`more` are further parameters of the inner session, such as a branch."""
        if self._known_id():
            if not await self._may_go_on(wrapper):
                return []
            return cast("list[TResponseInputItem]", await self._ask_inner("get_items", wrapper, limit, **more))
        items = cast("list[TResponseInputItem]", await self._ask_inner("get_items", wrapper, limit, **more))
        await self._may_go_on(wrapper)
        return items

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        kept = self._without_secrets(items)
        if await self._may_go_on(wrapper):
            await self._write("add_items", wrapper, kept)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        self._subject_of_run(wrapper)
        # With another key the SDK would remove what it cannot read.
        if self._has_no_key_any_more():
            return None
        return cast("TResponseInputItem | None", await self._write("pop_item", wrapper))

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        self._subject_of_run(wrapper)
        await self._write("clear_session", wrapper)

    # --- encryption with the subject's key ----------------------------------------------------------------------------

    def _encrypt_inner(self, keys: SubjectKeys | None, ttl: int) -> None:
        from agents.extensions.memory import EncryptedSession

        inner = self.inner
        if self.subject is None or keys is None:
            raise ValueError('encrypt="subject" needs the subject, and subject_keys to have a key for it.')
        if isinstance(inner, EncryptedSession):
            raise ValueError('encrypt="subject" encrypts by itself: pass the session without EncryptedSession.')
        if not self._known_id():
            raise ValueError('encrypt="subject" needs a session that has its id from the start.')
        self._subject_keys = keys
        try:
            key = keys.key_for(self.subject)
        except SubjectKeyDestroyed:
            if self._erased == "refuse":
                raise SubjectErased(inner.session_id, is_key_destroyed=True) from None
            self._is_key_destroyed = True
            # Nobody has this key: whatever passes by the methods here is not stored as plain text.
            key = token_urlsafe(32)
        self.inner = EncryptedSession(inner.session_id, cast(SessionABC, inner), encryption_key=key, ttl=ttl)

    def _has_no_key_any_more(self) -> bool:
        """True where the subject's key was destroyed. Raises SubjectErased, unless erased sessions drop writes.

        The process still has the key in memory, and the console's database may be away: so the folder is asked.
        """
        if self._subject_keys is None:
            return False
        if not self._is_key_destroyed:
            assert self.subject is not None
            try:
                self._is_key_destroyed = self._subject_keys.is_destroyed(self.subject)
            except SubjectKeysUnavailable as problem:
                logger.warning("%s The run continues with the key that it has.", problem)
        if self._is_key_destroyed and self._erased == "refuse":
            raise SubjectErased(self.session_id, is_key_destroyed=True)
        return self._is_key_destroyed

    # --- registration in the console ----------------------------------------------------------------------------------

    async def _may_go_on(self, wrapper: RunContextWrapper[Any] | None) -> bool:
        """Registers what is not registered yet. False where an erased session drops what is written to it."""
        whose = self._subject_of_run(wrapper)
        if self._has_no_key_any_more():
            return False
        may_go_on, name = True, self._known_id()
        registered = name, self.subject
        if name and self._registered != registered:
            try:
                self.record = None
                self.record = await self._console.ask(self._register)
                self._registered = registered
            except ConsoleUnavailable:
                pass  # the console has said so, and is asked again
            except RefusedByDatabase as refusal:
                if refusal.sqlstate == OF_ANOTHER:
                    raise SubjectMismatch(self.session_id) from None
                may_go_on = refusal.sqlstate != ERASED
                if may_go_on:
                    logger.warning(
                        "memadmin could not register a session of the store %s (%s).", self._store, refusal.sqlstate
                    )
                    self._registered = registered
                elif self._erased == "refuse":
                    raise SubjectErased(self.session_id) from None
        if wrapper is not None:
            known = runs.current()
            if (
                known is None
                or known.wrapper is not wrapper
                or known.record is not self.record
                or known.subject != whose
            ):
                runs.enter(runs.CurrentRun(name, wrapper, whose, self.record))
        return may_go_on

    def _subject_of_run(self, wrapper: RunContextWrapper[Any] | None) -> Subject | None:
        """The subject of this run, which is that of the session, or None where the context names none.

        A subject that was not given is looked up in every run's context: a program that reuses the session for the next
        customer would else be served the memories of the first one. Raises SubjectMismatch.
        """
        if self._is_subject_given or wrapper is None:
            return self.subject
        found, name = self._found_in(wrapper.context), self._known_id()
        if self.subject is None or (self._found_for and self._found_for != name):
            self.subject, self._found_for = found, name
        elif found and found != self.subject:
            raise SubjectMismatch(name)
        # A run without a context object, as one that is resumed, continues the session.
        return self.subject if found or wrapper.context is None else None

    async def _register(self, connection: Connection) -> UUID:
        whose = self.subject or NOBODY
        values = (self._store, self.session_id, whose.kind, whose.key, self._ticket, self._agent)
        row: Any = await (await connection.execute(REGISTER, values)).fetchone()
        return cast(UUID, row[0])

    def _found_in(self, context: Any) -> Subject | None:
        """A function of the program: its exceptions do not stop a run."""
        try:
            return find_subject(context, self._subject_in)
        except Exception as problem:
            logger.warning("No subject could be found in a run's context (%s).", type(problem).__name__)
            return None

    def _known_id(self) -> str:
        """A conversation kept by OpenAI has none before it was asked for something."""
        try:
            return self.inner.session_id
        except ValueError:
            return ""

    # --- the inner session ---------------------------------------------------------------------------------------

    async def _write(self, method: str, wrapper: RunContextWrapper[Any] | None, *values: Any) -> Any:
        try:
            return await self._ask_inner(method, wrapper, *values)
        except Exception as problem:
            if not any(_sqlstate(each) == ERASED for each in _chain(problem)):
                raise
            if self._erased == "drop":
                return None
            raise SubjectErased(self.session_id) from problem

    async def _ask_inner(self, method: str, wrapper: RunContextWrapper[Any] | None, *values: Any, **more: Any) -> Any:
        options = {"wrapper": wrapper} if wrapper is not None and self._inner_takes_wrapper else {}
        answer = getattr(self.inner, method)(*values, **options, **more)
        # The SDK takes sessions whose methods are no coroutines, too.
        return await answer if inspect.isawaitable(answer) else answer

    def _without_secrets(self, items: list[TResponseInputItem]) -> list[TResponseInputItem]:
        if self._secrets == "keep":
            return items
        masked = [mask_item(item) for item in items]
        count = sum(count for _, count in masked)
        if count and self._secrets == "refuse":
            raise SecretRefused(count)
        return [item for item, _ in masked] if count else items


def _takes_wrapper(method: Any) -> bool:
    return "wrapper" in inspect.signature(method).parameters


def _chain(problem: BaseException) -> Iterator[BaseException]:
    """An error and those inside of it: SQLAlchemy wraps what a driver raised, and drivers wrap, too."""
    seen: set[int] = set()
    waiting: list[Any] = [problem]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [getattr(each, "orig", None), each.__cause__, each.__context__]


def _sqlstate(problem: BaseException) -> Any:
    return getattr(problem, "sqlstate", None) or getattr(problem, "pgcode", None)
