"""Forms of retention policies: a new version, reasons, the approval, and the session to explain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.crypto import constant_time_compare, salted_hmac

from memadmin.accounts.approvals.forms import ShownForm
from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies import drafts
from memadmin.retention.policies.comparing import words
from memadmin.retention.policies.lengths import Unit
from memadmin.retention.policies.rules import SCOPE, Action
from memadmin.retention.targets.base import RetentionTarget, all_targets, target_named
from memadmin.web.widgets import capital, lines, select
from sessions_app.models import SubjectKind

ANY = ("", "any")
ANY_ONE = ("", "Any")


def text(**attributes: str) -> forms.TextInput:
    return forms.TextInput({"class": "form-control", "autocomplete": "off", "spellcheck": "false", **attributes})


def count() -> forms.NumberInput:
    return forms.NumberInput({"class": "form-control num-input", "min": "1"})


def applies(target: RetentionTarget, name: str) -> bool:
    """Whether a field of the scope can narrow a policy about this target."""
    return name in target.conditions and (name not in ("kind", "status") or name in target.choices)


class PolicyForm(forms.Form):
    """Content of a version of a policy. The target decides which other fields apply, and their choices.

    Fields that do not apply are not shown, and a value in one of them is an error: without it the policy would be
    about more than was meant.
    """

    name = forms.CharField(
        widget=text(),
        help_text="For people, such as “Closed tickets”. It does not change later.",
        error_messages={"required": "A policy needs a name."},
    )
    target = forms.CharField(label="What", required=False, widget=select())
    store = forms.CharField(required=False, widget=select())
    session_pattern = forms.CharField(
        label="Session ID",
        required=False,
        widget=text(),
        help_text="* stands for any text: ticket_*",
    )
    agent = forms.CharField(required=False, widget=text())
    label = forms.CharField(required=False, widget=text())
    subject_kind = forms.CharField(required=False, label="Kind of subject", widget=select())
    is_encrypted = forms.CharField(required=False, label="Encrypted", widget=select())
    kind = forms.CharField(required=False, widget=select())
    status = forms.CharField(required=False, widget=select())
    action = forms.CharField(label="Then", required=False, widget=select())
    length_count = forms.CharField(label="After", required=False, widget=count())
    length_unit = forms.CharField(required=False, widget=select("Unit of the length"))
    clock = forms.CharField(label="Counted from", required=False, widget=select())
    minimum_count = forms.CharField(label="Legal minimum", required=False, widget=count())
    minimum_unit = forms.CharField(required=False, widget=select("Unit of the legal minimum"))
    minimum_reference = forms.CharField(
        label="Reference of the minimum",
        required=False,
        widget=text(),
        help_text="The law or the contract, such as “§ 147 AO”. No data of this policy is deleted earlier.",
    )
    note = forms.CharField(required=False, widget=lines())
    reason = forms.CharField(
        label="Reason of the change",
        max_length=500,
        widget=lines(),
        error_messages={"required": "A change needs a reason."},
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        policy: RetentionPolicy | None = None,
        needs_reason: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(data, **kwargs)
        self.policy = policy
        self.is_default = policy is not None and policy.is_default
        self.notices: list[str] = []
        self.content: dict[str, Any] = {}
        """Columns of the version that are not empty, once the form is valid."""
        if policy is not None:
            del self.fields["name"]
        self.fields["reason"].required = needs_reason
        targets = [target_named("sessions")] if self.is_default else all_targets()
        self.offer("target", [(target.name, target.title) for target in targets])
        self.about = self.chosen_target(targets)
        self.offer("clock", list(self.about.clocks.items()))
        self.offer("action", [(action.value, action.label) for action in (*self.about.actions, Action.KEEP)])
        for name in ("length_unit", "minimum_unit"):
            self.fields[name].widget.choices = Unit.choices
        self.fields["store"].widget.choices = [ANY_ONE, *((name, name) for name in sorted(drafts.known_stores()))]
        self.offer("subject_kind", [ANY, *SubjectKind.choices])
        self.offer("is_encrypted", [ANY, ("yes", "yes"), ("no", "no")])
        for name in ("kind", "status"):
            self.offer(name, [ANY, *self.about.choices.get(name, ())])

    def offer(self, name: str, choices: Iterable[tuple[Any, Any]]) -> None:
        """Choices of a select. That the value is one of them is checked in `drafts`, with a sentence."""
        widget = self.fields[name].widget
        assert isinstance(widget, forms.Select)
        widget.choices = [(value, capital(str(label))) for value, label in choices]

    def chosen_target(self, targets: list[RetentionTarget]) -> RetentionTarget:
        """The target in the data or the first values; the first one if there is none of that name."""
        wanted = str(self.data.get("target", "") if self.is_bound else self.initial.get("target", ""))
        return next((target for target in targets if target.name == wanted), targets[0])

    def scope_fields(self) -> list[forms.BoundField]:
        """Fields that narrow it, of this target."""
        return [] if self.is_default else [self[name] for name in SCOPE if applies(self.about, name)]

    # --- checks -------------------------------------------------------------------------------------------------------

    def clean_name(self) -> str:
        try:
            name = drafts.checked_name(self.cleaned_data["name"])
        except drafts.DraftError as problem:
            raise forms.ValidationError(str(problem)) from problem
        if RetentionPolicy.objects.filter(name=name).exists():
            raise forms.ValidationError(
                "There is a policy with this name already. Choose another name, or change that policy."
            )
        return name

    def clean(self) -> dict[str, Any]:
        values = {name: self.cleaned_data.get(name) for name in SENT}
        pattern = values["session_pattern"]
        if pattern and not pattern.strip("*"):
            self.notices.append(
                "The session ID matches every session, so the field is left empty: the policy is not explicit by it."
            )
            values["session_pattern"] = ""
        if values["is_encrypted"] in YES_OR_NO:
            values["is_encrypted"] = YES_OR_NO[values["is_encrypted"]]
        values |= {name: self.length_of(name) for name in ("length", "minimum")}
        if values["action"] == Action.KEEP and values["length"]:
            self.notices.append("A policy that keeps has no length; it was left out.")
            values["length"] = ""
        try:
            self.content = drafts.content_from(values, stores=drafts.known_stores(), is_default=self.is_default)
        except drafts.DraftError as problem:
            for name, sentence in problem.problems.items():
                self.add_problem(name, sentence)
        else:
            self.say_what_follows()
        return self.cleaned_data

    def length_of(self, name: str) -> str:
        """A length as drafts have it: "90 days"; empty without a number."""
        number = self.cleaned_data.get(f"{name}_count") or ""
        return f"{number} {self.cleaned_data.get(f'{name}_unit', '')}" if number else ""

    def add_problem(self, name: str, sentence: str) -> None:
        """Says it at the field, or above all of them if the field is not shown for this target."""
        field: str | None = {"length": "length_count", "minimum": "minimum_count"}.get(name, name)
        if field in self.errors:
            return
        if field in SCOPE and (self.is_default or not applies(self.about, field)):
            field = None
        self.add_error(field, sentence)

    def say_what_follows(self) -> None:
        """Notices about what is allowed, and perhaps not meant."""
        version = PolicyVersion(**self.content)
        length, minimum = version.length, version.minimum
        if minimum and length and not length.is_surely_at_least(minimum):
            self.notices.append(
                f"The legal minimum is longer than the length: nothing goes before {minimum}, although the policy says"
                f" {length}."
            )
        if minimum and not length:
            self.notices.append(
                "A policy that keeps with a legal minimum does not decide what goes: others do, after the minimum."
            )
        if length and not version.scope and not self.is_default:
            self.notices.append(f"This policy is about all {self.about.title.lower()}.")


SENT = ("target", *SCOPE, "clock", "action", "minimum_reference", "note")
YES_OR_NO = {"yes": True, "no": False}


def initial_of(version: PolicyVersion) -> dict[str, Any]:
    """First values of the form for a change of a policy."""
    values = {name: getattr(version, name) for name in PolicyVersion.CONTENT if name != "is_end"}
    values |= {name: values[name] or NEW_POLICY[name] for name in ("length_unit", "minimum_unit")}
    return values | {"is_encrypted": "" if version.is_encrypted is None else words(version.is_encrypted)}


NEW_POLICY = {"length_unit": Unit.DAYS, "minimum_unit": Unit.YEARS, "action": Action.DELETE, "target": "sessions"}
"""First values of a new policy."""


def mark_of(content: Mapping[str, Any], policy: RetentionPolicy | None) -> str:
    """Token of a preview, which its page sends back: only previewed content can be proposed."""
    said = json.dumps([str(policy and policy.pk), content], sort_keys=True, default=str)
    return salted_hmac("memadmin.retention.previewed", said).hexdigest()


def is_marked(mark: str, content: Mapping[str, Any], policy: RetentionPolicy | None) -> bool:
    return constant_time_compare(mark, mark_of(content, policy))


class ReasonForm(forms.Form):
    """Why a change is stopped, or a policy ends."""

    reason = forms.CharField(max_length=500, widget=lines(), error_messages={"required": "Enter a reason."})


class PolicyApprovalForm(ShownForm):
    """What was shown, and the name of the policy, typed where so much would go that it is asked for."""

    confirmation = forms.CharField(label="Name of the policy", required=False, max_length=80, strip=True, widget=text())


class ExplainForm(forms.Form):
    """The session to explain."""

    value = forms.CharField(
        label="Ticket, session ID or UUID",
        max_length=512,
        widget=text(),
        error_messages={"required": "Enter a ticket, a session ID, or the UUID in the address of the session's page."},
    )
