"""Forms of people: filters of the list, a new account, roles, and the reason of a change."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django import forms
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.auth.password_validation import validate_password
from django.db.models import Exists, OuterRef, Q, QuerySet

from memadmin import audit
from memadmin.accounts.people.listing import factors_of
from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from memadmin.web.reasons import reason_field
from memadmin.web.widgets import lines, select

TEXT = {"class": "form-control", "autocomplete": "off", "spellcheck": "false"}


class PeopleFilters(FilterForm):
    """Filters of accounts. They are not sorted by name: a cursor would show a name in the address."""

    table = ListTable(
        (
            ListColumn("account", "Account", is_fixed=True),
            ListColumn("roles", "Roles", classes="d-none d-md-table-cell"),
            ListColumn("factor", "Second factor", classes="d-none d-lg-table-cell"),
            ListColumn("signed_in", "Last sign-in", classes="d-none d-md-table-cell"),
            ListColumn("sessions", "Open sessions", classes="num d-none d-lg-table-cell"),
            ListColumn(
                "added", "Added", ("date_joined", "id"), classes="d-none d-md-table-cell", begins_descending=True
            ),
            ListColumn("state", "State", ("is_active", "id"), classes="text-end text-md-start"),
        ),
        sort="-added",
    )

    role = forms.ModelChoiceField(
        Group.objects.order_by("name"),
        required=False,
        to_field_name="name",
        empty_label="Any role",
        widget=select("Role"),
        error_messages={"invalid_choice": "There is no such role."},
    )
    state = forms.ChoiceField(
        choices=[("", "Any state"), ("active", "active"), ("invited", "never signed in"), ("off", "switched off")],
        required=False,
        widget=select("State"),
        error_messages={"invalid_choice": "There is no such state."},
    )
    factor = forms.ChoiceField(
        choices=[("", "Any second factor"), ("none", "none"), ("some", "at least one")],
        required=False,
        widget=select("Second factor"),
        error_messages={"invalid_choice": "There is no such choice for the second factor."},
    )

    def apply(self) -> QuerySet[User]:
        """Matching accounts, the newest first; none if a filter is wrong."""
        active = self.active
        people: QuerySet[User] = self.ordered(User.objects.defer("password"))
        if self.errors:
            return people.none()
        if role := active.get("role"):
            people = people.filter(groups=role)
        if state := active.get("state"):
            people = people.filter(is_active=state != "off")
        if state in ("active", "invited"):
            people = people.filter(last_login__isnull=state == "invited")
        if factor := active.get("factor"):
            has_one = Exists(factors_of(OuterRef("pk")))
            people = people.filter(has_one if factor == "some" else ~has_one)
        return people

    def spelled_out(self, name: str, value: Any) -> str:
        words = {"off": "switched off", "invited": "never signed in", "some": "at least one"}.get(str(value), value)
        return f"second factor: {words}" if name == "factor" else f"{name}: {words}"


def people_called(text: str) -> QuerySet[User]:
    """Accounts with this text in their user name, name or address, the newest first; at most 50."""
    columns = ("username", "first_name", "last_name", "email")
    condition = Q()
    for column in columns:
        condition |= Q(**{f"{column}__icontains": text})
    return User.objects.defer("password").filter(condition).order_by("-pk")[:50]


class RoleChoice(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic in its stubs only
    """Roles to tick."""

    def __init__(self) -> None:
        super().__init__(
            Group.objects.order_by("name"),
            required=False,
            widget=forms.CheckboxSelectMultiple({"class": "form-check-input"}),
            error_messages={"invalid_choice": "There is no such role.", "invalid_pk_value": "There is no such role."},
        )


class WhyField(forms.CharField):
    def __init__(self, help_text: str) -> None:
        super().__init__(
            label="Explanation",
            max_length=2_000,
            required=False,
            widget=lines(),
            help_text=help_text,
        )


class NewPersonForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in its stubs only
    """A new account: who it is for, its roles, and how the person gets in."""

    name = forms.CharField(
        max_length=150, required=False, widget=forms.TextInput(TEXT), help_text="As colleagues know the person."
    )
    roles = RoleChoice()
    way = forms.ChoiceField(
        label="Invitation",
        widget=forms.RadioSelect({"class": "form-check-input"}),
        error_messages={"invalid_choice": "Choose one of the ways.", "required": "Choose how the person gets in."},
    )
    explanation = WhyField("Shown to the second administrator and in the audit log.")
    field_order = ("username", "name", "email", "roles", "way", "explanation")

    class Meta:
        model = User
        fields = ("username", "email")
        widgets: ClassVar = {
            "username": forms.TextInput(TEXT | {"autocapitalize": "none", "autofocus": True}),
            "email": forms.EmailInput(TEXT),
        }
        labels: ClassVar = {"username": "User name", "email": "E-mail"}
        help_texts: ClassVar = {"username": "Letters, digits and @ . + - _"}
        error_messages: ClassVar = {
            "username": {"required": "Enter a user name.", "unique": "Another account has this user name."},
            "email": {"invalid": "Enter an address such as name@example.com."},
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        ways = ways_in()
        kwargs["initial"] = {"way": ways[0][0], **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)
        cast(forms.ChoiceField, self.fields["way"]).choices = ways

    def clean_username(self) -> str:
        username: str = self.cleaned_data["username"]
        # Sign-in ignores case.
        if User.objects.filter(username__iexact=username).exists():
            raise forms.ValidationError("Another account has this user name.")
        return username

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("way") in ("mail", "company") and not cleaned.get("email") and "email" not in self.errors:
            self.add_error("email", "This way in needs an address.")
        email = cleaned.get("email")
        if email and User.objects.filter(email__iexact=email).exists():
            self.add_error("email", "Another account has this address.")
        return cleaned

    @property
    def why(self) -> audit.Why:
        return audit.Why(audit.EditReason.STAFF, self.cleaned_data["explanation"])


def ways_in() -> list[tuple[str, str]]:
    """Values and labels of the ways to sign in for the first time, the preferred one first."""
    return [
        *(
            [("company", f"Signs in with {settings.OIDC_NAME}, without a password here")]
            if settings.OIDC_ISSUER
            else []
        ),
        *([("mail", "Mail a link to the address")] if settings.MAIL_SERVER else []),
        ("link", "Show a link, to hand over yourself"),
    ]


class AccountReasonForm(forms.Form):
    """Reason of a change to an account."""

    reason = reason_field(audit.EditReason)
    explanation = WhyField("Shown in the audit log.")

    @property
    def why(self) -> audit.Why:
        return audit.Why(self.cleaned_data["reason"], self.cleaned_data["explanation"])


class RolesForm(AccountReasonForm):
    """The roles of an account."""

    roles = RoleChoice()
    field_order = ("roles", "reason", "explanation")


class PasswordForm(forms.Form):
    """The password that an invited person chooses."""

    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput({"class": "form-control", "autocomplete": "new-password"}),
        error_messages={"required": "Choose a password."},
        help_text="At least 8 characters; not a common password, and not like your name.",
    )
    repeated = forms.CharField(
        label="Repeat the password",
        strip=False,
        widget=forms.PasswordInput({"class": "form-control", "autocomplete": "new-password"}),
        error_messages={"required": "Repeat the password."},
    )

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        validate_password(password, self.person)
        return password

    def clean(self) -> dict[str, Any]:
        password, repeated = self.cleaned_data.get("password"), self.cleaned_data.get("repeated")
        if password and repeated and password != repeated:
            self.add_error("repeated", "The two passwords differ.")
        return self.cleaned_data
