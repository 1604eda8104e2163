"""Client of a Dapr sidecar's state API, with its errors as sentences for operators.

The generated stubs of the `dapr` package, not its client: that one waits for the sidecar for a minute, and tries
again by itself. One channel per address, kept for the life of the process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any

from memadmin import times
from memadmin.batching import batched
from sessions_app.stores.base import IN_DOUBT, StoreTooSlow, StoreUnavailable
from sessions_app.stores.hosts import endpoint

if TYPE_CHECKING:
    from dapr.conf.helpers import GrpcEndpoint

ANSWER_SECONDS = 5.0

KEYS_AT_ONCE = 20
"""Number of values in one request: each may be a whole session."""

LARGEST_ANSWER_BYTES = 256 * 1024 * 1024


class Conflict(Exception):
    """The value has changed since it was read; nothing was changed."""


@dataclass(frozen=True, slots=True)
class StateValue:
    """Value of a key in a state store."""

    data: bytes
    etag: str
    expires_at: datetime | None = None
    """Time at which the state store deletes it by itself."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A state store, and the names of the variables with the address of its sidecar, for sentences."""

    address: str
    state_store: str
    address_variable: str
    token: str = ""
    token_variable: str = ""

    @property
    def label(self) -> str:
        return f"The Dapr sidecar that {self.address_variable} names"


class StateStore:
    """State API of one state store. Raises Conflict, and StoreUnavailable with a sentence for all other errors."""

    def __init__(self, place: Sidecar) -> None:
        self.place = place

    def endpoint(self) -> str:
        """Address of the sidecar, equal for all names of its machine. Raises StoreUnavailable."""
        found = address_of(self.place)
        return endpoint(found.hostname, int(found.port) if found.port else None)

    def get(self, key: str) -> StateValue | None:
        api_v1, _ = messages()
        answer = self._ask("GetState", api_v1.GetStateRequest(store_name=self.place.state_store, key=key))
        return value_of(answer)

    def get_all(self, keys: Sequence[str]) -> dict[str, StateValue]:
        """Values of the existing keys."""
        api_v1, _ = messages()
        found: dict[str, StateValue] = {}
        for asked in batched(keys, KEYS_AT_ONCE):
            answer = self._ask(
                "GetBulkState",
                api_v1.GetBulkStateRequest(store_name=self.place.state_store, keys=asked, parallelism=KEYS_AT_ONCE),
            )
            for item in answer.items:
                if item.error:
                    raise StoreUnavailable(f"{self.place.label} cannot read a key: an error of its state store.")
                if value := value_of(item):
                    found[item.key] = value
        return found

    def put(self, key: str, data: bytes, *, instead_of: StateValue) -> None:
        """Replaces the value that was read, and keeps its expiry. Raises Conflict."""
        api_v1, common_v1 = messages()
        metadata = {}
        if instead_of.expires_at:
            left = (instead_of.expires_at - datetime.now(UTC)).total_seconds()
            metadata["ttlInSeconds"] = str(max(ceil(left), 1))
        state = common_v1.StateItem(
            key=key, value=data, etag=self._etag(instead_of), options=self._first_write(), metadata=metadata
        )
        self._ask(
            "SaveState", api_v1.SaveStateRequest(store_name=self.place.state_store, states=[state]), is_write=True
        )

    def delete(self, key: str, value: StateValue | None = None) -> None:
        """Deletes a value; only the one that was read, if given. Raises Conflict."""
        api_v1, _ = messages()
        request = api_v1.DeleteStateRequest(store_name=self.place.state_store, key=key)
        if value:
            request = api_v1.DeleteStateRequest(
                store_name=self.place.state_store, key=key, etag=self._etag(value), options=self._first_write()
            )
        self._ask("DeleteState", request, is_write=True)

    def _etag(self, value: StateValue) -> Any:
        _, common_v1 = messages()
        if not value.etag:
            raise StoreUnavailable(
                f"The state store {self.place.state_store} gives no etags, so a write of an agent at the same time"
                " would be lost. Nothing was changed."
            )
        return common_v1.Etag(value=value.etag)

    def _first_write(self) -> Any:
        _, common_v1 = messages()
        return common_v1.StateOptions(concurrency=common_v1.StateOptions.StateConcurrency.CONCURRENCY_FIRST_WRITE)

    def _ask(self, name: str, request: Any, *, is_write: bool = False) -> Any:
        stub = stub_for(self.place)
        token = [("dapr-api-token", self.place.token)] if self.place.token else []
        with plain_words(self.place, is_write=is_write):
            return getattr(stub, name)(request, timeout=ANSWER_SECONDS, metadata=token)


def value_of(answer: Any) -> StateValue | None:
    """Value in an answer; None for a missing key, which the sidecar answers with nothing."""
    return StateValue(bytes(answer.data), answer.etag, expiry_in(answer.metadata)) if answer.data else None


def expiry_in(metadata: Mapping[str, str]) -> datetime | None:
    return times.of_text(metadata.get("ttlExpireTime"))


def messages() -> tuple[Any, Any]:
    """Generated message classes of the sidecar's API. Raises StoreUnavailable without the package."""
    try:
        from dapr.proto import api_v1, common_v1
    except ImportError as problem:
        raise StoreUnavailable(
            "The Python package dapr is not installed here: pip install memadmin[dapr] brings it."
        ) from problem
    return api_v1, common_v1


def stub_for(place: Sidecar) -> Any:
    """Connects nothing yet. Raises StoreUnavailable for an invalid address."""
    found = address_of(place)
    return _stub(found.endpoint, found.tls)


def address_of(place: Sidecar) -> GrpcEndpoint:
    """Parsed address. Raises StoreUnavailable if it is invalid."""
    messages()  # raises if the package is missing
    from dapr.conf.helpers import GrpcEndpoint

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of an address with http://, which we take
            return GrpcEndpoint(place.address)
    except ValueError as problem:
        raise StoreUnavailable(
            f"The value of {place.address_variable} is not the address of a Dapr sidecar, such as localhost:50001,"
            " or dapr.example.com:443?tls=true."
        ) from problem


@lru_cache(maxsize=64)
def _stub(endpoint: str, has_tls: bool) -> Any:
    import grpc
    from dapr.proto import api_service_v1

    options = [
        ("grpc.max_receive_message_length", LARGEST_ANSWER_BYTES),
        ("grpc.max_send_message_length", LARGEST_ANSWER_BYTES),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    stub: Any = api_service_v1.DaprStub
    if has_tls:
        return stub(grpc.secure_channel(endpoint, grpc.ssl_channel_credentials(), options))
    return stub(grpc.insecure_channel(endpoint, options))


@contextmanager
def plain_words(place: Sidecar, *, is_write: bool) -> Iterator[None]:
    import grpc

    try:
        yield
    except grpc.RpcError as problem:
        call: Any = problem
        code, said = call.code().name, str(call.details() or "").lower()
        in_doubt = IN_DOUBT if is_write else ""
        if code == "DEADLINE_EXCEEDED":
            raise StoreTooSlow(
                f"{place.label} did not respond within {ANSWER_SECONDS:g} seconds.{in_doubt}"
            ) from problem
        if is_write and is_conflict(code, said):
            raise Conflict from problem
        raise StoreUnavailable(_sentence(place, code, said, in_doubt)) from problem


def is_conflict(code: str, said: str) -> bool:
    """Whether an error is a conflict, by the SDK's rule: the code, or the words of state stores without one."""
    words = ("etag mismatch", "etag does not match", "failed to set key", "failed to delete key", "user_script")
    return code == "ABORTED" or any(each in said for each in words)


def _sentence(place: Sidecar, code: str, said: str, in_doubt: str) -> str:
    if code == "UNAVAILABLE":
        return f"{place.label} cannot be reached.{in_doubt}"
    if code in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
        whose = f"the token in {place.token_variable}" if place.token_variable else "requests without a token"
        return f"{place.label} refuses {whose}."
    if code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND") and (
        "is not found" in said or "not configured" in said or "not found" in said
    ):
        return f"{place.label} has no state store {place.state_store}."
    if code == "UNIMPLEMENTED":
        return f"{place.label}: the server there is not a Dapr sidecar."
    if code == "RESOURCE_EXHAUSTED":
        return f"{place.label} refuses so large a message; its sidecar needs a larger --max-body-size."
    return f"{place.label} refuses ({code}).{in_doubt if code in ('INTERNAL', 'UNKNOWN') else ''}"
