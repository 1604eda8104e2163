"""Filters of the session list, by its query string."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.core.validators import slug_re
from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.timezone import now

from memadmin.counting import count_up_to
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from memadmin.web.safe_text import write_out_invisible
from memadmin.web.widgets import day, select
from memadmin.web.zones import begin_of, end_of
from sessions_app.models import SessionRecord, SessionStore, Subject, TextSearch
from sessions_app.models.querysets import SessionRecordQuerySet, SessionStoreQuerySet, SubjectQuerySet

STORES_OFFERED = 50
"""Number of stores in the choice of a filter. Others are chosen on the page of stores."""

UNCHECKED = "unchecked"
STORE_STATES = {**dict(SessionStore.State.choices), UNCHECKED: "not checked yet"}

DAYS = {1: "last 24 hours", 7: "last 7 days", 30: "last 30 days", 90: "last 90 days"}
STATES = {"findings": "with findings", "encrypted": "encrypted", "locked": "locked individually"}


class RowField(forms.UUIDField):
    """A row by its id in the address, which `row_of` reads."""

    widget = forms.HiddenInput

    def row_of(self, row_id: UUID) -> Any:
        """The row with this id; None if there is none."""
        raise NotImplementedError

    def to_python(self, value: Any) -> Any:
        row_id = super().to_python(value)
        if row_id is None:
            return None
        row = self.row_of(row_id)
        if row is None:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return row


class SubjectField(RowField):
    """The subject of a list, with its ids: two queries."""

    default_error_messages: ClassVar = {"invalid": "This subject does not exist."}

    def row_of(self, row_id: UUID) -> Subject | None:
        return Subject.objects.with_ids().filter(pk=row_id).first()


class SearchField(RowField):
    """Search of a list, until it expires."""

    default_error_messages: ClassVar = {"invalid": "This search has expired. Search again."}

    def row_of(self, row_id: UUID) -> TextSearch | None:
        return TextSearch.objects.unexpired(row_id)


class SessionFilter(FilterForm):
    """Filters of the session list.

    There are millions of sessions, so the only order is that of the index behind every filter, in both directions.
    """

    table = ListTable(
        (
            ListColumn("session", "First words, subject, ticket, agent", is_fixed=True),
            ListColumn("store", "Store", classes="d-none d-md-table-cell"),
            ListColumn("items", "Items", classes="num d-none d-md-table-cell"),
            ListColumn("findings", "Findings", classes="num d-none d-md-table-cell", is_extra=True),
            ListColumn("registered", "First seen", classes="d-none d-md-table-cell", is_extra=True),
            ListColumn(
                "activity",
                "Last activity",
                ("last_activity_at", "id"),
                classes="d-none d-md-table-cell",
                begins_descending=True,
            ),
        ),
        sort="-activity",
    )
    not_saved = frozenset(
        (
            "subject",
            "search",
            "ticket",
        )
    )

    store = forms.TypedChoiceField(
        required=False,
        empty_value=None,
        widget=select("Store"),
        error_messages={"invalid_choice": "There is no store named “%(value)s”."},
    )
    agent = forms.CharField(max_length=200, required=False)
    days = forms.TypedChoiceField(
        choices=[("", "Any time"), *((days, text.capitalize()) for days, text in DAYS.items())],
        coerce=int,
        empty_value=None,
        required=False,
        widget=select("Last activity"),
        error_messages={"invalid_choice": "“%(value)s” is not one of the offered numbers of days."},
    )
    state = forms.ChoiceField(
        choices=[("", "Any state"), *((state, text.capitalize()) for state, text in STATES.items())],
        required=False,
        widget=select("State"),
        error_messages={"invalid_choice": "“%(value)s” is not a state of sessions."},
    )
    ticket = forms.CharField(max_length=200, required=False, widget=forms.TextInput({"class": "form-control"}))
    label = forms.CharField(max_length=50, required=False, widget=forms.TextInput({"class": "form-control"}))
    since = forms.DateField(
        required=False,
        widget=day(),
        error_messages={"invalid": "“Since” is not a date; write it as 2026-11-30."},
    )
    until = forms.DateField(
        required=False,
        widget=day(),
        error_messages={"invalid": "“Until” is not a date; write it as 2026-11-30."},
    )
    subject = SubjectField(required=False)
    search = SearchField(required=False)
    without_subject = forms.BooleanField(required=False, widget=forms.HiddenInput)

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query)
        self.stores = list(SessionStore.objects.by_name()[: STORES_OFFERED + 1])
        self.has_more_stores = len(self.stores) > STORES_OFFERED
        self.stores = self.stores[:STORES_OFFERED]
        wanted = str(query.get("store", ""))
        if self.has_more_stores and slug_re.match(wanted) and wanted not in {store.name for store in self.stores}:
            self.stores = [*SessionStore.objects.filter(name=wanted), *self.stores]
        agents = SessionRecord.objects.agent_names()
        stores = {store.name: store for store in self.stores}
        field = self.fields["store"]
        assert isinstance(field, forms.TypedChoiceField)
        field.choices, field.coerce = [("", "Any store"), *((name, name) for name in stores)], stores.__getitem__
        chosen = str(query.get("agent", ""))
        if chosen and chosen not in agents:
            agents.insert(0, chosen)
        self.fields["agent"].widget = forms.Select(
            {"class": "form-select", "aria-label": "Agent"},
            choices=[("", "Any agent"), *((agent, write_out_invisible(agent)) for agent in agents)],
        )

    @cached_property
    def without_subject_count(self) -> int:
        """Number of sessions without a subject under any filters, at most COUNT_CAP + 1. One query."""
        return count_up_to(SessionRecord.objects.on_record().without_subject())

    @property
    def more(self) -> list[forms.BoundField]:
        """Fields that are collapsed under More."""
        return [self[name] for name in ("ticket", "label", "since", "until")]

    @property
    def is_sortable(self) -> bool:
        """A search reads stores in the order of last activity."""
        return "search" not in self.active

    @property
    def searched(self) -> TextSearch | None:
        """Search for words, if that filter is set and the others are valid."""
        return None if self.errors else self.active.get("search")

    @property
    def subjects(self) -> list[Subject]:
        """Subject of the list, if that filter is set."""
        subject = self.active.get("subject")
        return [subject] if subject else []

    @property
    def query_without_search(self) -> str:
        return self.query_string(without="search")

    def queryset(self) -> SessionRecordQuerySet:
        sessions: SessionRecordQuerySet = self.ordered(SessionRecord.objects.on_record())
        if self.errors:
            return sessions.none()
        for name, value in self.active.items():
            sessions = narrowed(sessions, name, value)
        return sessions

    def spelled_out(self, name: str, value: Any) -> str:
        return spelled_out(name, value)


class SubjectFilter(FilterForm):
    """Order and columns of the list of subjects. There are millions: only orders of its index."""

    table = ListTable(
        (
            ListColumn("id", "ID", is_fixed=True),
            ListColumn("kind", "Kind", classes="d-none d-md-table-cell"),
            ListColumn("also", "Number of IDs", classes="num d-none d-md-table-cell", is_extra=True),
            ListColumn(
                "seen", "First seen", ("created_at", "id"), classes="d-none d-md-table-cell", begins_descending=True
            ),
        ),
        sort="-seen",
    )

    def queryset(self) -> SubjectQuerySet:
        subjects: SubjectQuerySet = self.ordered(Subject.objects.listed())
        return subjects.none() if self.errors else subjects


class StoreFilter(FilterForm):
    """Filters of the list of stores. There are at most some hundreds, so any column sorts them."""

    table = ListTable(
        (
            ListColumn("store", "Store", ("name", "id"), is_fixed=True),
            ListColumn("health", "Health", ("state", "name", "id")),
            ListColumn("sessions", "Sessions (approx.)", classes="num d-none d-md-table-cell"),
            ListColumn("items", "Items (approx.)", classes="num d-none d-md-table-cell"),
            ListColumn("fence", "Erasure fence", classes="d-none d-lg-table-cell", term="Fence"),
            ListColumn("encryption", "Encryption", classes="d-none d-lg-table-cell"),
            ListColumn("added", "Added", ("created_at", "id"), classes="d-none d-md-table-cell", is_extra=True),
            ListColumn("discovery", "Last discovery", classes="text-end d-none d-md-table-cell", term="Discovery"),
        ),
        sort="store",
    )

    name = forms.CharField(
        max_length=64,
        required=False,
        widget=forms.TextInput({"class": "form-control", "placeholder": "Part of a name", "aria-label": "Name"}),
    )
    state = forms.ChoiceField(
        choices=[("", "Any state"), *((state, label.capitalize()) for state, label in STORE_STATES.items())],
        required=False,
        widget=select("State"),
        error_messages={"invalid_choice": "“%(value)s” is not a state of stores."},
    )

    def queryset(self) -> SessionStoreQuerySet:
        stores: SessionStoreQuerySet = self.ordered(SessionStore.objects.all())
        if self.errors:
            return stores.none()
        if "name" in self.active:
            stores = stores.filter(name__icontains=self.active["name"])
        if state := self.active.get("state"):
            stores = stores.filter(state="" if state == UNCHECKED else state)
        return stores

    def spelled_out(self, name: str, value: Any) -> str:
        return STORE_STATES[value] if name == "state" else f"name contains “{value}”"


def narrowed(sessions: SessionRecordQuerySet, name: str, value: Any) -> SessionRecordQuerySet:
    """Sessions narrowed by one filter. Words are searched in the result of the other filters."""
    match name:
        case "store" | "agent" | "ticket":
            return sessions.filter(**{name: value})
        case "days":
            return sessions.filter(last_activity_at__gte=now() - timedelta(days=value))
        case "since":
            return sessions.filter(last_activity_at__gte=begin_of(value))
        case "until":
            return sessions.filter(last_activity_at__lte=end_of(value))
        case "state":
            return sessions.in_state(value)
        case "label":
            return sessions.labelled(value)
        case "subject":
            return sessions.about(value)
        case "without_subject":
            return sessions.without_subject()
    assert name == "search", f"no filter is named {name}"
    return sessions


def spelled_out(name: str, value: Any) -> str:
    match name:
        case "days":
            return DAYS[value]
        case "since" | "until":
            return f"{name} {value.day} {value:%b %Y}"
        case "state":
            return STATES[value]
        case "subject":
            return f"subject {value.label}"
        case "without_subject":
            return "without a subject"
        case "search":
            return f"words “{value.text}”"
    return f"{name} {value}"
