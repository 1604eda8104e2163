"""Forms of retention policies: a new version, reasons, the approval, and the session to explain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.crypto import constant_time_compare, salted_hmac

from memadmin.retention.models import PolicyVersion, RetentionPolicy
from memadmin.retention.policies.comparing import LABELS, words
from memadmin.retention.policies.lengths import MOST, Unit
from memadmin.retention.policies.rules import SCOPE, Action
from memadmin.retention.targets.base import RetentionTarget, all_targets, target_named
from sessions_app.models import SessionStore, SubjectKind

ANY = ("", "any")
TEXTS = ("session_pattern", "agent", "label")
EVERYTHING = "*"


def text(**attributes: str) -> forms.TextInput:
    return forms.TextInput({"class": "form-control", "autocomplete": "off", "spellcheck": "false", **attributes})


def select(**attributes: str) -> forms.Select:
    return forms.Select({"class": "form-select", **attributes})


def count() -> forms.NumberInput:
    return forms.NumberInput({"class": "form-control num-input", "min": "1"})


def lines(rows: int = 2) -> forms.Textarea:
    return forms.Textarea({"class": "form-control", "rows": rows})


def capital(label: str) -> str:
    return label[:1].upper() + label[1:]


def applies(target: RetentionTarget, name: str) -> bool:
    """Whether a field of the scope can narrow a policy about this target."""
    return name in target.conditions and (name not in ("kind", "status") or name in target.choices)


UNITS = [("", ""), *Unit.choices]
WHOLE_NUMBER = {"invalid": "Enter a whole number."}


class PolicyForm(forms.Form):
    """What a version of a policy says. The target decides which other fields apply, and their choices.

    Fields that do not apply are not shown, and a value in one of them is an error: without it the policy would be
    about more than was meant.
    """

    name = forms.CharField(
        max_length=80,
        widget=text(),
        help_text="For people, such as “Closed tickets”. It does not change later.",
        error_messages={"required": "A policy needs a name."},
    )
    target = forms.ChoiceField(
        label="What",
        widget=select(),
        error_messages={"invalid_choice": "There is no such kind of data.", "required": "Choose what it is about."},
    )
    store = forms.CharField(required=False, max_length=64, widget=select())
    session_pattern = forms.CharField(
        label="Session ID",
        required=False,
        max_length=300,
        widget=text(),
        help_text="* stands for any text: ticket_*",
    )
    agent = forms.CharField(required=False, max_length=200, widget=text())
    label = forms.CharField(required=False, max_length=50, widget=text())
    subject_kind = forms.CharField(required=False, label="Kind of subject", widget=select())
    is_encrypted = forms.CharField(required=False, label="Encrypted", widget=select())
    kind = forms.CharField(required=False, widget=select())
    status = forms.CharField(required=False, widget=select())
    action = forms.CharField(label="Then", widget=select(), error_messages={"required": "Choose what happens then."})
    length_count = forms.IntegerField(label="After", required=False, widget=count(), error_messages=WHOLE_NUMBER)
    length_unit = forms.ChoiceField(
        required=False,
        choices=UNITS,
        widget=select(**{"aria-label": "Unit of the length"}),
        error_messages={"invalid_choice": "A length is in days, months or years."},
    )
    clock = forms.CharField(label="Counted from", widget=select(), error_messages={"required": "Choose a clock."})
    minimum_count = forms.IntegerField(
        label="Legal minimum", required=False, widget=count(), error_messages=WHOLE_NUMBER
    )
    minimum_unit = forms.ChoiceField(
        required=False,
        choices=UNITS,
        widget=select(**{"aria-label": "Unit of the legal minimum"}),
        error_messages={"invalid_choice": "A legal minimum is in days, months or years."},
    )
    minimum_reference = forms.CharField(
        label="Reference of the minimum",
        required=False,
        max_length=300,
        widget=text(),
        help_text="The law or the contract, such as “§ 147 AO”. Nothing that the policy is about goes before.",
    )
    note = forms.CharField(required=False, max_length=500, widget=lines())
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
        if policy is not None:
            del self.fields["name"]
        self.fields["reason"].required = needs_reason
        targets = [target_named("sessions")] if self.is_default else all_targets()
        self.offer("target", [(target.name, target.title) for target in targets])
        self.about = self.chosen_target(targets)
        self.offer("clock", list(self.about.clocks.items()))
        self.offer("action", [(action.value, action.label) for action in (*self.about.actions, Action.KEEP)])
        self.offer("store", [ANY, *((name, name) for name in store_names())])
        self.offer("subject_kind", [ANY, *SubjectKind.choices])
        self.offer("is_encrypted", [ANY, ("yes", "yes"), ("no", "no")])
        for name in ("kind", "status"):
            self.offer(name, [ANY, *self.about.choices.get(name, ())])

    def offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        """Choices of a select. Fields of text have them in their widget alone, to say in a sentence what is wrong."""
        shown = [(value, capital(str(label))) for value, label in choices]
        field = self.fields[name]
        if isinstance(field, forms.ChoiceField):
            field.choices = shown
        else:
            field.widget.choices = shown

    def chosen_target(self, targets: list[RetentionTarget]) -> RetentionTarget:
        """The target in the data or the first values; the first one if there is none of that name."""
        wanted = str(self.data.get("target", "") if self.is_bound else self.initial.get("target", ""))
        return next((target for target in targets if target.name == wanted), targets[0])

    def scope_fields(self) -> list[forms.BoundField]:
        """Fields that narrow it, of this target."""
        return [] if self.is_default else [self[name] for name in SCOPE if applies(self.about, name)]

    # --- checks -------------------------------------------------------------------------------------------------------

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if RetentionPolicy.objects.filter(name=name).exists():
            raise forms.ValidationError(
                "There is a policy with this name already. Choose another name, or change that policy."
            )
        return name

    def clean_store(self) -> str:
        return self.one_of("store", store_names(), "There is no store with this name.")

    def clean_subject_kind(self) -> str:
        return self.one_of("subject_kind", SubjectKind.values, "A subject is a user, project or tenant.")

    def clean_is_encrypted(self) -> str:
        return self.one_of("is_encrypted", ["yes", "no"], "Choose yes, no or any.")

    def clean_kind(self) -> str:
        return self.one_of("kind", [value for value, _ in self.about.choices.get("kind", ())], self.has_no("kind"))

    def clean_status(self) -> str:
        return self.one_of(
            "status", [value for value, _ in self.about.choices.get("status", ())], self.has_no("status")
        )

    def clean_clock(self) -> str:
        return self.one_of("clock", self.about.clocks, self.has_no("clock"))

    def clean_action(self) -> str:
        offered = [action.value for action in (*self.about.actions, Action.KEEP)]
        names = ", ".join(Action(value).label for value in offered[:-1])
        return self.one_of(
            "action", offered, f"This action does not exist for {self.about.title.lower()}: choose {names} or keep."
        )

    def has_no(self, what: str) -> str:
        return f"{self.about.title} have no such {what}. Choose one from the list."

    def one_of(self, name: str, offered: Any, otherwise: str) -> str:
        value: str = self.cleaned_data[name]
        # What the target has not is said once, in `clean`.
        if value and value not in offered and (name not in SCOPE or applies(self.about, name)):
            raise forms.ValidationError(otherwise)
        return value

    def clean_session_pattern(self) -> str:
        pattern: str = self.cleaned_data["session_pattern"]
        if pattern and not pattern.strip(EVERYTHING):
            self.notices.append(
                "The session ID matches every session, so the field is left empty: the policy is not explicit by it."
            )
            return ""
        return pattern

    def clean(self) -> dict[str, Any]:
        values = self.cleaned_data
        if "target" in values:
            self.refuse_foreign_scope()
        self.clean_length()
        self.clean_minimum()
        if not self.errors:
            self.say_what_follows()
        return values

    def refuse_foreign_scope(self) -> None:
        for name in SCOPE:
            if self.cleaned_data.get(name) and (self.is_default or not applies(self.about, name)):
                whose = "The default policy" if self.is_default else f"A policy about {self.about.title.lower()}"
                self.add_error(
                    None, f"{whose} cannot be narrowed by “{LABELS[name]}”. Choose Update fields, and check the others."
                )

    def clean_length(self) -> None:
        values = self.cleaned_data
        action, number, unit = (values.get(name) for name in ("action", "length_count", "length_unit"))
        if action == Action.KEEP:
            if number is not None and not self.errors:
                self.notices.append("A policy that keeps has no length; it was left out.")
            values["length_count"], values["length_unit"] = None, ""
        elif action and "length_count" not in self.errors:
            self.check_length("length_count", number, unit, "Enter after how long.")

    def clean_minimum(self) -> None:
        values = self.cleaned_data
        number, reference = values.get("minimum_count"), values.get("minimum_reference", "")
        if "minimum_count" in self.errors:
            return
        if number is None:
            if reference:
                self.add_error("minimum_count", "Enter how long the legal minimum is, or remove its reference.")
            values["minimum_unit"] = ""
            return
        self.check_length("minimum_count", number, values.get("minimum_unit"), "Enter the minimum.")
        if not reference and "minimum_reference" not in self.errors:
            self.add_error("minimum_reference", "A legal minimum needs its reference: the law or the contract.")

    def check_length(self, name: str, number: int | None, unit: str | None, missing: str) -> None:
        if number is None:
            self.add_error(name, missing)
        elif number < 1:
            self.add_error(name, "The shortest length is 1 day: with less, data would go while agents write it.")
        elif not unit:
            self.add_error(name, "Choose days, months or years.")
        elif number > MOST[Unit(unit)]:
            self.add_error(
                name, f"The longest length is {MOST[Unit(unit)]:,} {unit}. To keep data for ever, choose keep."
            )

    def say_what_follows(self) -> None:
        """Notices about what is allowed, and perhaps not meant."""
        version = PolicyVersion(**self.content())
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

    # --- results ------------------------------------------------------------------------------------------------------

    def content(self) -> dict[str, Any]:
        """Columns of the version that are not empty."""
        values = {name: self.cleaned_data[name] for name in PolicyVersion.CONTENT if name in self.cleaned_data}
        if values.get("is_encrypted"):
            values["is_encrypted"] = values["is_encrypted"] == "yes"
        return {name: value for name, value in values.items() if value not in ("", None)}


def initial_of(version: PolicyVersion) -> dict[str, Any]:
    """First values of the form for a change of a policy."""
    values = {name: getattr(version, name) for name in PolicyVersion.CONTENT if name != "is_end"}
    return values | {"is_encrypted": "" if version.is_encrypted is None else words(version.is_encrypted)}


NEW_POLICY = {"length_unit": Unit.DAYS, "action": Action.DELETE, "target": "sessions"}
"""First values of a new policy."""


def store_names() -> list[str]:
    return sorted(SessionStore.objects.filter(attached_at__isnull=False).values_list("name", flat=True))


def mark_of(content: Mapping[str, Any], policy: RetentionPolicy | None) -> str:
    """What a page with a preview sends back, so that only what was previewed is proposed."""
    said = json.dumps([str(policy and policy.pk), content], sort_keys=True, default=str)
    return salted_hmac("memadmin.retention.previewed", said).hexdigest()


def is_marked(mark: str, content: Mapping[str, Any], policy: RetentionPolicy | None) -> bool:
    return constant_time_compare(mark, mark_of(content, policy))


class ReasonForm(forms.Form):
    """Why a change is stopped, or a policy ends."""

    reason = forms.CharField(max_length=500, widget=lines(), error_messages={"required": "Enter a reason."})


class ApprovalForm(forms.Form):
    """The name of the policy, typed where so much would go that it is asked for."""

    confirmation = forms.CharField(label="Name of the policy", required=False, max_length=80, strip=True, widget=text())


class ExplainForm(forms.Form):
    """The session to explain."""

    value = forms.CharField(
        label="Ticket, session ID or UUID",
        max_length=512,
        widget=text(),
        error_messages={"required": "Enter a ticket, a session ID, or the UUID in the address of the session's page."},
    )
