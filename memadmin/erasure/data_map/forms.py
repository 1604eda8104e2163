"""Filters of the data map, and the form of the record's head."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms

from memadmin.erasure.data_map.erasers import STEPS, Eraser
from memadmin.erasure.data_map.models import ProcessingRecord
from memadmin.erasure.data_map.places import DataClass, DataKind, Location, Place
from memadmin.web.filters import FilterForm
from memadmin.web.widgets import in_sentences, lines, select

ANY_PERSONAL, ERASURE = "any", "erasure"

KINDS = [
    ("", "Any data"),
    (ANY_PERSONAL, "Any personal data"),
    *((kind.value, kind.capitalize()) for kind in DataKind),
    (DataClass.PSEUDONYM.value, "Pseudonyms"),
    (DataClass.SECRET.value, "Secrets"),
    (DataClass.NONE.value, "None"),
]
PLACES = [("", "Any place"), *((location.value, location.label) for location in Location)]
ERASERS = [
    ("", "Erased by anything"),
    (ERASURE, "An erasure request"),
    *in_sentences(Eraser.choices),
]


class DataMapFilter(FilterForm):
    """Filters of the data map. Without any: all places."""

    name = forms.CharField(
        required=False,
        max_length=100,
        widget=forms.TextInput(
            {
                "class": "form-control",
                "aria-label": "Table, column or file",
                "placeholder": "Table, column or file",
            }
        ),
        error_messages={"max_length": "A name has up to 100 characters."},
    )
    kind = forms.ChoiceField(
        choices=KINDS,
        required=False,
        widget=select("Kind of data"),
        error_messages={"invalid_choice": "This is no kind of data."},
    )
    place = forms.ChoiceField(
        choices=PLACES,
        required=False,
        widget=select("Place"),
        error_messages={"invalid_choice": "There is no such place."},
    )
    erased_by = forms.ChoiceField(
        choices=ERASERS,
        required=False,
        widget=select("Erased by"),
        error_messages={"invalid_choice": "This erases nothing here."},
    )

    def apply(self, places: tuple[Place, ...]) -> list[Place]:
        """Places that match; none if a filter has an error."""
        if self.errors:
            return []
        return [place for place in places if self.matches(place)]

    def matches(self, place: Place) -> bool:
        active = self.active
        name, kind, where, eraser = (active.get(each, "") for each in ("name", "kind", "place", "erased_by"))
        return (
            (not name or any(name.lower() in each.lower() for each in (place.name, *place.columns)))
            and (not kind or kind in place.tags or (kind == ANY_PERSONAL and place.is_personal))
            and (not where or place.location == where)
            and (
                not eraser
                or eraser in place.erasers
                or (eraser == ERASURE and not set(STEPS).isdisjoint(place.erasers))
            )
        )

    def spelled_out(self, name: str, value: Any) -> str:
        if name == "name":
            return f"name contains “{value}”"
        return super().spelled_out(name, value)


HINTS = {
    "controller": "Name and contact details of the controller, of a joint controller and of the representative.",
    "contact": "Name and contact details of the data protection officer.",
    "purpose": "What the data is processed for.",
    "subjects": "Categories of people whose data it is.",
    "recipients": "Categories of recipients, such as the model provider.",
    "third_countries": "Countries to which data is transferred, and the safeguards; or “none”.",
    "security": "General description of the technical and organisational measures.",
}


class ProcessingRecordForm(forms.ModelForm):  # type: ignore[type-arg]  # has no brackets at run time
    """Head of the record. `seen` is the version that the person changes."""

    seen = forms.DateTimeField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = ProcessingRecord
        fields = tuple(HINTS)
        help_texts = HINTS
        widgets: ClassVar = {name: lines() for name in HINTS}
