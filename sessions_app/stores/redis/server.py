"""Connections to a Redis server, and its errors as sentences for operators.

One pool of connections per address, kept for the life of the process. What changes something is a script on the
server: nothing of an agent's comes in between, and an agent that had begun to write (WATCH) begins anew.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sessions_app.stores.base import StoreTooSlow, StoreUnavailable

if TYPE_CHECKING:
    from redis import Redis

ANSWER_SECONDS = 5.0
"""Timeout of connecting, and of each answer."""

WRONG_TYPE = "WRONGTYPE"
"""Error of the server, and of the scripts, for a key with another type than the SDK writes."""

NO_TLS = "TLS failed; it may not speak TLS on this port, or want a certificate."

HANDSHAKE = "handshake operation timed out"
"""Python's error for a server without TLS, which takes the handshake for a command and waits for its end."""


def client_for(address: str, variable: str) -> Redis:
    """Connects nothing yet. `variable` is the source of the address, for sentences.

    Raises StoreUnavailable without the package, and for an invalid address.
    """
    try:
        import redis  # noqa: F401 -- whether it is there
    except ImportError as problem:
        raise StoreUnavailable(
            "The Python package redis is not installed here: pip install memadmin[redis] brings it."
        ) from problem
    try:
        return _client(address, ANSWER_SECONDS)
    except (ValueError, TypeError) as problem:
        raise StoreUnavailable(
            f"The value of {variable} is not the address of a Redis server, such as"
            " redis://user:password@host:6379/0, rediss:// with TLS, or unix:///path of a socket."
        ) from problem


@lru_cache(maxsize=64)
def _client(address: str, seconds: float) -> Redis:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    pool = redis.ConnectionPool.from_url(address)
    # An address can have settings of its own, but not for these.
    pool.connection_kwargs |= {
        "decode_responses": False,
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        # Retrying is left to the caller: a change may have been made although no answer came.
        "retry": Retry(NoBackoff(), 0),
    }
    pool.make_connection()  # raises for an unknown setting
    return redis.Redis(connection_pool=pool)


@contextmanager
def plain_words(variable: str, *, changed: str = "") -> Iterator[None]:
    """Turns errors of the server or the network into StoreUnavailable with a sentence; programming errors pass.

    `changed` is appended if there is no answer; it says whether something was changed.
    """
    from redis import exceptions

    server = f"The Redis server that {variable} names"
    try:
        yield
    except exceptions.TimeoutError as problem:
        if any(HANDSHAKE in str(cause) for cause in _causes(problem)):
            raise StoreUnavailable(f"{server} cannot be reached: {NO_TLS}{changed}") from problem
        raise StoreTooSlow(f"{server} did not respond within {ANSWER_SECONDS:g} seconds.{changed}") from problem
    except exceptions.RedisError as problem:
        raise StoreUnavailable(_sentence(problem, server, changed)) from problem


def _sentence(problem: Exception, server: str, changed: str) -> str:
    from redis import exceptions

    said = str(problem)
    if isinstance(problem, exceptions.AuthenticationError) or said.startswith("NOAUTH"):
        return f"{server} refuses the user or the password in that address, or requires one."
    if isinstance(problem, exceptions.NoPermissionError):
        return (
            f"{server} refuses a command to the user of this console, who needs to read, write and run scripts on the"
            " agents' keys: ACL SETUSER … ~PREFIX:* +@read +@write +@scripting +@connection +info. Nothing was changed."
        )
    if isinstance(problem, exceptions.BusyLoadingError):
        return f"{server} has started and is still loading its data."
    if isinstance(problem, exceptions.ReadOnlyError):
        return f"{server} is a replica, which cannot be written to; name the primary. Nothing was changed."
    if isinstance(problem, exceptions.OutOfMemoryError):
        return f"{server} is out of memory and refuses changes. Nothing was changed."
    if isinstance(problem, exceptions.ClusterError) or said.startswith(("MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN")):
        return f"{server} is a cluster, to which the SDK's RedisSession cannot write either; connect a single server."
    if isinstance(problem, exceptions.ConnectionError):
        return f"{server} cannot be reached: {_why_unreachable(problem)}{changed}"
    if WRONG_TYPE in said:
        return (
            "A key of this session does not contain what the SDK stores there, so the SDK refuses the session, too;"
            " two session ids such as x and x:messages share a key. Nothing was changed."
        )
    # The first word is the server's code for it; what follows may quote stored text.
    return f"{server} refuses ({said.split(' ', 1)[0][:20]}).{changed}"


def _why_unreachable(problem: Exception) -> str:
    for cause in _causes(problem):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate is not trusted here."
        if isinstance(cause, ssl.SSLError):
            return NO_TLS
        if isinstance(cause, OSError) and cause.strerror:
            return f"{cause.strerror.lower()}."
    return "it closed the connection; it may want TLS (rediss://)."


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    while problem is not None:
        yield problem
        problem = problem.__cause__ or problem.__context__


def run(script: str, client: Any, keys: Sequence[str | bytes], arguments: Sequence[str | bytes | int]) -> Any:
    """On a client, or queued on its pipeline. The server keeps a script by its hash, and is sent it once."""
    return client.register_script(script)(keys=keys, args=arguments, client=client)
