"""Forms of actions. The filters of the list are in `filters.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import User
from django.http import QueryDict

from memadmin.accounts.approvals.forms import ShownForm
from memadmin.web.reasons import reason_field
from memadmin.web.widgets import lines, select
from sessions_app.audit_events import RedactReason, RevealReason
from sessions_app.encryption import keyring
from sessions_app.models import SessionIdPattern, SessionRecord, SessionStore, SubjectKind, UnlockRequest
from sessions_app.redaction import InvalidText, TextToRedact
from sessions_app.redaction.previews import RedactionPreview
from sessions_app.redaction.services import RedactionRequest
from sessions_app.stores.kinds import StoreKind


def confirmation_input() -> forms.TextInput:
    return forms.TextInput({"class": "form-control mono", "autocomplete": "off", "spellcheck": "false"})


class SelectionForm(forms.Form):
    """Sessions ticked in a list, and the page to return to."""

    session = forms.ModelMultipleChoiceField(
        SessionRecord.objects.on_record(),
        error_messages={
            "required": "No session is selected. Select one first.",
            "invalid_choice": "One of these sessions no longer exists; it may have been erased.",
            "invalid_pk_value": "This is not a session ID.",
        },
    )


class LabelForm(SelectionForm):
    label = forms.CharField(max_length=50, error_messages={"required": "A label needs a name."})


class UnlockForm(forms.Form):
    """Why sessions are to be unlocked."""

    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *UnlockRequest.Reason.choices],
        widget=select(),
        error_messages={"required": "Choose a reason.", "invalid_choice": "This reason does not exist."},
    )


class KeyForm(forms.Form):
    """An id of a subject, as the host application writes it."""

    kind = forms.ChoiceField(choices=SubjectKind, initial=SubjectKind.USER)
    key = forms.CharField(max_length=512, error_messages={"required": "Enter an ID."})


class AttachForm(SelectionForm, KeyForm):
    create = forms.BooleanField(required=False)


class SubjectSearchForm(forms.Form):
    """A part of an id of a subject, and the filters of the list in which it was entered."""

    about = forms.CharField(max_length=512, error_messages={"required": "Enter a subject ID."})
    filters = forms.CharField(required=False)


class SuggestForm(forms.Form):
    """Beginning of a subject's id, as typed so far."""

    q = forms.CharField(max_length=512, required=False)


class PatternForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = SessionIdPattern
        fields = ("name", "pattern", "subject_kind")
        widgets: ClassVar = {
            "name": forms.TextInput({"class": "form-control"}),
            "pattern": forms.TextInput({"class": "form-control mono", "spellcheck": "false", "autocomplete": "off"}),
            "subject_kind": select(),
        }
        labels: ClassVar = {"subject_kind": "Kind of subject"}
        help_texts: ClassVar = {
            "pattern": "Example: customer_{subject}:ticket_{ticket}. {agent} is the agent, {*} any other text."
        }


class StoreForm(forms.Form):
    """Name of a new store; the form of its kind has its settings."""

    name = forms.SlugField(
        max_length=64,
        widget=forms.TextInput({"class": "form-control", "autocomplete": "off"}),
        help_text="Permanent short name: letters, digits, hyphens. Shown in lists and addresses.",
    )
    sessions_table = forms.CharField(
        max_length=127, initial="agent_sessions", widget=forms.TextInput({"class": "form-control mono"})
    )
    messages_table = forms.CharField(
        max_length=127, initial="agent_messages", widget=forms.TextInput({"class": "form-control mono"})
    )
    timezone = forms.CharField(
        label="Time zone of the agents",
        max_length=64,
        initial="UTC",
        widget=forms.TextInput({"class": "form-control"}),
        help_text="Time zone of timestamps that the agents store without a zone, such as Europe/Riga.",
    )

    def __init__(
        self, kind: StoreKind, data: QueryDict | None = None, initial: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(data, initial=dict(initial or {}))
        if not kind.has_tables:
            del self.fields["sessions_table"], self.fields["messages_table"]
        if not kind.has_zone:
            del self.fields["timezone"]


def settings_form(
    kind: StoreKind, data: QueryDict | None = None, initial: Mapping[str, str] | None = None
) -> forms.Form:
    """Form of the settings of a kind, styled for a page. `initial` may contain other values; they are ignored."""
    form = kind.form(data, initial=dict(initial or {}))
    for field in form.fields.values():
        is_choice = isinstance(field, forms.ChoiceField)
        field.widget.attrs |= {"class": "form-select" if is_choice else "form-control", "autocomplete": "off"}
    return form


class EncryptionForm(forms.Form):
    """Key with which the agents of a store encrypt."""

    key = forms.ChoiceField(required=False, widget=select())
    ttl = forms.IntegerField(
        label="Lifetime of encrypted items",
        required=False,
        min_value=1,
        widget=forms.NumberInput({"class": "form-control"}),
        help_text="In seconds: the ttl that the agents give to EncryptedSession; its default is 600. Leave empty if"
        " unknown: expired items cannot be purged then.",
    )
    session_ids = forms.CharField(
        required=False,
        max_length=300,
        widget=forms.TextInput({"class": "form-control mono", "spellcheck": "false", "autocomplete": "off"}),
        help_text="Only if EncryptedSession uses a different session ID than the store: sealed:{id} -> {id}",
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
        field.choices = [("", "no key; encrypted items cannot be read"), *((name, name) for name in sorted(names))]


class RegisterForm(forms.Form):
    """Ids of sessions that their store cannot list."""

    MOST = 500
    """Maximum number of ids of one request."""

    ids = forms.CharField(
        label="IDs, one per line",
        strip=False,
        widget=forms.Textarea(
            {"class": "form-control mono", "rows": "4", "spellcheck": "false", "autocomplete": "off"}
        ),
        error_messages={"required": "Enter the IDs, one per line."},
    )

    def clean_ids(self) -> list[str]:
        ids = [line for line in str(self.cleaned_data["ids"]).splitlines() if line.strip()]
        if not ids:
            raise forms.ValidationError("Enter the IDs, one per line.")
        if len(ids) > self.MOST:
            raise forms.ValidationError(
                f"You entered {len(ids):,} IDs; the maximum is {self.MOST}. For more, use the command"
                " register_sessions."
            )
        return ids


class RevealForm(forms.Form):
    """Reason for revealing masked values."""

    reason = reason_field(RevealReason, required="Choose a reason. It is recorded with the reveal.")


class RedactForm(forms.Form):
    """Text to redact, and the reason."""

    text = forms.CharField(
        label="Text to redact",
        help_text="Exact text, including capitals and spaces. All JSON spellings of it are found, also in "
        "arguments and outputs.",
        required=False,
        strip=True,
        widget=forms.Textarea(
            {"class": "form-control mono", "rows": 3, "spellcheck": "false", "autocomplete": "off", "autofocus": True}
        ),
    )
    reason = reason_field(RedactReason, required="Choose a reason. It is recorded with the redaction.")
    explanation = forms.CharField(
        label="Explanation",
        help_text="Stored with the audit event; can be erased. Do not repeat the text here.",
        max_length=500,
        required=False,
        widget=lines(),
    )
    takes_compactions = forms.BooleanField(required=False, widget=forms.CheckboxInput({"class": "form-check-input"}))
    typed = forms.CharField(label="Confirmation", required=False, max_length=40, widget=confirmation_input())

    def __init__(self, *given: Any, is_item: bool, **named: Any) -> None:
        super().__init__(*given, **named)
        self.is_item = is_item
        if is_item:
            self.fields["text"].label = "Text to redact (optional)"
            self.fields["text"].help_text = "Leave empty to redact all text of the item."

    def clean_text(self) -> str:
        text = str(self.cleaned_data["text"])
        if not text and self.is_item:
            return ""
        try:
            return TextToRedact.parse(text).text
        except InvalidText as problem:
            raise forms.ValidationError(str(problem) if text else "Enter the text.") from problem

    def request_by(self, user: User, preview: RedactionPreview) -> RedactionRequest:
        given = {**self.cleaned_data, "reason": RedactReason(self.cleaned_data["reason"])}
        return RedactionRequest(**given, by=user, preview=preview)


class RedactionApprovalForm(ShownForm):
    """The confirmation of the second person."""

    typed = forms.CharField(
        label="Confirmation",
        max_length=40,
        widget=confirmation_input(),
        error_messages={"required": "Type the confirmation."},
    )
