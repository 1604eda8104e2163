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
from typing import Any

import pytest
from agents.extensions.memory import EncryptedSession
from agents.testing import ScriptedModel
from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.utils.timezone import now
from openai import OpenAIError

from memadmin.demo import agents, preparing, sealing
from memadmin.demo.script import ExchangeEnding, Story
from memadmin.demo.stories import STORIES, assistant, support, tutor
from sessions_app.masked_reader import reader_for
from sessions_app.models import AgentMessage, AgentSession, SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.sqlalchemy.engine import AgentTables, open_agent_tables
from tests.agents import attach_main_store, in_sdk, run_sql, value_of
from tests.builders import make_session
from tests.people import person

SHORT_STORIES = [story for story in STORIES if story is not tutor.HUNDRED_WORDS]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("agent_tables", "no_network")]


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    """Whoever looks up an address fails; the database is a socket file."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the demo reaches for the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings.DATA_DIR = tmp_path


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedModel]:
    """Every scripted model that was used, in order."""
    used: list[ScriptedModel] = []

    class Remembered(ScriptedModel):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            used.append(self)

    monkeypatch.setattr(agents, "ScriptedModel", Remembered)
    return used


def items(story: Story) -> list[dict[str, Any]]:
    rows = AgentMessage.objects.filter(session_id=story.session_id).order_by("created_at", "id")
    return [json.loads(row.message_data) for row in rows]


def shapes(story: Story) -> list[str]:
    """Each item in a word: who spoke, or which kind of item it is; calls with the name of the tool."""
    return [" ".join(filter(None, [item.get("role") or item["type"], item.get("name")])) for item in items(story)]


def outputs(story: Story) -> list[str]:
    return [item["output"] for item in items(story) if item.get("type") == "function_call_output"]


def everything_stored() -> list[object]:
    return [*AgentSession.objects.order_by("pk").values(), *AgentMessage.objects.order_by("pk").values()]


def test_all_stories_are_told_once_however_often_the_demo_starts() -> None:
    assert agents.run_all() == [story.session_id for story in STORIES]
    told = everything_stored()
    assert agents.run_all() == []
    assert everything_stored() == told


def test_the_scripts_fit_the_bots(models: list[ScriptedModel]) -> None:
    """Every answer was used: none is left over, and no bot asked for one more."""
    agents.run_all(SHORT_STORIES)
    exchanges = [exchange for story in SHORT_STORIES for exchange in story.exchanges]
    assert len(models) == len(exchanges)
    for exchange, model in zip(exchanges, models, strict=True):
        if exchange.ending is not ExchangeEnding.CANCELLED and "4111" not in str(exchange.said):
            assert model.remaining_steps == 0, exchange.said


def test_sessions_are_spread_over_the_past_two_weeks_in_the_order_of_their_words() -> None:
    agents.run_all(SHORT_STORIES)
    today = now().replace(tzinfo=None)
    for story in SHORT_STORIES:
        written = list(AgentMessage.objects.filter(session_id=story.session_id).order_by("id"))
        times = [row.created_at.replace(tzinfo=None) for row in written]
        session = AgentSession.objects.get(pk=story.session_id)
        assert times == sorted(times)
        assert today - timedelta(days=14) < session.created_at.replace(tzinfo=None) <= times[0]
        assert times[-1] <= session.updated_at.replace(tzinfo=None) < today - timedelta(hours=1)


def test_questions_are_as_far_apart_as_in_the_story() -> None:
    story = support.WHERE_IS_MY_ORDER
    agents.run_all([story])
    rows = AgentMessage.objects.filter(session_id=story.session_id).order_by("id")
    asked = [row.created_at for row in rows if json.loads(row.message_data).get("role") == "user"]
    assert len(asked) == len(story.exchanges) > 1
    for earlier, later, exchange in zip(asked, asked[1:], story.exchanges[1:], strict=False):
        assert later - earlier >= exchange.after > timedelta(0)
    session = AgentSession.objects.get(pk=story.session_id)
    assert (session.created_at.second, session.created_at.microsecond) == (0, 0)


def test_an_attached_registry_follows_into_the_past() -> None:
    attach_main_store()
    agents.run_all([support.WHERE_IS_MY_ORDER])
    record = SessionRecord.objects.get(session_id=support.WHERE_IS_MY_ORDER.session_id)
    assert record.last_activity_at < now() - timedelta(days=13)


def test_a_story_that_was_broken_off_is_told_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    agents.run_all([support.SAME_AS_LAST_TIME])
    whole = shapes(support.SAME_AS_LAST_TIME)
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
    assert 0 < len(shapes(support.SAME_AS_LAST_TIME)) < len(whole)

    assert agents.run_all([support.SAME_AS_LAST_TIME]) == [support.SAME_AS_LAST_TIME.session_id]
    assert shapes(support.SAME_AS_LAST_TIME) == whole


def test_an_erased_story_is_not_told_again() -> None:
    story = support.WHERE_IS_MY_ORDER
    make_session(story.session_id, erased_at=now())
    assert agents.run_all([story]) == []
    assert not items(story)


def test_reasoning_a_call_and_an_order_number_that_a_later_session_recalls() -> None:
    agents.run_all([support.WHERE_IS_MY_ORDER, support.SAME_AS_LAST_TIME])
    assert shapes(support.WHERE_IS_MY_ORDER) == [
        "user",
        "reasoning",
        "function_call find_orders",
        "function_call_output",
        "assistant",
        "user",
        "assistant",
    ]
    recalled = items(support.SAME_AS_LAST_TIME)[5]["content"][0]["text"]
    assert "SO-20417" in recalled


def test_a_correction_takes_back_question_and_answer() -> None:
    agents.run_all([support.SAME_AS_LAST_TIME])
    said = [item["content"] for item in items(support.SAME_AS_LAST_TIME) if item.get("role") == "user"]
    assert not any("How long will it take to Tartu" in text for text in said)
    assert "to Tallinn" in said[-1]


def test_parallel_calls_and_one_that_fails() -> None:
    agents.run_all([support.SAME_AS_LAST_TIME])
    assert shapes(support.SAME_AS_LAST_TIME)[1:5] == [
        "function_call find_orders",
        "function_call search_reviews",
        "function_call_output",
        "function_call_output",
    ]
    assert outputs(support.SAME_AS_LAST_TIME)[1].startswith("An error occurred while running the tool")


def test_arguments_that_are_no_json_and_a_courier_who_does_not_answer() -> None:
    agents.run_all([support.LOST_GRINDER])
    assert items(support.LOST_GRINDER)[1]["arguments"] == '{"order_number": "SO-206'
    assert "Tool 'track_parcel' timed out after 0.2 seconds." in outputs(support.LOST_GRINDER)


def test_a_handoff_and_a_refund_that_a_person_approved() -> None:
    agents.run_all([support.DENTED_POT])
    assert "function_call transfer_to_refunds" in shapes(support.DENTED_POT)
    assert "RF-20417" in outputs(support.DENTED_POT)[-1]


def test_a_refund_that_a_person_rejected() -> None:
    agents.run_all([support.TOO_LATE])
    assert outputs(support.TOO_LATE)[-1] == "Tool execution was not approved."
    assert shapes(support.TOO_LATE)[-1] == "assistant"


def test_a_refund_that_nobody_has_decided_is_a_call_without_an_output() -> None:
    agents.run_all([support.WAITS_FOR_A_DECISION])
    assert shapes(support.WAITS_FOR_A_DECISION)[-1] == "function_call refund_order"


def test_the_input_guardrail_leaves_the_card_number_behind_without_an_answer() -> None:
    agents.run_all([support.CARD_NUMBER])
    assert shapes(support.CARD_NUMBER)[:3] == ["user", "user", "assistant"]
    assert "4111" in items(support.CARD_NUMBER)[0]["content"]


def test_the_output_guardrail_keeps_the_promise_away_and_a_cancelled_answer_leaves_no_trace() -> None:
    agents.run_all([support.GENEROUS_ANSWER])
    assert "50%" not in str(items(support.GENEROUS_ANSWER))
    said = [item["content"] for item in items(support.GENEROUS_ANSWER) if item.get("role") == "user"]
    assert "The second flush sounds good." in said
    assert "Wonderful. I am sending it" not in str(items(support.GENEROUS_ANSWER))


def test_a_picture_and_what_the_provider_searched() -> None:
    agents.run_all([support.BROKEN_MUG])
    assert items(support.BROKEN_MUG)[0]["content"][1]["image_url"].startswith("data:image/png;base64,iVBOR")
    assert "file_search_call" in shapes(support.BROKEN_MUG)


def test_a_refusal_is_kept_as_one() -> None:
    agents.run_all([tutor.FRACTIONS])
    parts = [part["type"] for item in items(tutor.FRACTIONS) for part in item.get("content") or [] if "type" in part]
    assert parts.count("refusal") == 1


def test_a_long_session_to_page_through() -> None:
    agents.run_all([tutor.HUNDRED_WORDS])
    assert len(items(tutor.HUNDRED_WORDS)) > 400


def test_a_compacted_session_keeps_what_was_said_and_one_opaque_item() -> None:
    agents.run_all([assistant.BUSY_WEEK])
    assert shapes(assistant.BUSY_WEEK)[:5] == ["user"] * 4 + ["compaction"]
    hosted = {"mcp_list_tools", "mcp_call who_is_on", "image_generation_call"}
    assert hosted <= set(shapes(assistant.BUSY_WEEK))


def test_the_encrypted_session_opens_with_its_key_and_shows_nothing_without() -> None:
    agents.run_all([assistant.PRIVATE_MATTER])
    session_id = assistant.PRIVATE_MATTER.session_id
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM agent_messages WHERE message_data NOT LIKE '{\"__enc__\":1,%'")
        assert cursor.fetchone() == (0,)

    def opened(tables: AgentTables) -> Any:
        return EncryptedSession(session_id, tables.session(session_id), sealing.session_key()).get_items()

    assert in_sdk(opened)[0]["content"].startswith("Запиши меня к кардиологу")


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


def test_the_agents_tables_may_stand_in_a_schema_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    run_sql('CREATE SCHEMA "Agents"')
    monkeypatch.setattr(agents, "open_agent_tables", partial(open_agent_tables, "Agents.sessions", "Agents.100% said"))
    played = [support.WHERE_IS_MY_ORDER]
    assert agents.run_all(played) == [played[0].session_id]
    assert agents.run_all(played) == []
    assert value_of('SELECT count(*) FROM "Agents"."100% said" WHERE created_at < now() - interval \'1 hour\'') > 0


def test_the_live_session_grows_to_its_end_and_not_beyond() -> None:
    assert asyncio.run(agents.chat_on(pause=timedelta(0))) == 50
    assert AgentMessage.objects.count() == 200
    assert asyncio.run(agents.chat_on(pause=timedelta(0))) == 0
    assert AgentMessage.objects.count() == 200


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
