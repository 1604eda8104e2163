"""Sessions of the SDK's RedisSession on a server of one's own."""

from __future__ import annotations

import inspect
import json
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from agents.extensions.memory import RedisSession
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.test import Client
from django.urls import reverse

from sessions_app import registry
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import WHOLE_ITEM_BYTES, Backend, ItemChanged, StoreUnavailable
from sessions_app.stores.redis import backend as kind
from sessions_app.stores.redis import scripts
from sessions_app.stores.redis import server as asking
from tests.agents import assistant, user
from tests.stores.contract import SECRET, SdkAgent, StoreContract, Trouble, enumerated, in_agent, said, variable_unset
from tests.stores.sealed_contract import SealedContract
from tests.stores.servers import RedisServer, own_redis

pytestmark = pytest.mark.slow

VARIABLE = "SUPPORT_REDIS_URL"


class RedisAgent(SdkAgent):
    """Each call on a connection of its own, because those of the SDK belong to the event loop they began in."""

    prefix = "agents:session"
    ttl: int | None = None
    session_class = RedisSession

    def __init__(self, server: RedisServer, environment: pytest.MonkeyPatch, *, address: str = "") -> None:
        self.server = server
        environment.setenv(VARIABLE, address or server.address)
        self.store = declare_store("cache", kind="redis", options={"url_env": VARIABLE, "key_prefix": self.prefix})
        attach_store(self.store)

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        async def call() -> Any:
            client = redis.asyncio.Redis(
                unix_socket_path=str(self.server.socket), password=self.server.password or None
            )
            async with client:
                session = self.session_class(session_id, redis_client=client, key_prefix=self.prefix, ttl=self.ttl)
                return await getattr(self.worn(session), name)(*arguments)

        return in_agent(call())

    @contextmanager
    def text_reads(self) -> Iterator[list[str] | None]:
        """By the number of bytes that the server sends."""
        reads: list[str] = []
        client: Any = self.server.client
        before = client.info("stats")["total_net_output_bytes"]
        yield reads
        sent = client.info("stats")["total_net_output_bytes"] - before
        reads += [f"{sent} bytes"] * (sent > 100_000)

    def key(self, session_id: str, suffix: str = "") -> str:
        return f"{self.prefix}:{session_id}{suffix}"

    def stored(self, session_id: str) -> list[str]:
        client: Any = self.server.client
        return [text.decode() for text in client.lrange(self.key(session_id, ":messages"), 0, -1)]

    def leftovers(self, words: str) -> list[str]:
        return self.server.leftovers(words)

    @contextmanager
    def at(self, address: str, sentence: str, *, seconds: float = asking.ANSWER_SECONDS) -> Iterator[str]:
        """As if that were the server's address; `seconds` for one that lets others wait."""
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(VARIABLE, address)
            environment.setattr(asking, "ANSWER_SECONDS", seconds)
            yield sentence

    @contextmanager
    def frozen(self) -> Iterator[str]:
        with pytest.MonkeyPatch.context() as impatient, self.server.frozen():
            impatient.setattr(asking, "ANSWER_SECONDS", 0.1)
            yield "did not respond within 0.1 seconds"

    def troubles(self) -> dict[str, Trouble]:
        port = self.server.port
        return {
            "nothing there": lambda: self.at("redis://127.0.0.1:1/0", "cannot be reached: .*refused"),
            "no such socket": lambda: self.at("unix:///nowhere/redis.sock", "cannot be reached: .*no such file"),
            "no such database": lambda: self.at(f"redis://127.0.0.1:{port}/99", "refuses"),
            "no TLS there": lambda: self.at(f"rediss://127.0.0.1:{port}/0", "TLS failed", seconds=0.1),
            "no address": lambda: self.at("localhost:6379", f"{VARIABLE} is not the address"),
            "odd setting": lambda: self.at(f"redis://127.0.0.1:{port}/0?colour=red", "is not the address"),
            "not set": lambda: variable_unset(VARIABLE),
            "frozen": self.frozen,
        }


class PassingAgent(RedisAgent):
    """Whose sessions go by themselves, under a prefix that has everything in it that means something in a pattern."""

    prefix = "agents:session:[a-z]*?\\^"
    ttl = 3600

    def troubles(self) -> dict[str, Trouble]:
        return {"not set": lambda: variable_unset(VARIABLE)}


class ContractOfRedis(StoreContract):
    agent_class: type[RedisAgent] = RedisAgent

    @pytest.fixture
    def agent(self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisAgent:
        return self.agent_class(redis_server, monkeypatch)


class TestRedis(ContractOfRedis, SealedContract):
    pass


@pytest.mark.release
class TestRedisWithTtlAndPrefix(ContractOfRedis):
    agent_class = PassingAgent


class TestKeys:
    """Which keys are a session, and what becomes of those that are none."""

    @pytest.fixture
    def agent(self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisAgent:
        return RedisAgent(redis_server, monkeypatch)

    @pytest.fixture
    def backend(self, agent: RedisAgent) -> Backend:
        return backend_for(agent.store)

    def listed(self, backend: Backend) -> set[str]:
        return {session.session_id for session in enumerated(backend)}

    def test_a_prefix_that_begins_like_another_has_its_own_sessions(
        self, agent: RedisAgent, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(RedisAgent, "prefix", "agents")
        shorter = declare_store("shorter", kind="redis", options={"url_env": VARIABLE, "key_prefix": "agents"})
        agent.add("session:of this one", said(0))
        monkeypatch.setattr(RedisAgent, "prefix", "agents:session")
        agent.add("of the other", said(1))
        # A key alone does not tell whose it is: the session id in its hash does.
        assert self.listed(backend_for(agent.store)) == {"of the other"}
        assert self.listed(backend_for(shorter)) == {"session:of this one"}
        with pytest.raises(StoreUnavailable, match="does not contain what the SDK stores there"):
            backend_for(shorter).erase_session("session:of the other")
        assert agent.read("of the other") == [said(1)]

    def test_a_list_that_lost_its_hash_is_a_session(self, agent: RedisAgent, backend: Backend) -> None:
        agent.add("orphan", user(SECRET))
        agent.server.client.delete(agent.key("orphan"))
        assert self.listed(backend) == {"orphan"}
        assert backend.previews(["orphan"])["orphan"].item_count == 1
        assert backend.erase_session("orphan") == 1
        assert agent.leftovers("orphan") == []

    def test_a_counter_goes_with_its_session(self, agent: RedisAgent, backend: Backend) -> None:
        agent.add("counted", said(0))
        agent.in_session("counted", "_get_next_id")
        assert self.listed(backend) == {"counted"}
        backend.erase_session("counted")
        assert agent.leftovers("counted") == []

    def test_two_ids_that_share_a_key_are_told_apart_and_neither_is_harmed(
        self, agent: RedisAgent, backend: Backend
    ) -> None:
        agent.add("x", said(0))
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            agent.add("x:messages", said(1))
        assert self.listed(backend) == {"x"}
        with pytest.raises(StoreUnavailable, match=r"x and x:messages share a key\. Nothing was changed"):
            backend.erase_session("x:messages")
        assert agent.read("x") == [said(0)]

        agent.add("y:messages", said(2))
        assert self.listed(backend) == {"x", "y:messages"}
        for ask in (
            lambda: backend.first_page("y", 5),
            lambda: backend.item("y", "0"),
            lambda: backend.count("y"),
            lambda: backend.erase_session("y"),
            lambda: backend.replace_item("y", "0", "{}", expected="{}"),
            lambda: backend.delete_items("y", [StoredItem("0", Position((0,)), "{}", 2, None)]),
        ):
            with pytest.raises(StoreUnavailable, match="does not contain what the SDK stores there"):
                ask()
        assert agent.read("y:messages") == [said(2)]
        assert not SessionRecord.objects.exclude(erased_at=None)

    def test_a_wrong_key_does_not_hide_the_sessions_around_it(self, agent: RedisAgent, backend: Backend) -> None:
        agent.add("sound", said(0))
        agent.add("broken", said(1))
        client: Any = agent.server.client
        client.delete(agent.key("broken", ":messages"))
        client.set(agent.key("broken", ":messages"), "{}")
        client.set(agent.key("stray"), "not the SDK's")
        client.hset(b"agents:session:no \xff text", mapping={"session_id": b"no \xff text"})
        previews = backend.previews(["sound", "broken", "stray"])
        assert [previews[name].item_count for name in ("sound", "broken", "stray")] == [1, 0, None]
        assert self.listed(backend) == {"sound", "broken"}
        health = registry.health(agent.store)
        assert (health.sessions, health.items) == (2, 1)
        (odd,) = [problem for problem in health.problems if problem.code == "odd-keys"]
        assert odd.sentence.startswith("3 of the keys")

    def test_what_is_no_text_is_shown_and_can_be_replaced(self, agent: RedisAgent, backend: Backend) -> None:
        agent.add("odd", said(0))
        client: Any = agent.server.client
        client.lset(agent.key("odd", ":messages"), 0, b'{"\xff"}')
        (item,) = backend.first_page("odd", 5).items
        assert item.byte_count == 5
        assert item.raw.encode(errors="surrogateescape") == b'{"\xff"}'
        backend.replace_item("odd", item.id, "{}", expected=item.raw)
        assert agent.stored("odd") == ["{}"]

    def test_a_long_item_is_cut_between_letters(self, agent: RedisAgent, backend: Backend) -> None:
        client: Any = agent.server.client
        for shift in range(4):
            client.rpush(agent.key("long", ":messages"), "x" * shift + "😀" * WHOLE_ITEM_BYTES)
        for item in backend.first_page("long", 5).items:
            assert set(item.raw + item.raw_tail) <= {"x", "😀"}

    def test_among_many_keys_of_others_a_page_ends_in_time(
        self, agent: RedisAgent, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client: Any = agent.server.client
        client.mset({f"other:{number}": "" for number in range(2_000)})
        agent.add("needle", said(0))
        monkeypatch.setattr(kind, "WALK_SECONDS", 0)
        assert backend.enumerate_sessions(limit=10).next_cursor
        assert self.listed(backend) == {"needle"}


class TestTimeToLive:
    """Sessions that go by themselves, told apart from those that somebody removed or erased."""

    @pytest.fixture
    def agent(self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisAgent:
        agent = RedisAgent(redis_server, monkeypatch)
        agent.add("stays", said(0))
        agent.ttl = 3600
        agent.add("passes", said(1))
        discover_sessions()
        return agent

    def let_go(self, agent: RedisAgent, session_id: str) -> None:
        """Its time is over, and discovery had seen until when it went."""
        client: Any = agent.server.client
        for suffix in ("", ":messages"):
            client.delete(agent.key(session_id, suffix))
        past = datetime.now(UTC) - timedelta(seconds=1)
        SessionRecord.objects.filter(session_id=session_id).update(expires_at=past)
        discover_sessions()

    def test_until_when_a_session_stays_is_known_and_moves_with_each_write(self, agent: RedisAgent) -> None:
        in_an_hour = datetime.now(UTC) + timedelta(hours=1)
        passes, stays = SessionRecord.objects.order_by("session_id")
        assert passes.expires_at
        assert abs(passes.expires_at - in_an_hour) < timedelta(minutes=1)
        assert stays.expires_at is None
        agent.ttl = 7200
        agent.add("passes", said(2))
        discover_sessions()
        passes.refresh_from_db()
        assert passes.expires_at > in_an_hour + timedelta(minutes=50)

    def test_the_server_itself_lets_go_of_it_and_discovery_tells_why(self, agent: RedisAgent) -> None:
        agent.ttl = 1
        agent.add("brief", said(1))
        discover_sessions()
        while not SessionRecord.objects.filter(session_id="brief").exists():
            # Discovery took longer than it was there.
            agent.ttl *= 2
            agent.add("brief", said(1))
            discover_sessions()
        until = SessionRecord.objects.get(session_id="brief").expires_at
        assert until
        client: Any = agent.server.client
        # What discovery noted is later than the server's own word by as long as the answer took.
        while client.exists(agent.key("brief")) or datetime.now(UTC) <= until:
            threading.Event().wait(0.05)
        discover_sessions()
        assert SessionRecord.objects.get(session_id="brief").has_run_out

    def test_pages_say_when_it_goes(self, agent: RedisAgent, operator: Client) -> None:
        page = operator.get(reverse("sessions:list"))
        assert page.text.count("This session expires in 59\xa0minutes.") == 1
        passes, stays = SessionRecord.objects.order_by("session_id")
        assert "expires in 59\xa0minutes" in operator.get(passes.get_absolute_url()).text
        assert "expires in" not in operator.get(stays.get_absolute_url()).text

    def test_a_session_whose_time_was_over_is_no_erased_one(self, agent: RedisAgent, operator: Client) -> None:
        self.let_go(agent, "passes")
        page = operator.get(reverse("sessions:list"))
        assert "Gone: expired in cache" in page.text
        record = SessionRecord.objects.get(session_id="passes")
        assert record.erased_at is None
        timeline = operator.get(record.get_absolute_url())
        assert "The session expired and was deleted by the store cache. It was not erased in this console." in " ".join(
            timeline.text.split()
        )

    def test_one_that_an_agent_cleared_before_has_not_run_out(self, agent: RedisAgent, operator: Client) -> None:
        agent.forget("passes")
        discover_sessions()
        assert not SessionRecord.objects.get(session_id="passes").has_run_out
        assert "Gone: no longer in cache" in operator.get(reverse("sessions:list")).text

    def test_one_that_came_back_begins_anew(self, agent: RedisAgent) -> None:
        self.let_go(agent, "passes")
        agent.ttl = None
        agent.add("passes", said(2))
        discover_sessions()
        record = SessionRecord.objects.get(session_id="passes")
        assert (record.missing_since, record.expires_at, record.has_run_out) == (None, None, False)


class TestAtTheSameTime:
    """What happens to a session while agents write to that very one."""

    @pytest.fixture
    def agent(self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> RedisAgent:
        return RedisAgent(redis_server, monkeypatch)

    def test_an_agent_whose_session_is_erased_under_its_hands_begins_anew(self, agent: RedisAgent) -> None:
        """Between the WATCH of the SDK and its EXEC, which then fails and is tried again on what is left: nothing."""
        agent.add("talk", user(SECRET))
        erased: list[list[int]] = []

        class Interrupted(RedisSession):
            async def _mutate_items_attempt(self, pipe: Any, *arguments: Any, **options: Any) -> Any:
                multi = pipe.multi

                def interrupted_multi() -> None:
                    if not erased:
                        with ThreadPoolExecutor(1) as thread:
                            key = f"{agent.prefix}:talk"
                            keys = [key, f"{key}:messages", f"{key}:counter"]
                            script = (scripts.DELETE_NEWEST, agent.server.client, keys)
                            erased.append(thread.submit(asking.run, *script, ["talk", 9]).result())
                    multi()

                pipe.multi = interrupted_multi
                return await super()._mutate_items_attempt(pipe, *arguments, **options)

        agent.session_class = Interrupted
        agent.add("talk", said(1))
        assert erased == [[1, 0]]
        assert agent.read("talk") == [said(1)]
        assert agent.leftovers(SECRET) == []

    def test_an_item_that_moved_up_is_not_taken_for_the_one_that_was_read(self, agent: RedisAgent) -> None:
        agent.add("talk", *(said(number) for number in range(4)))
        backend = backend_for(agent.store)
        items = list(backend.every_item("talk"))
        client: Any = agent.server.client
        client.lpop(agent.key("talk", ":messages"))
        with pytest.raises(ItemChanged):
            backend.replace_item("talk", items[1].id, "{}", expected=items[1].raw)
        with pytest.raises(ItemChanged):
            backend.delete_items("talk", items[1:3])
        assert agent.read("talk") == [said(1), said(2), said(3)]

    @pytest.mark.parametrize("script", ["REPLACE", "DELETE"])
    def test_without_the_comparison_the_wrong_item_would_go(
        self, agent: RedisAgent, script: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scripts, script, re.sub(r"\n.*~= ARGV.*\n", "\n", getattr(scripts, script)))
        agent.add("talk", *(said(number) for number in range(3)))
        backend = backend_for(agent.store)
        items = list(backend.every_item("talk"))
        client: Any = agent.server.client
        client.lpop(agent.key("talk", ":messages"))
        if script == "REPLACE":
            backend.replace_item("talk", items[1].id, "{}", expected=items[1].raw)
        else:
            backend.delete_items("talk", items[1:2])
        assert said(2) not in agent.read("talk")

    def test_redacting_and_popping_and_adding_at_once_mixes_nothing_up(self, agent: RedisAgent) -> None:
        """What is replaced is always what was read, whatever the agent adds and takes back meanwhile."""
        agent.add("talk", *(user(f"{SECRET} {number}") for number in range(60)))
        stop, problems = threading.Event(), []

        def go_on() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    agent.add("talk", user(f"new {number}"), assistant("answer"))
                    agent.pop("talk")
                except Exception as problem:
                    problems.append(problem)
                    return

        writer = threading.Thread(target=go_on)
        writer.start()
        backend = backend_for(agent.store)
        try:
            for place in range(0, 60, 2):
                item = backend.item("talk", str(place))
                backend.replace_item("talk", item.id, json.dumps(user("[redacted]")), expected=item.raw)
            backend.delete_items("talk", list(backend.every_item("talk"))[1:60:2])
        finally:
            stop.set()
            writer.join()
        assert problems == []
        assert agent.leftovers(SECRET) == []
        talk = agent.read("talk")
        assert talk[:30] == [user("[redacted]")] * 30
        assert talk[30:] == [user(f"new {number}") for number in range(1, len(talk) - 29)]


class TestServers:
    """Servers that are not like the one of the other tests."""

    def test_a_password_from_a_file(self, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with own_redis(password="sesame") as server:
            agent = RedisAgent(server, monkeypatch)
            agent.add("talk", said(0))
            monkeypatch.delenv(VARIABLE)
            secret = tmp_path / "address"
            secret.write_text(f"{server.address}\n")
            monkeypatch.setenv(f"{VARIABLE}_FILE", str(secret))
            backend = backend_for(agent.store)
            assert backend.count("talk") == 1
            for wrong in ("", ":open@", "somebody:sesame@"):
                secret.write_text(f"redis://{wrong}127.0.0.1:{server.port}/0")
                (problem,) = registry.health(agent.store).problems
                assert problem.is_fatal
                assert "refuses the user or the password" in problem.sentence
                assert "open" not in problem.sentence
                with pytest.raises(StoreUnavailable, match="refuses the user or the password"):
                    backend.erase_session("talk")
            assert agent.read("talk") == [said(0)]

    def test_a_user_who_may_not_run_scripts(
        self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = RedisAgent(redis_server, monkeypatch)
        agent.add("talk", said(0))
        client: Any = redis_server.client
        client.execute_command("ACL", "SETUSER", "reader", "on", ">x", "~*", "+@read", "+@connection", "+info")
        try:
            with agent.at(f"redis://reader:x@127.0.0.1:{redis_server.port}/0", "ACL SETUSER") as sentence:
                assert re.search(sentence, registry.health(agent.store).problems[0].sentence)
                with pytest.raises(StoreUnavailable, match=sentence):
                    backend_for(agent.store).erase_session("talk")
        finally:
            client.execute_command("ACL", "DELUSER", "reader")
        assert agent.read("talk") == [said(0)]

    def test_the_rights_that_the_sentence_names_are_enough(
        self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = RedisAgent(redis_server, monkeypatch)
        agent.add("talk", said(0), said(1))
        (rights,) = re.findall(r"~PREFIX:\* (.*?)\. ", inspect.getsource(asking))
        client: Any = redis_server.client
        client.execute_command("ACL", "SETUSER", "console", "on", ">x", f"~{agent.prefix}:*", *rights.split())
        try:
            with agent.at(f"redis://console:x@127.0.0.1:{redis_server.port}/0", ""):
                assert registry.check(agent.store).state == "ok"
                backend = backend_for(agent.store)
                assert [session.session_id for session in enumerated(backend)] == ["talk"]
                items = list(backend.every_item("talk"))
                backend.replace_item("talk", "0", "{}", expected=items[0].raw)
                assert backend.delete_items("talk", items[1:]) == 1
                assert backend.erase_session("talk") == 1
        finally:
            client.execute_command("ACL", "DELUSER", "console")

    def test_tls_with_a_certificate_that_nobody_vouches_for(
        self, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        certificate, key = own_certificate(tmp_path)
        files = {"tls_cert_file": str(certificate), "tls_key_file": str(key), "tls_ca_cert_file": str(certificate)}
        with own_redis(is_on_tls=True, tls_auth_clients="no", **files) as server:
            agent = RedisAgent(
                server, monkeypatch, address=f"rediss://localhost:{server.port}/0?ssl_ca_certs={certificate}"
            )
            agent.add("talk", said(0))
            assert backend_for(agent.store).count("talk") == 1
            for address, sentence in (
                (f"rediss://localhost:{server.port}/0", "certificate is not trusted here"),
                (f"redis://localhost:{server.port}/0", r"closed the connection; it may want TLS|reset by peer"),
            ):
                with agent.at(address, sentence):
                    assert re.search(sentence, registry.health(agent.store).problems[0].sentence)
                    with pytest.raises(StoreUnavailable, match=sentence):
                        backend_for(agent.store).erase_session("talk")
            assert agent.read("talk") == [said(0)]

    def test_a_replica_is_read_and_not_written(
        self, db: None, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = RedisAgent(redis_server, monkeypatch)
        agent.add("talk", said(0))
        client: Any = redis_server.client
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            assert "read-only" in {problem.code for problem in registry.health(agent.store).problems}
            backend = backend_for(agent.store)
            assert backend.count("talk") == 1
            with pytest.raises(StoreUnavailable, match=r"is a replica.*Nothing was changed"):
                backend.erase_session("talk")
        finally:
            client.execute_command("REPLICAOF", "NO", "ONE")
        assert agent.read("talk") == [said(0)]

    def test_what_goes_on_after_a_server_that_was_away(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Connections that the old server closed are not asked again."""
        with own_redis() as server:
            agent = RedisAgent(server, monkeypatch)
            backend = backend_for(agent.store)
            assert backend.count("talk") == 0
            port = server.port
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            backend.count("talk")
        with own_redis(port=str(port)):
            assert backend.count("talk") == 0

    def test_what_the_server_keeps_on_the_disk_is_said(
        self, administrator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with own_redis(appendonly="yes", maxmemory_policy="allkeys-lru") as server:
            agent = RedisAgent(server, monkeypatch)
            agent.add("talk", user(SECRET))
            hints = " ".join(registry.health(agent.store).hints)
            assert "append-only file" in hints
            assert "maxmemory-policy" in hints
            assert "append-only file" in administrator.get(reverse("sessions:store", args=["cache"])).text
            backend_for(agent.store).erase_session("talk")
            files = [file for file in server.folder.rglob("*.aof") if SECRET.encode() in file.read_bytes()]
            assert files, "it does not stay there; then the hint is wrong"

    def test_without_the_package_it_says_how_to_get_it(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        store = declare_store("cache", kind="redis", options={"url_env": VARIABLE})
        assert store.options["key_prefix"] == "agents:session"
        monkeypatch.setenv(VARIABLE, "redis://127.0.0.1:1/0")
        monkeypatch.setitem(sys.modules, "redis", None)
        (problem, _) = registry.health(store).problems
        assert "pip install memadmin[redis]" in problem.sentence

    def test_an_address_itself_is_refused_so_that_no_password_is_stored(self, db: None) -> None:
        with pytest.raises(registry.AttachRefused, match="name of an environment variable"):
            declare_store("cache", kind="redis", options={"url_env": "redis://:secret@cache:6379/0"})


def own_certificate(folder: Path) -> tuple[Path, Path]:
    """For localhost, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
