"""Builder of timelines: decodes, inspects, pairs and groups stored items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from sessions_app.items import StoredItem
from sessions_app.timeline import messages, notes
from sessions_app.timeline.calls import Asked, Output
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.events import Badge, Encrypted, Event, Handoff, Timeline, ToolCall, ToolState
from sessions_app.timeline.findings import Finding, FindingCode, Inspector
from sessions_app.timeline.function_tools import is_called_by_program
from sessions_app.timeline.handoffs import agent_handed_to, is_handoff_call, is_ignored_handoff, named_agent
from sessions_app.timeline.markers import MARKER, MARKER_IN_ADDRESS
from sessions_app.timeline.media import without_pictures
from sessions_app.timeline.pairing import CALLS, OpenCalls, call_key, output_key
from sessions_app.timeline.runs import group_into_runs
from sessions_app.timeline.seals import PLAINTEXT, badges_of
from sessions_app.timeline.tools import ASKED, ONE_ITEM_TOOLS, OUTPUT
from sessions_app.timeline.values import fields_in, one_line, text_in

REDACTED = Badge("secondary", "eraser", "redacted")

SHARED_IDS = frozenset({"", "__fake_id__"})
"""Ids that chat-completions models write into every item: they identify nothing."""


def build_timeline(items: Sequence[StoredItem], *, starts_session: bool, ends_session: bool) -> Timeline:
    """Timeline of neighbouring items of one session, in the agent's order, oldest first.

    The window may begin and end anywhere. Nothing is reported missing that may be outside of it, and runs are numbered
    only from the start of the session. Every item is in exactly one event. Never raises, whatever is stored.
    """
    entries = [decode(item) for item in items]
    inspector = Inspector(starts_session=starts_session)
    for entry in entries:
        inspector.see(entry)
    findings = inspector.finish(ends_session=ends_session).findings
    events = _EventBuilder(entries, findings, starts_session=starts_session, ends_session=ends_session).build()
    return Timeline(group_into_runs(events, starts_session=starts_session), findings)


class _EventBuilder:
    """Builder of the events of one window. Entries are referred to by their index in it."""

    def __init__(
        self, entries: list[DecodedItem], findings: tuple[Finding, ...], *, starts_session: bool, ends_session: bool
    ) -> None:
        self.entries = entries
        self.starts_session = starts_session
        self.ends_session = ends_session
        self.findings: dict[str, list[Finding]] = defaultdict(list)
        for one in findings:
            self.findings[one.item.id].append(one)
        self.output_of, self.call_of = _pairs(entries)
        self.programs = {key: index for index, entry in enumerate(entries) if (key := _program_key(entry))}
        self.rows = {
            known_as: entry.stored.id
            for entry in reversed(entries)
            if (known_as := text_in(entry.fields, "id")) not in SHARED_IDS and entry.type != "item_reference"
        }
        self.agent = ""
        """Current agent, if a handoff of the run names it; reset at the next run."""

    def build(self) -> list[Event]:
        events: list[Event] = []
        nested: dict[int, list[Event]] = defaultdict(list)
        places: dict[int, int] = {}
        envelopes: list[DecodedItem] = []
        for index, entry in enumerate(self.entries):
            if entry.is_envelope:
                envelopes.append(entry)
                if index + 1 == len(self.entries) or not are_alike(entry, self.entries[index + 1]):
                    events.append(self._finished(notes.encrypted(envelopes)))
                    envelopes = []
                continue
            if index in self.call_of:
                self._follow_handoff(index)
                continue
            event = self._finished(self._event(index))
            program = self._program_of(index)
            if program is None:
                places[index] = len(events)
                events.append(event)
            else:
                nested[program].append(event)
        for index, inner in nested.items():
            program_event = events[places[index]]
            assert isinstance(program_event, ToolCall)
            events[places[index]] = replace(program_event, nested=tuple(inner))
        return events

    def _event(self, index: int) -> Event:
        entry = self.entries[index]
        if entry.problem:
            return notes.unreadable(entry)
        match entry.type:
            case "message":
                if entry.fields.get("role") == "user":
                    self.agent = ""
                is_latest = self.ends_session and index + 1 == len(self.entries)
                return messages.message(entry, self.agent, is_latest=is_latest)
            case "agent_message":
                return messages.message_between_agents(entry)
            case "reasoning":
                following = self.entries[index + 1].stored.id if index + 1 < len(self.entries) else ""
                return messages.reasoning(entry, self.agent, following)
            case "compaction":
                return notes.compaction(entry)
        if entry.type in ONE_ITEM_TOOLS:
            return self._tool(entry, ASKED[entry.type](entry.fields), OUTPUT[entry.type](entry.fields), entry)
        if entry.type in ASKED:
            return self._call(index)
        if entry.type in OUTPUT:
            return self._lone_output(entry)
        return notes.note(entry, self.rows)

    def _call(self, index: int) -> Event:
        entry = self.entries[index]
        answer = self.entries[self.output_of[index]] if index in self.output_of else None
        if is_handoff_call(entry) and (answer is None or agent_handed_to(answer) or is_ignored_handoff(answer)):
            return self._handoff(entry, answer)
        output = OUTPUT[answer.type](answer.fields) if answer else Output(state=self._state_without_output(entry))
        return self._tool(entry, ASKED[entry.type](entry.fields), output, answer)

    def _tool(self, call: DecodedItem, asked: Asked, output: Output, answer: DecodedItem | None) -> ToolCall:
        key = call_key(call)
        is_apart = answer is not None and answer is not call
        return ToolCall(
            items=(call.stored, answer.stored) if answer and is_apart else (call.stored,),
            title=asked.title,
            detail=asked.detail,
            badges=(output.state.value,),
            notes=tuple(
                dict.fromkeys(
                    [*([f"{CALLS[call.type][1]} {one_line(key[1], 60)}"] if key else []), *asked.notes, *output.notes]
                )
            ),
            body=asked.body,
            agent=self.agent,
            is_collapsed=not output.state.is_failure,
            state=output.state,
            output=output.body,
            output_item=answer.stored if answer and is_apart else None,
            is_named=asked.is_named,
        )

    def _lone_output(self, entry: DecodedItem) -> ToolCall:
        """Event of an output whose call is not in the window: missing, or perhaps on an earlier page."""
        output = OUTPUT[entry.type](entry.fields)
        codes = self._codes(entry)
        is_missing = FindingCode.OUTPUT_WITHOUT_CALL in codes or self.starts_session
        state = ToolState.UNCALLED if is_missing else ToolState.CALL_ELSEWHERE
        key = output_key(entry)
        return ToolCall(
            items=(entry.stored,),
            title=entry.type,
            detail=one_line(key[1], 60) if key else "",
            badges=tuple(dict.fromkeys([*([] if output.state is ToolState.OK else [output.state.value]), state.value])),
            notes=output.notes,
            agent=self.agent,
            is_collapsed=True,
            state=state,
            output=output.body,
            is_named=True,
        )

    def _state_without_output(self, entry: DecodedItem) -> ToolState:
        codes = self._codes(entry)
        if FindingCode.APPROVAL_OPEN in codes:
            return ToolState.AWAITING_APPROVAL
        if FindingCode.CALL_WITHOUT_OUTPUT in codes or self.ends_session:
            return ToolState.UNANSWERED
        return ToolState.OUTPUT_ELSEWHERE

    def _handoff(self, call: DecodedItem, answer: DecodedItem | None) -> Handoff:
        taken_by = agent_handed_to(answer) if answer else ""
        state = ToolState.OK
        if answer is None:
            state = self._state_without_output(call)
        elif not taken_by:
            state = ToolState.IGNORED
        to_agent = taken_by or named_agent(call)
        return Handoff(
            items=(call.stored, answer.stored) if answer else (call.stored,),
            title="Handoff",
            detail=f"{self.agent} → {to_agent}" if self.agent else f"to {to_agent}",
            badges=() if state is ToolState.OK else (state.value,),
            notes=(one_line(text_in(call.fields, "name")),),
            agent=self.agent,
            to_agent=to_agent,
            is_certain=bool(taken_by),
        )

    def _follow_handoff(self, output: int) -> None:
        """Sets the current agent after the output of a handoff; calls of the same turn belong to the previous one."""
        answer = self.entries[output]
        if is_handoff_call(self.entries[self.call_of[output]]) and (name := agent_handed_to(answer)):
            self.agent = name

    def _program_of(self, index: int) -> int | None:
        """Index of the earlier program that made this call, if it is in the window."""
        entry = self.entries[index]
        if entry.type == "program" or not is_called_by_program(entry.fields):
            return None
        program = self.programs.get(text_in(fields_in(entry.fields, "caller"), "caller_id"))
        return program if program is not None and program < index else None

    def _codes(self, entry: DecodedItem) -> set[FindingCode]:
        return {one.code for one in self.findings.get(entry.stored.id, ())}

    def _finished(self, event: Event) -> Event:
        """The event with its findings, and without pictures that were read only in part."""
        if not event.item.is_whole:
            event = replace(event, body=without_pictures(event.body))
        if isinstance(event, ToolCall) and not event.items[-1].is_whole:
            event = replace(event, output=without_pictures(event.output))
        if not isinstance(event, Encrypted):
            event = _with_badges_of_seals(event)
        if any(is_redacted(item) for item in event.items):
            event = replace(event, badges=(*event.badges, REDACTED))
        found = tuple(one for item_id in event.item_ids for one in self.findings.get(item_id, ()))
        if not found:
            return event
        if any(one.code == FindingCode.PLAINTEXT_AMONG_ENCRYPTED for one in found):
            event = replace(event, badges=(*event.badges, PLAINTEXT))
        return replace(event, findings=found, icon="alert-triangle" if isinstance(event, ToolCall) else event.icon)


def is_redacted(item: StoredItem) -> bool:
    return item.shown.is_redacted if item.shown else MARKER in item.raw or MARKER_IN_ADDRESS in item.raw


def are_alike(envelope: DecodedItem, following: DecodedItem) -> bool:
    """Whether two envelopes form one event: neither is decrypted, and the same is known about both."""
    if not following.is_envelope:
        return False
    one, other = envelope.stored.seal, following.stored.seal
    if one is None or other is None:
        return one is other
    return (one.state, one.key_name, one.is_expired, one.is_ahead) == (
        other.state,
        other.key_name,
        other.is_expired,
        other.is_ahead,
    )


def _with_badges_of_seals(event: Event) -> Event:
    """The event with badges for the envelopes from which its items were decrypted."""
    shown = dict.fromkeys(badge for item in event.items if item.seal for badge in badges_of(item.seal))
    return replace(event, badges=(*event.badges, *shown)) if shown else event


def _pairs(entries: list[DecodedItem]) -> tuple[dict[int, int], dict[int, int]]:
    """Index of the output by the index of its call, and the reverse."""
    calls: OpenCalls[int] = OpenCalls()
    call_of = {}
    for index, entry in enumerate(entries):
        call = calls.see(entry, index)
        if call is not None:
            call_of[index] = call
    return {call: output for output, call in call_of.items()}, call_of


def _program_key(entry: DecodedItem) -> str:
    return text_in(entry.fields, "call_id") if entry.type == "program" else ""
