"""The demo bots run on the real SDK and leave real sessions behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from agents.extensions.memory import EncryptedSession
from agents.testing import ScriptedModel
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings
from django.utils.timezone import now
from openai import OpenAIError
from pytest_django import DjangoDbBlocker

from memadmin.demo import agents, preparing, sealing
from memadmin.demo.script import ExchangeEnding, Story
from memadmin.demo.stories import STORIES, assistant, support, tutor
from sessions_app.masked_reader import reader_for
from sessions_app.models import AgentMessage, AgentSession, SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.sqlalchemy.engine import AgentTables, open_agent_tables
from tests.agents import attach_main_store, drop_agent_tables, in_sdk, run_sql, value_of
from tests.builders import make_session
from tests.people import person

pytestmark = pytest.mark.slow

ON_A_DATABASE = pytest.mark.usefixtures("agent_tables", "no_network")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    keep_off_the_network(monkeypatch)
    settings.DATA_DIR = tmp_path


def keep_off_the_network(patching: pytest.MonkeyPatch) -> None:
    """Makes every look-up of a network address fail. The database is a socket file."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the demo reaches for the network")

    patching.setattr(socket, "getaddrinfo", refuse)
    patching.delenv("OPENAI_API_KEY", raising=False)


class StoredStories(NamedTuple):
    """Sessions, rows and models after two starts of the demo."""

    told: list[list[str]]
    """The ids that each start returned."""
    stored: list[list[object]]
    """All rows after each start."""
    models: list[ScriptedModel]
    """Every scripted model that was used, in order."""
    sessions: dict[str, AgentSession]
    messages: dict[str, list[AgentMessage]]
    """By session, in the order of the session."""
    opened: list[Any]
    """Items of the encrypted session, read with its key."""

    def items(self, story: Story) -> list[dict[str, Any]]:
        return [json.loads(row.message_data) for row in self.messages[story.session_id]]

    def shapes(self, story: Story) -> list[str]:
        return shapes(self.items(story))

    def outputs(self, story: Story) -> list[str]:
        return [item["output"] for item in self.items(story) if item.get("type") == "function_call_output"]


@pytest.fixture(scope="module")
def stories(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> StoredStories:
    """All stories, told once for all tests that only read them."""
    models: list[ScriptedModel] = []

    class Remembered(ScriptedModel):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            models.append(self)

    def opened(tables: AgentTables) -> Any:
        session_id = assistant.PRIVATE_MATTER.session_id
        return EncryptedSession(session_id, tables.session(session_id), sealing.session_key()).get_items()

    with (
        django_db_blocker.unblock(),
        pytest.MonkeyPatch.context() as patching,
        override_settings(DATA_DIR=tmp_path_factory.mktemp("stories")),
    ):
        keep_off_the_network(patching)
        patching.setattr(agents, "ScriptedModel", Remembered)
        try:
            told, stored = [], []
            for _ in range(2):
                told.append(agents.run_all())
                stored.append(everything_stored())
            sessions = {each.pk: each for each in AgentSession.objects.all()}
            messages = {
                each: list(AgentMessage.objects.filter(session_id=each).order_by("created_at", "id"))
                for each in sessions
            }
            return StoredStories(told, stored, models, sessions, messages, in_sdk(opened))
        finally:
            drop_agent_tables()
            call_command("flush", verbosity=0, interactive=False)
            connection.close()


def shapes(items: list[dict[str, Any]]) -> list[str]:
    """Each item in a word: who spoke, or which kind of item it is; calls with the name of the tool."""
    return [" ".join(filter(None, [item.get("role") or item["type"], item.get("name")])) for item in items]


def stored_shapes(story: Story) -> list[str]:
    rows = AgentMessage.objects.filter(session_id=story.session_id).order_by("created_at", "id")
    return shapes([json.loads(row.message_data) for row in rows])


def everything_stored() -> list[object]:
    return [*AgentSession.objects.order_by("pk").values(), *AgentMessage.objects.order_by("pk").values()]


def test_all_stories_are_told_once_however_often_the_demo_starts(stories: StoredStories) -> None:
    assert stories.told == [[story.session_id for story in STORIES], []]
    first, second = stories.stored
    assert first == second


def test_the_scripts_fit_the_bots(stories: StoredStories) -> None:
    """Every answer was used: none is left over, and no bot asked for one more."""
    exchanges = [exchange for story in STORIES for exchange in story.exchanges]
    assert len(stories.models) == len(exchanges)
    for exchange, model in zip(exchanges, stories.models, strict=True):
        if exchange.ending is not ExchangeEnding.CANCELLED and "4111" not in str(exchange.said):
            assert model.remaining_steps == 0, exchange.said


def test_sessions_are_spread_over_the_past_two_weeks_in_the_order_of_their_words(
    stories: StoredStories,
) -> None:
    today = now().replace(tzinfo=None)
    for story in STORIES:
        written = sorted(stories.messages[story.session_id], key=lambda row: row.pk)
        times = [row.created_at.replace(tzinfo=None) for row in written]
        session = stories.sessions[story.session_id]
        assert times == sorted(times)
        assert today - timedelta(days=14) < session.created_at.replace(tzinfo=None) <= times[0]
        assert times[-1] <= session.updated_at.replace(tzinfo=None) < today - timedelta(hours=1)


def test_questions_are_as_far_apart_as_in_the_story(stories: StoredStories) -> None:
    story = support.WHERE_IS_MY_ORDER
    rows = sorted(stories.messages[story.session_id], key=lambda row: row.pk)
    asked = [row.created_at for row in rows if json.loads(row.message_data).get("role") == "user"]
    assert len(asked) == len(story.exchanges) > 1
    for earlier, later, exchange in zip(asked, asked[1:], story.exchanges[1:], strict=False):
        assert later - earlier >= exchange.after > timedelta(0)
    session = stories.sessions[story.session_id]
    assert (session.created_at.second, session.created_at.microsecond) == (0, 0)


@ON_A_DATABASE
def test_an_attached_registry_follows_into_the_past() -> None:
    attach_main_store()
    agents.run_all([support.WHERE_IS_MY_ORDER])
    record = SessionRecord.objects.get(session_id=support.WHERE_IS_MY_ORDER.session_id)
    assert record.last_activity_at < now() - timedelta(days=13)


@ON_A_DATABASE
def test_a_story_that_was_broken_off_is_told_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    agents.run_all([support.SAME_AS_LAST_TIME])
    whole = stored_shapes(support.SAME_AS_LAST_TIME)
    AgentMessage.objects.all().delete()
    AgentSession.objects.all().delete()

    play, played = agents._play, iter(range(100))

    async def power_cut(*args: Any) -> Any:
        if next(played) == 3:
            raise KeyboardInterrupt
        return await play(*args)

    monkeypatch.setattr(agents, "_play", power_cut)
    with pytest.raises(KeyboardInterrupt):
        agents.run_all([support.SAME_AS_LAST_TIME])
    monkeypatch.setattr(agents, "_play", play)
    assert 0 < len(stored_shapes(support.SAME_AS_LAST_TIME)) < len(whole)

    assert agents.run_all([support.SAME_AS_LAST_TIME]) == [support.SAME_AS_LAST_TIME.session_id]
    assert stored_shapes(support.SAME_AS_LAST_TIME) == whole


@ON_A_DATABASE
def test_an_erased_story_is_not_told_again() -> None:
    story = support.WHERE_IS_MY_ORDER
    make_session(story.session_id, erased_at=now())
    assert agents.run_all([story]) == []
    assert not stored_shapes(story)


def test_reasoning_a_call_and_an_order_number_that_a_later_session_recalls(stories: StoredStories) -> None:
    assert stories.shapes(support.WHERE_IS_MY_ORDER) == [
        "user",
        "reasoning",
        "function_call find_orders",
        "function_call_output",
        "assistant",
        "user",
        "assistant",
    ]
    recalled = stories.items(support.SAME_AS_LAST_TIME)[5]["content"][0]["text"]
    assert "SO-20417" in recalled


def test_a_correction_takes_back_question_and_answer(stories: StoredStories) -> None:
    said = [item["content"] for item in stories.items(support.SAME_AS_LAST_TIME) if item.get("role") == "user"]
    assert not any("How long will it take to Tartu" in text for text in said)
    assert "to Tallinn" in said[-1]


def test_parallel_calls_and_one_that_fails(stories: StoredStories) -> None:
    assert stories.shapes(support.SAME_AS_LAST_TIME)[1:5] == [
        "function_call find_orders",
        "function_call search_reviews",
        "function_call_output",
        "function_call_output",
    ]
    assert stories.outputs(support.SAME_AS_LAST_TIME)[1].startswith("An error occurred while running the tool")


def test_arguments_that_are_no_json_and_a_courier_who_does_not_answer(stories: StoredStories) -> None:
    assert stories.items(support.LOST_GRINDER)[1]["arguments"] == '{"order_number": "SO-206'
    assert "Tool 'track_parcel' timed out after 0.2 seconds." in stories.outputs(support.LOST_GRINDER)


def test_a_handoff_and_a_refund_that_a_person_approved(stories: StoredStories) -> None:
    assert "function_call transfer_to_refunds" in stories.shapes(support.DENTED_POT)
    assert "RF-20417" in stories.outputs(support.DENTED_POT)[-1]


def test_a_refund_that_a_person_rejected(stories: StoredStories) -> None:
    assert stories.outputs(support.TOO_LATE)[-1] == "Tool execution was not approved."
    assert stories.shapes(support.TOO_LATE)[-1] == "assistant"


def test_a_refund_that_nobody_has_decided_is_a_call_without_an_output(stories: StoredStories) -> None:
    assert stories.shapes(support.WAITS_FOR_A_DECISION)[-1] == "function_call refund_order"


def test_the_input_guardrail_leaves_the_card_number_behind_without_an_answer(stories: StoredStories) -> None:
    assert stories.shapes(support.CARD_NUMBER)[:3] == ["user", "user", "assistant"]
    assert "4111" in stories.items(support.CARD_NUMBER)[0]["content"]


def test_the_output_guardrail_keeps_the_promise_away_and_a_cancelled_answer_leaves_no_trace(
    stories: StoredStories,
) -> None:
    assert "50%" not in str(stories.items(support.GENEROUS_ANSWER))
    said = [item["content"] for item in stories.items(support.GENEROUS_ANSWER) if item.get("role") == "user"]
    assert "The second flush sounds good." in said
    assert "Wonderful. I am sending it" not in str(stories.items(support.GENEROUS_ANSWER))


def test_a_picture_and_what_the_provider_searched(stories: StoredStories) -> None:
    assert stories.items(support.BROKEN_MUG)[0]["content"][1]["image_url"].startswith("data:image/png;base64,iVBOR")
    assert "file_search_call" in stories.shapes(support.BROKEN_MUG)


def test_a_refusal_is_kept_as_one(stories: StoredStories) -> None:
    parts = [
        part["type"] for item in stories.items(tutor.FRACTIONS) for part in item.get("content") or [] if "type" in part
    ]
    assert parts.count("refusal") == 1


def test_a_long_session_to_page_through(stories: StoredStories) -> None:
    assert len(stories.items(tutor.HUNDRED_WORDS)) > 400


def test_a_compacted_session_keeps_what_was_said_and_one_opaque_item(stories: StoredStories) -> None:
    assert stories.shapes(assistant.BUSY_WEEK)[:5] == ["user"] * 4 + ["compaction"]
    hosted = {"mcp_list_tools", "mcp_call who_is_on", "image_generation_call"}
    assert hosted <= set(stories.shapes(assistant.BUSY_WEEK))


def test_the_encrypted_session_opens_with_its_key_and_shows_nothing_without(stories: StoredStories) -> None:
    rows = stories.messages[assistant.PRIVATE_MATTER.session_id]
    assert rows
    assert all(row.message_data.startswith('{"__enc__":1,') for row in rows)
    assert stories.opened[0]["content"].startswith("Запиши меня к кардиологу")


@ON_A_DATABASE
def test_the_console_opens_it_with_the_key_that_the_demo_hands_over(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMADMIN_KEYRING", "MEMADMIN_SESSION_KEY_DEMO_FILE"):
        monkeypatch.setenv(name, "")
    settings.SESSION_KEYS = ()
    person("administrator")
    store = attach_main_store()
    agents.run_all([assistant.PRIVATE_MATTER])
    preparing.hand_over_key([store])
    preparing.hand_over_key(SessionStore.objects.all())
    (first, *_) = reader_for(SessionStore.objects.get(), opens=True).first_page("assistant:acct_207", 5).items
    assert "кардиологу" in first.raw
    assert first.seal
    assert not first.seal.is_expired
    assert os.environ["MEMADMIN_KEYRING"] == "demo", "the programs that it starts have it, too"


@ON_A_DATABASE
def test_the_agents_tables_may_stand_in_a_schema_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    run_sql('CREATE SCHEMA "Agents"')
    monkeypatch.setattr(agents, "open_agent_tables", partial(open_agent_tables, "Agents.sessions", "Agents.100% said"))
    played = [support.WHERE_IS_MY_ORDER]
    assert agents.run_all(played) == [played[0].session_id]
    assert agents.run_all(played) == []
    assert value_of('SELECT count(*) FROM "Agents"."100% said" WHERE created_at < now() - interval \'1 hour\'') > 0


@ON_A_DATABASE
def test_the_live_session_grows_to_its_end_and_not_beyond() -> None:
    assert asyncio.run(agents.chat_on(pause=timedelta(0))) == 50
    assert AgentMessage.objects.count() == 200
    assert asyncio.run(agents.chat_on(pause=timedelta(0))) == 0
    assert AgentMessage.objects.count() == 200


@ON_A_DATABASE
def test_the_live_session_ends_when_it_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    store = attach_main_store()

    def erase_what_was_said() -> None:
        if AgentMessage.objects.exists():
            with transaction.atomic():
                backend_for(store).erase_session(support.COURIER_SESSION)
        connection.close()  # of the thread in which the event loop asks Django

    async def pause(seconds: float) -> None:
        await sync_to_async(erase_what_was_said)()

    monkeypatch.setattr(agents, "asyncio", SimpleNamespace(sleep=pause))
    assert asyncio.run(agents.chat_on()) == 1
    assert not AgentMessage.objects.exists()


@ON_A_DATABASE
def test_a_real_model_that_does_not_answer_is_one_warning_and_no_end_of_the_demo(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Runner:
        @staticmethod
        async def run(*_: Any, **__: Any) -> Any:
            raise OpenAIError("wrong key")

    with monkeypatch.context() as broken:
        broken.setattr(agents, "Runner", Runner)
        broken.setenv("OPENAI_API_KEY", "sk-test")
        assert agents.run_all([support.WHERE_IS_MY_ORDER]) == []
    assert "The real model does not respond (OpenAIError)" in caplog.text
    assert agents.run_all([support.WHERE_IS_MY_ORDER]) == [support.WHERE_IS_MY_ORDER.session_id]


@ON_A_DATABASE
def test_with_an_api_key_the_same_bots_run_on_a_real_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Any]] = []

    class Runner:
        @staticmethod
        async def run(bot: Any, said: Any, *, run_config: Any, session: Any, **_: Any) -> Any:
            asked.append((bot.name, run_config.model))
            await session.add_items([{"role": "user", "content": said}])

            class Result:
                last_agent, interruptions = bot, ()

            return Result

    monkeypatch.setattr(agents, "Runner", Runner)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    agents.run_all([support.WHERE_IS_MY_ORDER])
    assert asked == [("Triage", None), ("Triage", None)]
