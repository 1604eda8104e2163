"""What people fill in: the filters of the lists, and the fields of the verbs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.timezone import now

from memadmin.web.filters import FilterForm
from memadmin.web.filters import sentences as sentences
from memadmin.web.hostile import write_out_invisible
from sessions_app.audited import RedactReason, RevealReason
from sessions_app.encryption import keyring
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, Subject, SubjectKind, TextSearch
from sessions_app.querysets import SessionRecordQuerySet
from sessions_app.redacting import Unwanted, Wanted
from sessions_app.stores.kinds import Kind

DAYS = {1: "last 24 hours", 7: "last 7 days", 30: "last 30 days", 90: "last 90 days"}
STATES = {"findings": "with findings", "encrypted": "encrypted", "locked": "locked one by one"}


class SessionFilter(FilterForm):
    """Which sessions the list shows."""

    store = forms.TypedChoiceField(
        required=False,
        empty_value=None,
        widget=forms.Select({"class": "form-select", "aria-label": "Store"}),
        error_messages={"invalid_choice": "There is no store named “%(value)s”."},
    )
    agent = forms.CharField(max_length=200, required=False)
    days = forms.TypedChoiceField(
        choices=[("", "Any time"), *((days, text.capitalize()) for days, text in DAYS.items())],
        coerce=int,
        empty_value=None,
        required=False,
        widget=forms.Select({"class": "form-select", "aria-label": "Last activity"}),
        error_messages={"invalid_choice": "“%(value)s” is not a number of days that this list offers."},
    )
    state = forms.ChoiceField(
        choices=[("", "Any state"), *((state, text.capitalize()) for state, text in STATES.items())],
        required=False,
        widget=forms.Select({"class": "form-select", "aria-label": "State"}),
        error_messages={"invalid_choice": "“%(value)s” is not a state of sessions."},
    )
    ticket = forms.CharField(max_length=200, required=False, widget=forms.TextInput({"class": "form-control"}))
    label = forms.CharField(max_length=50, required=False, widget=forms.TextInput({"class": "form-control"}))
    since = forms.DateField(
        required=False,
        widget=forms.DateInput({"class": "form-control", "type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "“Since” is not a date; write it as 2026-11-30."},
    )
    until = forms.DateField(
        required=False,
        widget=forms.DateInput({"class": "form-control", "type": "date"}, format="%Y-%m-%d"),
        error_messages={"invalid": "“Until” is not a date; write it as 2026-11-30."},
    )
    subject = forms.ModelChoiceField(
        Subject.objects.all(),
        required=False,
        widget=forms.HiddenInput,
        error_messages={"invalid_choice": "There is no subject at this address."},
    )
    search = forms.ModelChoiceField(
        TextSearch.objects.standing(),
        required=False,
        widget=forms.HiddenInput,
        error_messages={"invalid_choice": "This search is over; searches are not kept for long. Search again."},
    )
    without_subject = forms.BooleanField(required=False, widget=forms.HiddenInput)

    def __init__(self, query: QueryDict) -> None:
        super().__init__(query)
        stores = {store.name: store for store in SessionStore.objects.all()}
        self.stores = stores.values()
        field = self.fields["store"]
        assert isinstance(field, forms.TypedChoiceField)
        field.choices, field.coerce = [("", "Any store"), *((name, name) for name in stores)], stores.__getitem__
        agents = SessionRecord.objects.agents()
        chosen = str(query.get("agent", ""))
        if chosen and chosen not in agents:
            agents.insert(0, chosen)
        self.fields["agent"].widget = forms.Select(
            {"class": "form-select", "aria-label": "Agent"},
            choices=[("", "Any agent"), *((agent, write_out_invisible(agent)) for agent in agents)],
        )

    @property
    def more(self) -> list[forms.BoundField]:
        """The fields behind the disclosure."""
        return [self[name] for name in ("ticket", "label", "since", "until")]

    @property
    def searched(self) -> TextSearch | None:
        """The words that were typed, when that filter is on and nothing is wrong with the others."""
        return None if self.errors else self.active.get("search")

    @property
    def query_without_search(self) -> str:
        return self.query_string(without="search")

    def queryset(self) -> SessionRecordQuerySet:
        sessions = SessionRecord.objects.on_record().newest_first()
        if self.errors:
            return sessions.none()
        for name, value in self.active.items():
            sessions = narrowed(sessions, name, value)
        return sessions

    def spelled_out(self, name: str, value: Any) -> str:
        return spelled_out(name, value)


def narrowed(sessions: SessionRecordQuerySet, name: str, value: Any) -> SessionRecordQuerySet:
    """By one filter; words that were said are looked for in what the others leave."""
    match name:
        case "store" | "agent" | "ticket":
            return sessions.filter(**{name: value})
        case "days":
            return sessions.filter(last_activity_at__gte=now() - timedelta(days=value))
        case "since":
            return sessions.filter(last_activity_at__gte=datetime.combine(value, time.min, UTC))
        case "until":
            return sessions.filter(last_activity_at__lte=datetime.combine(value, time.max, UTC))
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


class SelectionForm(forms.Form):
    """Sessions ticked in a list, and the page to return to."""

    session = forms.ModelMultipleChoiceField(
        SessionRecord.objects.on_record(),
        error_messages={
            "required": "No session was selected. Tick one first.",
            "invalid_choice": "One of these sessions is not on record any more; somebody may have erased it.",
            "invalid_pk_value": "That is not the address of a session.",
        },
    )


class LabelForm(SelectionForm):
    label = forms.CharField(max_length=50, error_messages={"required": "A label needs a name."})


class KeyForm(forms.Form):
    """An id of a subject, as the host application writes it."""

    kind = forms.ChoiceField(choices=SubjectKind, initial=SubjectKind.USER)
    key = forms.CharField(max_length=512, error_messages={"required": "Which id? The field was empty."})


class AttachForm(SelectionForm, KeyForm):
    create = forms.BooleanField(required=False)


class PatternForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = SessionIdPattern
        fields = ("name", "pattern", "subject_kind")
        widgets: ClassVar = {
            "name": forms.TextInput({"class": "form-control"}),
            "pattern": forms.TextInput({"class": "form-control mono", "spellcheck": "false", "autocomplete": "off"}),
            "subject_kind": forms.Select({"class": "form-select"}),
        }
        labels: ClassVar = {"subject_kind": "Kind of subject"}
        help_texts: ClassVar = {
            "pattern": "As customer_{subject}:ticket_{ticket}. There is {agent}, too, and {*} for what does not matter."
        }


class StoreForm(forms.Form):
    """A new store, besides the settings of its kind."""

    name = forms.SlugField(
        max_length=64,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "off"}),
        help_text="Short, and stays: letters, digits, hyphens. Lists and addresses show it.",
    )
    sessions_table = forms.CharField(
        max_length=127, initial="agent_sessions", widget=forms.TextInput({"class": "form-control mono"})
    )
    messages_table = forms.CharField(
        max_length=127, initial="agent_messages", widget=forms.TextInput({"class": "form-control mono"})
    )
    timezone = forms.CharField(
        label="Time zone of the writers",
        max_length=64,
        initial="UTC",
        widget=forms.TextInput({"class": "form-control"}),
        help_text="The zone in which the agents write times without one, such as Europe/Riga.",
    )

    def __init__(self, kind: Kind, data: QueryDict | None = None, initial: Mapping[str, str] | None = None) -> None:
        super().__init__(data, initial=dict(initial or {}))
        if not kind.has_tables:
            del self.fields["sessions_table"], self.fields["messages_table"]
        if not kind.has_zone:
            del self.fields["timezone"]


def settings_form(kind: Kind, data: QueryDict | None = None, initial: Mapping[str, str] | None = None) -> forms.Form:
    """What a kind asks for, dressed for a page. Of `initial` only what it asks for is shown."""
    form = kind.form(data, initial=dict(initial or {}))
    for field in form.fields.values():
        is_choice = isinstance(field, forms.ChoiceField)
        field.widget.attrs |= {"class": "form-select" if is_choice else "form-control", "autocomplete": "off"}
    return form


class EncryptionForm(forms.Form):
    """With which key the agents of a store seal what they say."""

    key = forms.ChoiceField(required=False, widget=forms.Select({"class": "form-select"}))
    ttl = forms.IntegerField(
        label="Agents read an item for",
        min_value=1,
        widget=forms.NumberInput({"class": "form-control"}),
        help_text="In seconds, as the agents give it to EncryptedSession; 600 if they do not.",
    )
    session_ids = forms.CharField(
        required=False,
        max_length=300,
        widget=forms.TextInput({"class": "form-control mono", "spellcheck": "false", "autocomplete": "off"}),
        help_text="Where EncryptedSession has another session id than the store inside it: sealed:{id} -> {id}",
    )

    def __init__(self, store: SessionStore, data: QueryDict | None = None) -> None:
        super().__init__(
            data,
            initial={
                "key": store.encryption_key,
                "ttl": store.encryption_ttl_seconds,
                "session_ids": store.encryption_ids,
            },
        )
        names = {*keyring().keys, *filter(None, [store.encryption_key])}
        field = self.fields["key"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "no key; what is sealed stays closed"), *((name, name) for name in sorted(names))]


class RegisterForm(forms.Form):
    """Ids of sessions that their store cannot list."""

    MOST = 500
    """So many are asked for while somebody waits."""

    ids = forms.CharField(
        label="Ids, one on each line",
        strip=False,
        widget=forms.Textarea(
            {"class": "form-control mono", "rows": "4", "spellcheck": "false", "autocomplete": "off"}
        ),
        error_messages={"required": "Give the ids, one on each line."},
    )

    def clean_ids(self) -> list[str]:
        ids = [line for line in str(self.cleaned_data["ids"]).splitlines() if line.strip()]
        if not ids:
            raise forms.ValidationError("Give the ids, one on each line.")
        if len(ids) > self.MOST:
            raise forms.ValidationError(
                f"These are {len(ids):,}, and {self.MOST} are taken at once. For more there is the command"
                " register_sessions."
            )
        return ids


class RevealForm(forms.Form):
    """Why somebody wants to see what is masked."""

    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *RevealReason.choices],
        widget=forms.Select({"class": "form-select"}),
        error_messages={
            "required": "Choose a reason: revealing is recorded with one.",
            "invalid_choice": "That is not one of the reasons.",
        },
    )


class RedactForm(forms.Form):
    """What is to be taken out, and why."""

    text = forms.CharField(
        required=False,
        strip=True,
        widget=forms.Textarea(
            {"class": "form-control mono", "rows": 3, "spellcheck": "false", "autocomplete": "off", "autofocus": True}
        ),
    )
    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *RedactReason.choices],
        widget=forms.Select({"class": "form-select"}),
        error_messages={
            "required": "Choose a reason: what is taken out is recorded with one.",
            "invalid_choice": "That is not one of the reasons.",
        },
    )
    explanation = forms.CharField(
        max_length=500, required=False, widget=forms.Textarea({"class": "form-control", "rows": 2})
    )
    takes_compactions = forms.BooleanField(required=False, widget=forms.CheckboxInput({"class": "form-check-input"}))

    def __init__(self, *given: Any, is_item: bool, **named: Any) -> None:
        super().__init__(*given, **named)
        self.is_item = is_item

    def clean_text(self) -> str:
        text = str(self.cleaned_data["text"])
        if not text and self.is_item:
            return ""
        try:
            return Wanted.parse(text).text
        except Unwanted as problem:
            raise forms.ValidationError(str(problem) if text else "Which text? The field was empty.") from problem

    @property
    def asked(self) -> dict[str, Any]:
        return {**self.cleaned_data, "reason": RedactReason(self.cleaned_data["reason"])}
