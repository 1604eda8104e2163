"""Client of the Conversations API on the `openai` package, with its errors as sentences for operators.

One client per address and key, kept for the life of the process. It retries nothing by itself: the caller
decides that, because a page must not wait for as long as a rate limit lasts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from sessions_app.stores.base import IN_DOUBT, SessionUnreadable, StoreTooSlow, StoreUnavailable

if TYPE_CHECKING:
    from openai import OpenAI

ANSWER_SECONDS = 5.0
"""Timeout of connecting, and of each part of an answer."""

PAGE_ITEMS = 100
"""Largest page of the API."""

OFFICIAL_ADDRESS = "https://api.openai.com/v1"

Order = Literal["asc", "desc"]


class NotThere(Exception):
    """No such conversation or item is visible to this key."""


class UnreadableAnswer(SessionUnreadable):
    """The answer is JSON that Python cannot decode: nested too deeply, or with a number of thousands of digits."""


class AskedToWait(StoreUnavailable):
    """Rate limit: the API names the time of the next request."""

    def __init__(self, sentence: str, seconds: float) -> None:
        super().__init__(sentence)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Account:
    """Address and key of the API, and the names of their variables, for sentences."""

    address: str
    key: str
    key_variable: str
    address_variable: str = ""

    @property
    def label(self) -> str:
        return f"The Conversations API that {self.address_variable} names" if self.address_variable else "OpenAI's API"


class ConversationsApi:
    """Requests to the API. Raises NotThere, and StoreUnavailable with a sentence for all other errors."""

    def __init__(self, place: Account) -> None:
        self.place = place

    def items(self, conversation_id: str, *, order: Order, after: str, limit: int) -> tuple[list[dict[str, Any]], bool]:
        """One page: up to `limit` items, at most PAGE_ITEMS, beyond the item `after`; and whether there are more."""
        from openai import omit

        decoded = self._answer(
            lambda client: client.conversations.items.with_raw_response.list(
                conversation_id, order=order, limit=limit, after=after or omit
            )
        )
        items = decoded.get("data")
        if not isinstance(items, list) or not all(isinstance(item, dict) and "id" in item for item in items):
            raise StoreUnavailable(not_the_api(self.place))
        return items, bool(decoded.get("has_more")) and bool(items)

    def item(self, conversation_id: str, item_id: str) -> dict[str, Any]:
        return self._answer(
            lambda client: client.conversations.items.with_raw_response.retrieve(
                item_id, conversation_id=conversation_id
            )
        )

    def delete_item(self, conversation_id: str, item_id: str) -> None:
        self._answer(
            lambda client: client.conversations.items.with_raw_response.delete(
                item_id, conversation_id=conversation_id
            ),
            changed=IN_DOUBT,
        )

    def delete_conversation(self, conversation_id: str) -> None:
        self._answer(
            lambda client: client.conversations.with_raw_response.delete(conversation_id),
            changed=IN_DOUBT,
        )

    def _answer(self, ask: Callable[[OpenAI], Any], *, changed: str = "") -> dict[str, Any]:
        client = client_for(self.place)
        with plain_words(self.place, changed=changed):
            # The package's models drop unknown members: so the text itself is read.
            answer = ask(client)
            decoded = decoded_answer(self.place, answer.http_response.content)
        if not isinstance(decoded, dict):
            raise StoreUnavailable(not_the_api(self.place))
        return decoded


def decoded_answer(place: Account, content: bytes) -> Any:
    """Value of an answer. Raises UnreadableAnswer, and JSONDecodeError for anything but JSON."""
    try:
        return json.loads(content)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as problem:
        raise UnreadableAnswer(
            f"{place.label} returned an item that is nested too deeply, or that has a number of thousands of digits."
            " Open a page without it."
        ) from problem


def patiently(change: Callable[[], None], *, until: float) -> None:
    """Retries a change after the time that the API asks for; raises AskedToWait if that is beyond `until`."""
    while True:
        try:
            return change()
        except AskedToWait as refusal:
            if monotonic() + refusal.seconds > until:
                raise
            sleep(refusal.seconds)


def client_for(place: Account) -> OpenAI:
    """Connects nothing yet. Raises StoreUnavailable for an invalid address or key."""
    parts = urlsplit(place.address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise StoreUnavailable(
            f"The value of {place.address_variable} is not the address of an API, such as {OFFICIAL_ADDRESS}."
        )
    if not place.key.isascii() or not place.key.isprintable() or " " in place.key:
        raise StoreUnavailable(
            f"The value of {place.key_variable} is not a key: it contains characters that no key has."
        )
    return _client(place.address, place.key, ANSWER_SECONDS)


@lru_cache(maxsize=64)
def _client(address: str, key: str, seconds: float) -> OpenAI:
    from openai import OpenAI

    return OpenAI(api_key=key, base_url=address, timeout=seconds, max_retries=0)


@contextmanager
def plain_words(place: Account, *, changed: str = "") -> Iterator[None]:
    """Turns errors of the API or the network into NotThere or StoreUnavailable; programming errors pass.

    `changed` is appended if there is no answer, so that the outcome of a change is unknown.
    """
    import openai

    try:
        yield
    except openai.APITimeoutError as problem:
        raise StoreTooSlow(f"{place.label} did not respond within {ANSWER_SECONDS:g} seconds.{changed}") from problem
    except openai.APIConnectionError as problem:
        raise StoreUnavailable(f"{place.label} cannot be reached: {_why_unreachable(problem)}{changed}") from problem
    except openai.RateLimitError as problem:
        raise _asked_to_wait(place, problem) from problem
    except openai.APIStatusError as problem:
        if _says_not_there(problem):
            raise NotThere from problem
        raise StoreUnavailable(_sentence(place, problem, changed)) from problem
    except json.JSONDecodeError as problem:
        raise StoreUnavailable(not_the_api(place)) from problem


def not_the_api(place: Account) -> str:
    remedy = f" Is the address in {place.address_variable} right, with its /v1?" if place.address_variable else ""
    return f"{place.label}: the server there is not the Conversations API.{remedy}"


def _says_not_there(problem: Any) -> bool:
    """Whether the error is the API's own: any web server answers 404 to an unknown path."""
    said = problem.body
    if not isinstance(said, dict) or not isinstance(said.get("message"), str):
        return False
    if problem.status_code == 404:
        return not said["message"].startswith("Invalid URL")
    # The answer to a malformed id.
    return problem.status_code == 400 and said.get("param") in ("conversation_id", "item_id", "after")


def _sentence(place: Account, problem: Any, changed: str) -> str:
    status = problem.status_code
    if status == 401:
        return f"{place.label} refuses the key in {place.key_variable}."
    if status == 403:
        return (
            f"{place.label} does not let the key in {place.key_variable} do this: it needs to read and write"
            " conversations, in the project of the agents. Nothing was changed."
        )
    if status == 404:
        return not_the_api(place)
    if status >= 500:
        return f"{place.label} has an internal error ({status}); try again later.{changed}"
    return f"{place.label} refuses ({status})."


def _asked_to_wait(place: Account, problem: Any) -> StoreUnavailable:
    said = problem.body if isinstance(problem.body, dict) else {}
    if said.get("code") == "insufficient_quota":
        return StoreUnavailable(
            f"{place.label} refuses: the quota of the account for the key in {place.key_variable} is used up."
        )
    try:
        seconds = max(float(problem.response.headers.get("retry-after", "")), 0.0)
    except ValueError:
        seconds = 1.0
    return AskedToWait(f"{place.label} accepts no requests for the next {seconds:g} seconds.", seconds)


def _why_unreachable(problem: BaseException | None) -> str:
    import ssl

    while problem is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            return "its TLS certificate is not trusted here."
        if isinstance(problem, ssl.SSLError):
            return "TLS failed; it may not speak TLS on this port."
        if isinstance(problem, OSError) and problem.strerror:
            return f"{problem.strerror.lower()}."
        problem = problem.__cause__ or problem.__context__
    return "it closed the connection."
