"""Connections to a MongoDB server, and its errors as sentences for operators.

One client per address, which keeps its own pool of connections, for the life of the process. A change is never tried
again by the driver: the caller decides that, because it may have been made although no answer came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sessions_app.stores.base import StoreTooSlow, StoreUnavailable

if TYPE_CHECKING:
    from pymongo import MongoClient

ANSWER_SECONDS = 5.0
"""Timeout of a call, including server selection and connecting."""

NO_RIGHT, WRONG_PASSWORD = 13, 18

NOT_PRIMARY = "is not the primary, and cannot be written to. Nothing was changed."


def client_for(address: str, variable: str) -> MongoClient[Any]:
    """Connects nothing yet. `variable` is the source of the address, for sentences.

    Raises StoreUnavailable without the package, and for an invalid address.
    """
    try:
        from pymongo.errors import ConfigurationError
    except ImportError as problem:
        raise StoreUnavailable(
            "The Python package pymongo is not installed here: pip install memadmin[mongodb] brings it."
        ) from problem
    try:
        return _client(address, ANSWER_SECONDS)
    except (ConfigurationError, ValueError, TypeError) as problem:  # also for an unknown setting
        raise StoreUnavailable(
            f"The value of {variable} is not the address of a MongoDB server, or has an unknown setting; it"
            " looks like mongodb://user:password@host:27017/?tls=true."
        ) from problem


@lru_cache(maxsize=64)
def _client(address: str, seconds: float) -> MongoClient[Any]:
    import warnings

    from bson.codec_options import DatetimeConversion
    from pymongo import MongoClient

    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", UserWarning
        )  # the driver reports an unknown setting of an address in the same way
        try:
            return MongoClient(
                address,
                tz_aware=True,
                datetime_conversion=DatetimeConversion.DATETIME_AUTO,
                # These settings override the address.
                timeoutMS=int(seconds * 1000),
                serverSelectionTimeoutMS=int(seconds * 1000),
                connectTimeoutMS=int(seconds * 1000),
                retryWrites=False,
                maxPoolSize=8,
                appname="memadmin",
            )
        except UserWarning as unknown:
            raise ValueError(str(unknown)) from unknown


@contextmanager
def plain_words(variable: str, *, changed: str = "") -> Iterator[None]:
    """Turns errors of the server, the driver or the network into StoreUnavailable with a sentence; programming errors
    pass.

    `changed` is appended if there is no answer; it says whether something was changed.
    """
    from pymongo import errors

    server = f"The MongoDB server that {variable} names"
    try:
        yield
    except errors.OperationFailure as problem:
        if problem.timeout:
            raise StoreTooSlow(f"{server} did not respond within {ANSWER_SECONDS:g} seconds.{changed}") from problem
        raise StoreUnavailable(_refusal(problem, server)) from problem
    except errors.ServerSelectionTimeoutError as problem:
        raise _unreachable(problem, server) from problem
    except errors.NotPrimaryError as problem:
        raise StoreUnavailable(f"{server} {NOT_PRIMARY}") from problem
    except errors.PyMongoError as problem:
        if problem.timeout:
            raise StoreTooSlow(f"{server} did not respond within {ANSWER_SECONDS:g} seconds.{changed}") from problem
        if isinstance(problem, errors.ConnectionFailure):
            raise StoreUnavailable(f"{server} closed the connection.{changed}") from problem
        raise StoreUnavailable(f"{server} cannot be queried ({type(problem).__name__}).{changed}") from problem


def _refusal(problem: Any, server: str) -> str:
    if problem.code == WRONG_PASSWORD:
        return f"{server} refuses the user or the password in that address."
    if problem.code == NO_RIGHT:
        return (
            f"{server} does not let the user of this console do this, or requires a user: it needs the role readWrite"
            " on the agents' database. Nothing was changed."
        )
    # Its message may quote stored text; the code does not.
    return f"{server} refuses (error {problem.code})."


def _unreachable(problem: Exception, server: str) -> StoreUnavailable:
    """Reason in the driver's error after server selection timed out, without the host names that it quotes."""
    said = str(problem)
    if re.search(r"certificate verify failed", said, re.IGNORECASE):
        return StoreUnavailable(f"{server} cannot be reached: its TLS certificate is not trusted here.")
    if re.search(r"SSL|TLS", said):
        return StoreUnavailable(f"{server} cannot be reached: TLS failed; it may not speak TLS on this port.")
    if re.search(r"Connection refused", said):
        return StoreUnavailable(f"{server} cannot be reached: connection refused.")
    if re.search(r"Name or service not known|nodename|Temporary failure in name", said):
        return StoreUnavailable(f"{server} cannot be reached: its host name is unknown.")
    if re.search(r"connection closed", said):
        return StoreUnavailable(f"{server} cannot be reached: it closed the connection; it may want TLS (tls=true).")
    return StoreTooSlow(f"{server} did not respond within {ANSWER_SECONDS:g} seconds.")
