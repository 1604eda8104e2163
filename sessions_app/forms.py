"""What people fill in for the verbs. The filters of the list are in `filters.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict

from sessions_app.audit_events import RedactReason, RevealReason
from sessions_app.encryption import keyring
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, SubjectKind
from sessions_app.redacting import Unwanted, Wanted
from sessions_app.services.redaction import RedactionRequest
from sessions_app.stores.kinds import Kind


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


class AboutForm(forms.Form):
    """A part of an id of a subject, and the filters of the list that it was typed at."""

    about = forms.CharField(max_length=512, error_messages={"required": "Whose sessions? The field was empty."})
    filters = forms.CharField(required=False)


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
        label="The text",
        help_text="Exactly as it was said, with capitals and spaces. It is found in every spelling that JSON has for"
        " it, also inside arguments and outputs.",
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
        label="In your words",
        help_text="Kept beside the log, and erasable. Do not repeat the text here.",
        max_length=500,
        required=False,
        widget=forms.Textarea({"class": "form-control", "rows": 2}),
    )
    takes_compactions = forms.BooleanField(required=False, widget=forms.CheckboxInput({"class": "form-check-input"}))

    def __init__(self, *given: Any, is_item: bool, **named: Any) -> None:
        super().__init__(*given, **named)
        self.is_item = is_item
        if is_item:
            self.fields["text"].label = "Only this text"
            self.fields["text"].help_text = "Empty: everything that the item says."

    def clean_text(self) -> str:
        text = str(self.cleaned_data["text"])
        if not text and self.is_item:
            return ""
        try:
            return Wanted.parse(text).text
        except Unwanted as problem:
            raise forms.ValidationError(str(problem) if text else "Which text? The field was empty.") from problem

    def request_by(self, user: User) -> RedactionRequest:
        given = {**self.cleaned_data, "reason": RedactReason(self.cleaned_data["reason"])}
        return RedactionRequest(**given, by=user)
