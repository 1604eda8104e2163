"""A stand-in for OpenAI's Conversations API: a server of one's own that answers the requests of the `openai` package.

It keeps to what the API is documented to do: it gives items their ids and parts, lists them in both orders a page at a
time, at most a hundred, says `not found` in its own form, and keeps the items of a conversation that is deleted where
nobody can ask for them. It also makes trouble on request. One thing is for the tests alone: `keep`, a conversation with
an id of their choice.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "sk-of-the-tests-4711"

PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}

MOST_AT_ONCE = 20
"""Items that one request can add."""

Item = dict[str, Any]


class Refusal(Exception):
    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.said = status, {"message": message, "type": "invalid_request_error", **more}


@dataclass
class Trouble:
    """What every request meets, or the first `times` of them."""

    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = -1
    only: str = ""
    """The method of the requests that meet it; all if not given."""


class ConversationsServer:
    def __init__(self) -> None:
        self.conversations: dict[str, list[Item]] = {}
        self.unreachable_items: list[Item] = []
        """Of conversations that were deleted before their items."""
        self.requests: Counter[str] = Counter()
        self.trouble: Trouble | None = None
        self.lock, self.numbers = threading.RLock(), count(1)
        self.open, self.is_frozen = threading.Event(), False
        self.open.set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(self))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def keep(self, conversation_id: str) -> None:
        with self.lock:
            self.conversations.setdefault(conversation_id, [])

    def leftovers(self, words: str) -> list[str]:
        with self.lock:
            places = {**self.conversations, "unreachable items": self.unreachable_items}
            return [name for name, items in places.items() if words in name or words in json.dumps(items)]

    @contextmanager
    def troubled(self, trouble: Trouble) -> Iterator[None]:
        self.trouble = trouble
        try:
            yield
        finally:
            self.trouble = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections and requests, and answers nothing; what it was asked for meanwhile it does not do."""
        self.is_frozen = True
        self.open.clear()
        try:
            yield
        finally:
            self.is_frozen = False
            self.open.set()

    def end(self) -> None:
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    # --- what it does -------------------------------------------------------------------------------------------------

    def answer(self, method: str, path: list[str], query: dict[str, str], sent: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            match method, path:
                case "POST", []:
                    return self.create(sent)
                case "GET", [conversation_id]:
                    self.items_of(conversation_id)
                    return {
                        "id": conversation_id,
                        "object": "conversation",
                        "created_at": 1_770_000_000,
                        "metadata": {},
                    }
                case "DELETE", [conversation_id]:
                    self.unreachable_items += self.items_of(conversation_id)
                    del self.conversations[conversation_id]
                    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}
                case "GET", [conversation_id, "items"]:
                    return self.page(self.items_of(conversation_id), query)
                case "POST", [conversation_id, "items"]:
                    return self.add(self.items_of(conversation_id), sent["items"])
                case "GET", [conversation_id, "items", item_id]:
                    return self.item_of(conversation_id, item_id)
                case "DELETE", [conversation_id, "items", item_id]:
                    self.items_of(conversation_id).remove(self.item_of(conversation_id, item_id))
                    return {
                        "id": conversation_id,
                        "object": "conversation",
                        "created_at": 1_770_000_000,
                        "metadata": {},
                    }
        raise Refusal(404, f"Invalid URL ({method} /{'/'.join(path)})")

    def create(self, sent: dict[str, Any]) -> dict[str, Any]:
        conversation_id = f"conv_{next(self.numbers):032x}"
        self.add(self.conversations.setdefault(conversation_id, []), sent.get("items") or [])
        return {"id": conversation_id, "object": "conversation", "created_at": 1_770_000_000, "metadata": {}}

    def items_of(self, conversation_id: str) -> list[Item]:
        if conversation_id not in self.conversations:
            raise Refusal(404, f"Conversation with id '{conversation_id}' not found.", param=None, code=None)
        return self.conversations[conversation_id]

    def item_of(self, conversation_id: str, item_id: str) -> Item:
        for item in self.items_of(conversation_id):
            if item["id"] == item_id:
                return item
        raise Refusal(404, f"Item with id '{item_id}' not found in conversation.", param=None, code=None)

    def add(self, items: list[Item], sent: list[Item]) -> dict[str, Any]:
        if len(sent) > MOST_AT_ONCE:
            raise Refusal(400, f"At most {MOST_AT_ONCE} items.", param="items", code="invalid_value")
        added = [self.stored(item) for item in sent]
        items += added
        return listing(added, has_more=False)

    def stored(self, item: Item) -> Item:
        kind = item.get("type", "message")
        kept = {**item, "type": kind, "id": f"{PREFIXES.get(kind, 'item')}_{next(self.numbers):048x}"}
        kept.setdefault("status", "completed")
        if isinstance(item.get("content"), str):
            text = {"text": item["content"]}
            kept["content"] = [
                {"type": "output_text", **text, "annotations": [], "logprobs": []}
                if item["role"] == "assistant"
                else {"type": "input_text", **text}
            ]
        return kept

    def page(self, items: list[Item], query: dict[str, str]) -> dict[str, Any]:
        limit = int(query.get("limit", "20"))
        if not 1 <= limit <= 100:
            raise Refusal(400, "Invalid 'limit': 1 to 100.", param="limit", code="invalid_value")
        ordered = items if query.get("order", "desc") == "asc" else items[::-1]
        if after := query.get("after"):
            places = [number for number, item in enumerate(ordered) if item["id"] == after]
            if not places:
                raise Refusal(404, f"Item with id '{after}' not found in conversation.", param=None, code=None)
            ordered = ordered[places[0] + 1 :]
        return listing(ordered[:limit], has_more=len(ordered) > limit)


def listing(items: list[Item], *, has_more: bool) -> dict[str, Any]:
    first_id, last_id = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return {"object": "list", "data": items, "has_more": has_more, "first_id": first_id, "last_id": last_id}


def handler_for(conversations: ConversationsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def handle_any(self) -> None:
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            conversations.requests[self.command] += 1
            if conversations.is_frozen:
                conversations.open.wait()
                self.close_connection = True
                return
            if trouble := self.trouble():
                self.send(trouble.status, trouble.body, trouble.headers)
                return
            try:
                self.check()
                where = re.fullmatch(r"/v1/conversations(?:/(.*))?", parts.path)
                if not where:
                    raise Refusal(404, f"Invalid URL ({self.command} {parts.path})")
                path = [unquote(part) for part in (where[1] or "").split("/") if part]
                query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
                told = conversations.answer(self.command, path, query, json.loads(sent or b"{}"))
                self.send(200, json.dumps(told))
            except Refusal as refusal:
                self.send(refusal.status, json.dumps({"error": refusal.said}))

        do_GET = do_POST = do_DELETE = handle_any

        def trouble(self) -> Trouble | None:
            with conversations.lock:
                trouble = conversations.trouble
                if trouble is None or not trouble.times or trouble.only not in ("", self.command):
                    return None
                trouble.times -= 1
                return trouble

        def check(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {KEY}":
                raise Refusal(401, "Incorrect API key provided: sk-***.", code="invalid_api_key")

        def send(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
            content = body.encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
