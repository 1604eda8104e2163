"""A stand-in for a MongoDB server: it speaks the wire protocol to the real drivers, and keeps documents in memory.

Neither Debian nor a Python package brings a MongoDB server. This one knows the commands, operators and stages that the
SDK's MongoDBSession and memadmin use, with MongoDB's meaning of each, and refuses every other one with an error, so
that a test cannot pass on something that it only passes over. A command is carried out alone, as MongoDB does it for
one document.
"""

from __future__ import annotations

import copy
import json
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cmp_to_key
from itertools import count
from typing import Any

import bson
from bson import ObjectId, json_util
from bson.codec_options import CodecOptions

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(document_class=dict, tz_aware=True)
WRITES = {"insert", "update", "delete", "findAndModify", "createIndexes"}

Document = dict[str, Any]


class Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class MongoStandIn:
    def __init__(self) -> None:
        self.collections: dict[str, list[Document]] = {}
        self.indexes: dict[str, list[Document]] = {}
        self.cursors: dict[int, list[Document]] = {}
        self.numbers, self.lock = count(1), threading.RLock()
        self.commands: list[str] = []
        self.refuse: dict[str, Refusal] = {}
        """What a command is answered, by its name; `*` for all but the greeting."""
        self.before: Callable[[str, Document], None] = lambda name, command: None
        """Called before each command is carried out, for a test to come in between."""
        self.is_primary = True
        self.open = threading.Event()
        self.open.set()
        self.server = Listener(("127.0.0.1", 0), connection_for(self))
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def address(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/"

    def empty(self) -> None:
        with self.lock:
            for kept in (self.collections, self.indexes, self.cursors, self.refuse):
                kept.clear()
            self.before = lambda name, command: None
            self.is_primary = True

    def documents(self, collection: str) -> list[Document]:
        return self.collections.setdefault(f"agents.{collection}", [])

    def leftovers(self, words: str) -> list[str]:
        with self.lock:
            return [
                f"{name} {document.get('session_id')}"
                for name, documents in self.collections.items()
                for document in documents
                if words in json_util.dumps(document, ensure_ascii=False)
            ]

    @contextmanager
    def refusing(self, code: int, *commands: str) -> Iterator[None]:
        self.refuse = {name: Refusal(code, "no, and here is what was stored: 4711") for name in commands or ("*",)}
        try:
            yield
        finally:
            self.refuse = {}

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections, and answers nothing; what it was asked meanwhile it does not do."""
        self.open.clear()
        try:
            yield
        finally:
            self.open.set()

    def end(self) -> None:
        self.open.set()
        self.server.shutdown()
        self.server.end_connections()
        self.server.server_close()
        self.thread.join()

    # --- commands -----------------------------------------------------------------------------------------------------

    def answer(self, command: Document) -> Document:
        name = next(iter(command))
        try:
            self.before(name, command)
            with self.lock:
                self.commands.append(name)
                if name in ("hello", "ismaster", "isMaster"):
                    return self.hello()
                if refusal := self.refuse.get(name) or self.refuse.get("*"):
                    raise refusal
                if name in WRITES and not self.is_primary:
                    raise Refusal(10107, "not primary")
                carry_out = getattr(self, f"run_{name}", None)
                if carry_out is None:
                    raise Refusal(59, f"no such command: '{name}'")
                return {**carry_out(command), "ok": 1.0}
        except Refusal as refusal:
            return {"ok": 0.0, "code": refusal.code, "codeName": "Refused", "errmsg": str(refusal)}

    def hello(self) -> Document:
        return {
            "helloOk": True,
            "ismaster": self.is_primary,
            "isWritablePrimary": self.is_primary,
            "maxBsonObjectSize": 16 * 1024 * 1024,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "localTime": datetime.now(UTC),
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "readOnly": False,
            "ok": 1.0,
        }

    def run_ping(self, command: Document) -> Document:
        return {}

    run_endSessions = run_ping

    def run_killCursors(self, command: Document) -> Document:
        for cursor in command["cursors"]:
            self.cursors.pop(cursor, None)
        return {"cursorsKilled": command["cursors"]}

    def run_saslStart(self, command: Document) -> Document:
        raise Refusal(18, "Authentication failed.")

    def run_createIndexes(self, command: Document) -> Document:
        name = self.name_of(command, "createIndexes")
        self.collections.setdefault(name, [])
        kept = self.indexes.setdefault(name, [])
        kept += [index for index in command["indexes"] if index["name"] not in {each["name"] for each in kept}]
        return {}

    def run_listIndexes(self, command: Document) -> Document:
        name = self.name_of(command, "listIndexes")
        if name not in self.collections:
            raise Refusal(26, "ns does not exist")
        first = {"v": 2, "key": {"_id": 1}, "name": "_id_"}
        return self.handed_over(name, [first, *self.indexes.get(name, [])], {})

    def run_count(self, command: Document) -> Document:
        return {"n": len(list(self.matching(self.name_of(command, "count"), command.get("query") or {})))}

    def run_find(self, command: Document) -> Document:
        name = self.name_of(command, "find")
        found = sorted_by(self.matching(name, command.get("filter") or {}), command.get("sort") or {})
        if limit := command.get("limit"):
            found = found[:limit]
        only = {field for field, wanted in (command.get("projection") or {}).items() if wanted}
        found = [{key: value for key, value in each.items() if not only or key in only | {"_id"}} for each in found]
        return self.handed_over(name, found, command)

    def run_aggregate(self, command: Document) -> Document:
        name = self.name_of(command, "aggregate")
        documents: list[Document] = list(self.collections.get(name, []))
        for stage in command["pipeline"]:
            ((operator, wanted),) = stage.items()
            match operator:
                case "$match":
                    documents = [each for each in documents if matches(each, wanted)]
                case "$sort":
                    documents = sorted_by(documents, wanted)
                case "$limit":
                    documents = documents[:wanted]
                case "$group":
                    documents = grouped(documents, wanted)
                case "$project":
                    documents = [
                        {"_id": each["_id"], **{field: evaluated(each, value) for field, value in wanted.items()}}
                        for each in documents
                    ]
                case _:
                    raise Refusal(40324, f"Unrecognized pipeline stage name: '{operator}'")
        return self.handed_over(name, documents, command.get("cursor") or {})

    def run_getMore(self, command: Document) -> Document:
        waiting = self.cursors.pop(command["getMore"], None)
        if waiting is None:
            raise Refusal(43, "cursor id not found")
        name = f"{command['$db']}.{command['collection']}"
        return self.handed_over(name, waiting, command, batch="nextBatch")

    def handed_over(
        self, name: str, documents: list[Document], wanted: Mapping[str, Any], *, batch: str = "firstBatch"
    ) -> Document:
        size = wanted.get("batchSize") or 101
        number = 0
        if documents[size:] and not wanted.get("singleBatch"):
            number = next(self.numbers)
            self.cursors[number] = documents[size:]
        # A copy, because what is sent is what was there at this moment.
        return {"cursor": {"id": bson.Int64(number), "ns": name, batch: copy.deepcopy(documents[:size])}}

    def run_insert(self, command: Document) -> Document:
        name = self.name_of(command, "insert")
        for document in command["documents"]:
            self.insert(name, {"_id": document.get("_id", ObjectId()), **document})
        return {"n": len(command["documents"])}

    def insert(self, name: str, document: Document) -> None:
        kept = self.collections.setdefault(name, [])
        for index in self.indexes.get(name, []):
            if index.get("unique") and any(
                all(each.get(field) == document.get(field) for field in index["key"]) for each in kept
            ):
                raise Refusal(11000, "E11000 duplicate key error")
        kept.append(document)

    def run_update(self, command: Document) -> Document:
        name, matched = self.name_of(command, "update"), 0
        for update in command["updates"]:
            refuse_others(update, {"q", "u", "multi", "upsert"})
            if update.get("upsert"):
                raise Refusal(9, "an upsert by update is not known here")
            for document in list(self.matching(name, update["q"]))[: None if update.get("multi") else 1]:
                self.change(document, update["u"])
                matched += 1
        return {"n": matched, "nModified": matched}

    def run_delete(self, command: Document) -> Document:
        name, gone = self.name_of(command, "delete"), 0
        for deletion in command["deletes"]:
            for document in list(self.matching(name, deletion["q"]))[: deletion.get("limit") or None]:
                self.collections[name].remove(document)
                gone += 1
        return {"n": gone}

    def run_findAndModify(self, command: Document) -> Document:
        name = self.name_of(command, "findAndModify")
        found = sorted_by(self.matching(name, command["query"]), command.get("sort") or {})
        if not found:
            if not command.get("upsert"):
                return {"value": None, "lastErrorObject": {"n": 0, "updatedExisting": False}}
            document = {"_id": ObjectId()}
            self.change(document, command["update"], is_new=True)
            self.insert(name, document)
            return {"value": copy.deepcopy(document) if command.get("new") else None}
        before = copy.deepcopy(found[0])
        self.change(found[0], command["update"])
        return {"value": copy.deepcopy(found[0]) if command.get("new") else before}

    def change(self, document: Document, update: Any, *, is_new: bool = False) -> None:
        if isinstance(update, list):
            for stage in update:
                refuse_others(stage, {"$set"})
                values = {field: evaluated(document, wanted) for field, wanted in stage["$set"].items()}
                document.update(values)
            return
        for operator, wanted in update.items():
            match operator:
                case "$set":
                    document.update(wanted)
                case "$inc":
                    for field, by in wanted.items():
                        document[field] = document.get(field, 0) + by
                case "$push":
                    for field, pushed in wanted.items():
                        refuse_others(pushed, {"$each", "$slice"})
                        document[field] = [*document[field], *pushed["$each"]][: pushed["$slice"]]
                case "$setOnInsert":
                    document.update(wanted if is_new else {})
                case _:
                    raise Refusal(9, f"Unknown modifier: {operator}")

    def name_of(self, command: Document, key: str) -> str:
        return f"{command['$db']}.{command[key]}"

    def matching(self, name: str, wanted: Document) -> Iterator[Document]:
        return (each for each in self.collections.get(name, []) if matches(each, wanted))


# --- what the operators mean ------------------------------------------------------------------------------------------

MISSING = object()


def matches(document: Document, wanted: Mapping[str, Any]) -> bool:
    return all(_meets(document, field, condition) for field, condition in wanted.items())


def _meets(document: Document, field: str, condition: Any) -> bool:
    if field == "$or":
        return any(matches(document, each) for each in condition)
    if field.startswith("$") or "." in field:
        raise Refusal(2, f"unknown operator or path: {field}")
    value = document.get(field, MISSING)
    if isinstance(condition, dict) and any(key.startswith("$") for key in condition):
        return all(_compares(operator, value, operand) for operator, operand in condition.items())
    return _equals(value, condition)


def _compares(operator: str, value: Any, operand: Any) -> bool:
    match operator:
        case "$eq":
            return _equals(value, operand)
        case "$ne":
            return not _equals(value, operand)
        case "$in":
            return any(_equals(value, each) for each in operand)
        case "$size":
            return isinstance(value, list) and len(value) == operand
        case "$exists":
            return bool((value is not MISSING) == operand)
        case "$gt" | "$gte" | "$lt" | "$lte":
            # Values of another kind are neither smaller nor larger.
            if value is MISSING or kind_of(value) != kind_of(operand):
                return False
            difference = compared(value, operand)
            meets = {"$gt": difference > 0, "$gte": difference >= 0, "$lt": difference < 0, "$lte": difference <= 0}
            return bool(meets[operator])
    raise Refusal(2, f"unknown operator: {operator}")


def _equals(value: Any, wanted: Any) -> bool:
    """A missing field is null; a list is equal to each of its own, too."""
    if value is MISSING:
        return wanted is None
    return value == wanted or (isinstance(value, list) and wanted in value)


def kind_of(value: Any) -> int:
    """In MongoDB's order of kinds."""
    kinds: list[tuple[type | tuple[type, ...], int]] = [
        (bool, 8),
        ((int, float), 2),
        (str, 3),
        (dict, 4),
        (list, 5),
        (ObjectId, 7),
        (datetime, 9),
    ]
    return 1 if value is None or value is MISSING else next(rank for each, rank in kinds if isinstance(value, each))


def compared(one: Any, other: Any) -> int:
    if kind_of(one) != kind_of(other):
        return kind_of(one) - kind_of(other)
    if kind_of(one) == 1 or one == other:
        return 0
    if isinstance(one, str):
        one, other = one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass")
    return 1 if one > other else -1


def sorted_by(documents: Iterable[Document], order: Mapping[str, int]) -> list[Document]:
    ordered = list(documents)
    for field, direction in reversed(list(order.items())):
        ordered.sort(key=cmp_to_key(lambda a, b, f=field: compared(a.get(f), b.get(f))), reverse=direction < 0)  # type: ignore[misc]
    return ordered


def grouped(documents: Iterable[Document], wanted: Document) -> list[Document]:
    groups: dict[str, Document] = {}
    for document in documents:
        key = evaluated(document, wanted["_id"])
        group = groups.setdefault(json.dumps(key, sort_keys=True), {"_id": key})
        for field, accumulated in wanted.items():
            if field != "_id":
                refuse_others(accumulated, {"$sum"})
                group[field] = group.get(field, 0) + evaluated(document, accumulated["$sum"])
    return list(groups.values())


def evaluated(document: Document, wanted: Any) -> Any:
    """An expression of an aggregation. A field that is missing is left out of an object."""
    if isinstance(wanted, str) and wanted.startswith("$"):
        return document.get(wanted[1:])
    if not isinstance(wanted, dict):
        return wanted
    if not any(key.startswith("$") for key in wanted):
        values = {key: evaluated(document, value) for key, value in wanted.items()}
        return {key: value for key, value in values.items() if value is not None}
    ((operator, operand),) = wanted.items()
    if operator == "$cond":
        condition, yes, no = operand
        return evaluated(document, yes if evaluated(document, condition) else no)
    operands = [evaluated(document, each) for each in (operand if isinstance(operand, list) else [operand])]
    match operator:
        case "$isArray":
            return isinstance(operands[0], list)
        case "$size":
            return len(operands[0])
        case "$subtract":
            return operands[0] - operands[1]
        case "$slice":
            return operands[0][: operands[1]]
    raise Refusal(168, f"Unrecognized expression '{operator}'")


def refuse_others(given: Mapping[str, Any], known: set[str]) -> None:
    if others := set(given) - known:
        raise Refusal(9, f"not known here: {', '.join(sorted(others))}")


# --- the wire ---------------------------------------------------------------------------------------------------------


class Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    connected: set[socket.socket]

    def end_connections(self) -> None:
        for each in list(getattr(self, "connected", ())):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def connection_for(stand_in: MongoStandIn) -> type[socketserver.BaseRequestHandler]:
    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            known = stand_in.server.__dict__.setdefault("connected", set())
            known.add(self.request)
            try:
                while header := self.exactly(16):
                    size, number, _, kind = struct.unpack("<iiii", header)
                    if kind not in (OP_QUERY, OP_MSG):
                        return  # perhaps the beginning of TLS, which a server without it refuses in the same way
                    body = self.exactly(size - 16)
                    if not stand_in.open.is_set():
                        stand_in.open.wait()
                        return
                    self.request.sendall(self.reply(kind, number, body))
            except (OSError, struct.error):
                return
            finally:
                known.discard(self.request)

        def exactly(self, size: int) -> bytes:
            parts = b""
            while len(parts) < size:
                part = self.request.recv(size - len(parts))
                if not part:
                    return b""
                parts += part
            return parts

        def reply(self, kind: int, number: int, body: bytes) -> bytes:
            if kind == OP_QUERY:  # the first greeting
                start = body.index(b"\0", 4) + 1 + 8
                told = bson.encode(stand_in.answer(bson.decode(body[start:], OPTIONS)))
                return framed(OP_REPLY, number, struct.pack("<iqii", 8, 0, 0, 1) + told)
            told = bson.encode(stand_in.answer(command_in(body)))
            return framed(OP_MSG, number, struct.pack("<I", 0) + b"\0" + told)

    return Connection


def framed(kind: int, answers: int, body: bytes) -> bytes:
    return struct.pack("<iiii", 16 + len(body), 0, answers, kind) + body


def command_in(body: bytes) -> Document:
    """A command and the documents that follow it in sections of their own."""
    command: Document = {}
    place = 4
    while place < len(body):
        section, place = body[place], place + 1
        (size,) = struct.unpack_from("<i", body, place)
        if section == 0:
            command = {**bson.decode(body[place : place + size], OPTIONS), **command}
        else:
            name_end = body.index(b"\0", place + 4)
            documents = bson.decode_all(body[name_end + 1 : place + size], OPTIONS)
            command[body[place + 4 : name_end].decode()] = documents
        place += size
    return command
