"""Filters of the log: from a query string to the querysets whose union is the list."""

from __future__ import annotations

import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Q
from django.http import QueryDict

from memadmin.audit.log import event_names, label_registry, types
from memadmin.audit.log.groups import EventGroup, group_of
from memadmin.audit.log.label_registry import SUBJECT
from memadmin.audit.models import AuditActor, AuditEvent, Outcome
from memadmin.audit.querysets import AuditEventQuerySet
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import ARRANGEMENT, Chip, FilterForm
from memadmin.web.safe_text import write_out_invisible
from memadmin.web.widgets import select

if TYPE_CHECKING:
    from django.contrib.auth.models import User

OFFERED_ACTORS = 500
"""Maximum of actors in the select; further ones are reached from one of their events."""

MOST_BRANCHES = 150

LONGEST_VALUE = 200
"""Characters of a filter's value."""

READS, CHANGES, OUTSIDE = "reads", "changes", "outside"
OFFERED = {
    **dict(EventGroup.choices),
    CHANGES: "all changes and decisions",
    OUTSIDE: "changed outside the console",
}
"""Choices of the filter: groups of event types. A single type, or all of a noun, is chosen by address."""

GROUPS = {**OFFERED, READS: "all reads"}
WITH_PROGRAMS, WITHOUT_PROGRAMS = "with", "without"
PROGRAMS = {WITH_PROGRAMS: "with agents and background jobs", WITHOUT_PROGRAMS: "without agents and background jobs"}
REQUEST_ID = "[0-7][0-9a-f]{15}"
"""Pattern of a request's id, a number below 2^63."""

EVERY = ".*"
"""Suffix of a noun for all event types with that noun."""


def a_date(name: str) -> forms.DateField:
    return forms.DateField(
        required=False,
        widget=forms.DateInput(
            {
                "class": "form-control w-auto",
                "type": "date",
                "aria-label": name,
                "title": f"{name}, in your time zone",
            },
            format="%Y-%m-%d",
        ),
        error_messages={"invalid": f"“{name}” is not a date; write it as 2026-11-30."},
    )


def an_id(of: str) -> forms.UUIDField:
    return forms.UUIDField(
        required=False, widget=forms.HiddenInput, error_messages={"invalid": f"The {of} ID in the link is not valid."}
    )


def a_request_id() -> forms.RegexField:
    return forms.RegexField(
        rf"^{REQUEST_ID}$",
        required=False,
        widget=forms.HiddenInput,
        error_messages={"invalid": "A request ID has 16 digits, 0 to 9 and a to f."},
    )


class AuditFilter(FilterForm):
    """Filter of the events shown. Addresses contain only ids, also for actors.

    There are millions of events, so the only order is that of the index behind every filter, in both directions.
    """

    table = ListTable(
        (
            ListColumn("index", "Index", classes="num d-none d-md-table-cell"),
            ListColumn("time", "Time", ("at", "number"), classes="d-none d-md-table-cell", begins_descending=True),
            ListColumn("event", "Event", is_fixed=True),
            ListColumn("actor", "Kind of actor", classes="d-none d-md-table-cell", is_extra=True),
            ListColumn("outcome", "Outcome", classes="d-none d-md-table-cell text-end"),
        ),
        sort="-time",
    )
    not_saved = frozenset(
        (
            "subject",
            "object",
        )
    )

    type = forms.CharField(required=False, max_length=types.LONGEST_NAME)
    actor = forms.UUIDField(required=False, error_messages={"invalid": "The actor ID in the link is not valid."})
    outcome = forms.ChoiceField(
        choices=[("", "Any outcome"), *((value, text.capitalize()) for value, text in Outcome.choices)],
        required=False,
        widget=select("Outcome"),
        error_messages={"invalid_choice": "“%(value)s” is not an outcome."},
    )
    since = a_date("Since")
    until = a_date("Until")
    subject = an_id("subject")
    object = an_id("record")
    # As lines of the log name them.
    request_id = a_request_id()
    job_id = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        widget=forms.HiddenInput,
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), "A job ID is a number."),
    )
    # Set by chips only. By default jobs and agents are hidden if no other filter is set: their thousands of events,
    # after an import and with every run, would hide those of people.
    jobs = forms.ChoiceField(
        choices=[("", ""), *PROGRAMS.items()],
        required=False,
        widget=forms.HiddenInput,
        error_messages={"invalid_choice": "“%(value)s” is not a valid choice for agents and background jobs."},
    )

    def __init__(self, query: QueryDict, viewer: User) -> None:
        super().__init__(query)
        self.names = label_registry.Names(viewer)
        self.fields["type"].widget = forms.Select(
            {"class": "form-select", "aria-label": "Event"}, choices=self.offered_types()
        )
        self.fields["actor"].widget = forms.Select(
            {"class": "form-select", "aria-label": "Actor"}, choices=self.offered_actors()
        )

    def clean_type(self) -> str:
        chosen = str(self.cleaned_data["type"])
        # A type that this version no longer declares may still be in the log.
        is_known = not chosen or chosen in GROUPS or self.types_of(chosen) or AuditEvent.objects.filter(type=chosen)[:1]
        if not is_known:
            raise forms.ValidationError(f"“{chosen}” is not a recorded event type.")
        return chosen

    def clean(self) -> dict[str, Any]:
        since, until = self.cleaned_data.get("since"), self.cleaned_data.get("until")
        if since and until and since > until:
            self.add_error("until", "“Until” is before “Since”.")
        return self.cleaned_data

    def offered_types(self) -> list[tuple[str, str]]:
        chosen = str(self.query.get("type", ""))
        offered = [("", "Any event"), *((value, text[0].upper() + text[1:]) for value, text in OFFERED.items())]
        if chosen and chosen not in OFFERED:
            offered.append((chosen, write_out_invisible(self.spelled_out("type", chosen))))
        return offered

    def offered_actors(self) -> list[tuple[str, Any]]:
        actors = list(AuditActor.objects.order_by("kind", "label", "ref")[:OFFERED_ACTORS])
        sections: dict[str, list[tuple[str, str]]] = {}
        for actor in actors:
            sections.setdefault(actor.get_kind_display(), []).append((str(actor.ref), write_out_invisible(actor.label)))
        offered: list[tuple[str, Any]] = [("", "Any actor")]
        chosen = str(self.query.get("actor", ""))
        if chosen and chosen not in {str(actor.ref) for actor in actors} and (ref := uuid_or_none(chosen)):
            offered.append((chosen, actor_label(ref)))
        return [*offered, *((kind.capitalize(), people) for kind, people in sections.items())]

    @cached_property
    def subject_ids(self) -> list[uuid.UUID]:
        """The chosen subject and all that were merged with it; empty without a chosen subject."""
        subject = self.active.get("subject")
        return label_registry.together(SUBJECT, subject) if subject else []

    @property
    def types(self) -> list[str]:
        """The declared event types of the chosen group, noun or type; empty without one."""
        return self.types_of(self.active.get("type", ""))

    @staticmethod
    def types_of(chosen: str) -> list[str]:
        names = [event_type.name for event_type in types.declared()]
        if chosen in EventGroup.values:
            return [name for name in names if group_of(name) == chosen]
        if chosen == READS:
            return event_names.reads_among(names)
        if chosen == CHANGES:
            return event_names.changes_among(names)
        if chosen.endswith(EVERY):
            return [name for name in names if event_names.noun_of(name) == chosen.removesuffix(EVERY)]
        return [name for name in names if name == chosen]

    @property
    def leaves_out_programs(self) -> bool:
        return not self.errors and self.active.get("jobs", self.programs_unasked) == WITHOUT_PROGRAMS

    @property
    def programs_unasked(self) -> str:
        return WITH_PROGRAMS if set(self.active) - {"since", "until", "jobs"} else WITHOUT_PROGRAMS

    def chips(self) -> list[Chip]:
        chips = [
            Chip(self.spelled_out(name, value), self.query_string(without=name))
            for name, value in self.active.items()
            if name != "jobs"
        ]
        if self.leaves_out_programs:
            chips.append(Chip(PROGRAMS[WITHOUT_PROGRAMS], self.query_string_with("jobs", WITH_PROGRAMS)))
        elif self.programs_unasked == WITHOUT_PROGRAMS:
            chips.append(Chip(PROGRAMS[WITH_PROGRAMS], self.query_string(without="jobs")))
        return chips

    def in_full(self) -> str:
        """The filters for the event of a read or an export, including those set by default; not order and columns."""
        query = QueryDict(self.unarranged, mutable=True)
        if self.leaves_out_programs:
            query["jobs"] = WITHOUT_PROGRAMS
        return query.urlencode()

    def branches(self) -> list[AuditEventQuerySet]:
        """The events, newest first, as a union of querysets that each use their own index."""
        events: AuditEventQuerySet = self.ordered(AuditEvent.objects.all())
        if self.errors:
            return [events.none()]
        active = self.active
        if self.leaves_out_programs:
            events = events.but_of_programs()
        if "actor" in active:
            events = events.filter(actor_ref=active["actor"])
        for name in ("outcome", "job_id"):
            if name in active:
                events = events.filter(**{name: active[name]})
        if "request_id" in active:
            events = events.filter(request_id=int(active["request_id"], 16))
        if "since" in active:
            events = events.since(active["since"])
        if "until" in active:
            events = events.until(active["until"])
        if not self.leaves_out_programs and self.programs_unasked == WITHOUT_PROGRAMS:
            return [events.but_of_programs(), events.of_programs()]
        narrowed = self.about(events)
        return narrowed if len(narrowed) > 1 else self.of_types(narrowed[0], as_branches=not self.has_narrow_index)

    @property
    def has_narrow_index(self) -> bool:
        """Whether the other filters leave so few events that their types can be compared one by one."""
        return bool({"subject", "object", "actor", "request_id", "job_id"} & set(self.active))

    def about(self, events: AuditEventQuerySet) -> list[AuditEventQuerySet]:
        """Events about the chosen subject and record, if any: as the event's own one, or listed among several."""
        active = self.active
        record = active.get("object")
        if self.subject_ids:
            if record:
                events = events.filter(Q(object_ref=record) | Q(shown__contains=[record]))
            branches = [
                *(events.filter(subject_ref=ref) for ref in self.subject_ids[:MOST_BRANCHES]),
                events.concerning(self.subject_ids),
            ]
        elif record:
            branches = [events.filter(object_ref=record), events.concerning([record])]
        else:
            return [events]
        return [part for branch in branches for part in self.of_types(branch, as_branches=False)]

    def of_types(self, events: AuditEventQuerySet, *, as_branches: bool) -> list[AuditEventQuerySet]:
        chosen = self.active.get("type", "")
        if not chosen:
            return [events]
        if chosen == OUTSIDE:
            return [events.outside()]
        names = self.types or [chosen]
        if as_branches and len(names) <= MOST_BRANCHES:
            return [events.filter(type=name) for name in names]
        return [events.filter(type__in=names) if len(names) > 1 else events.filter(type=names[0])]

    def query_string_with(self, name: str, value: uuid.UUID | str) -> str:
        """Query string of the active filters with one added or replaced."""
        query = QueryDict(self.query_string(), mutable=True)
        query[name] = str(value)
        return query.urlencode()

    def spelled_out(self, name: str, value: Any) -> str:
        match name:
            case "type":
                return GROUPS.get(value) or str(value).replace(EVERY, ": all events")
            case "actor":
                return f"by {actor_label(value)}"
            case "since" | "until":
                return f"{name} {value.day} {value:%b %Y}"
            case "subject":
                return f"about {self.names.of(SUBJECT, value).text}"
            case "object":
                return f"object {label_registry.short(value)}"
            case "request_id" | "job_id":
                return f"{name.removesuffix('_id')} {value}"
        return str(value)


def actor_label(ref: uuid.UUID) -> str:
    label = AuditActor.objects.filter(ref=ref).values_list("label", flat=True).first()
    return label or f"erased actor ({label_registry.short(ref)})"


def uuid_or_none(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


class AuditLookupForm(forms.Form):
    """The filters of the list, and a search for a person or record by typed text; sent by POST, to keep it out of
    addresses.
    """

    q = forms.CharField(
        required=False, max_length=512, error_messages={"max_length": "An ID has at most 512 characters."}
    )

    def other_filters(self) -> QueryDict:
        """The filters that were sent; the typed text takes the place of a subject, a record, a request and a job."""
        query = QueryDict(mutable=True)
        dropped = {"subject", "object", "request_id", "job_id"} if str(self.data.get("q", "")).strip() else set()
        for name in (*AuditFilter.base_fields, *ARRANGEMENT):
            value = str(self.data.get(name, ""))
            if value and name not in dropped and len(value) <= LONGEST_VALUE:
                query[name] = value
        return query
