"""Filters of the list of memories: from a query string to a queryset."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict

from memadmin.web.columns import ListColumn, ListTable
from memadmin.web.filters import FilterForm
from memadmin.web.safe_text import write_out_invisible
from memadmin.web.widgets import select
from memories_app.models import Memory
from memories_app.models.querysets import MemoryQuerySet
from sessions_app.filters import SearchField, SubjectField
from sessions_app.models import TextSearch
from sessions_app.search_syntax import ParsedSearch, Unsearchable

SHARED = "shared"


def choice_field(name: str, choices: Any) -> forms.ChoiceField:
    return forms.ChoiceField(
        choices=[("", f"Any {name}"), *((value, str(label).capitalize()) for value, label in choices)],
        required=False,
        widget=select(name.capitalize()),
        error_messages={"invalid_choice": f"“%(value)s” is not a {name} of memories."},
    )


class MemoryFilter(FilterForm):
    """Filter of the list of memories.

    `is_masked` for viewers who see masked values only: excluded words could reveal masked values, so exclusion is not
    allowed. There may be a million memories, so the only order is that of the index behind every filter.
    """

    table = ListTable(
        (
            ListColumn("memory", "Memory", is_fixed=True),
            ListColumn("status", "Status", classes="d-none d-md-table-cell"),
            ListColumn("confidence", "Confidence", classes="d-none d-lg-table-cell num"),
            ListColumn("kind", "Kind", classes="d-none d-lg-table-cell", is_extra=True),
            ListColumn("source", "Source", classes="d-none d-lg-table-cell", is_extra=True),
            ListColumn("decided", "Decided", classes="d-none d-md-table-cell", is_extra=True),
            ListColumn(
                "proposed", "Proposed", ("proposed_at", "id"), classes="d-none d-md-table-cell", begins_descending=True
            ),
        ),
        sort="-proposed",
    )
    not_saved = frozenset(
        (
            "subject",
            "search",
        )
    )

    status = choice_field("status", Memory.Status.choices)
    kind = choice_field("kind", Memory.Kind.choices)
    source = choice_field("source", Memory.Source.choices)
    whose = choice_field("subject", [(SHARED, "shared by all")])
    subject = SubjectField(required=False)
    search = SearchField(required=False)

    def __init__(self, query: QueryDict, *, is_masked: bool) -> None:
        super().__init__(query)
        self.is_masked = is_masked
        self.parsed: ParsedSearch | None = None

    def clean_search(self) -> TextSearch | None:
        search: TextSearch | None = self.cleaned_data["search"]
        if search is None:
            return None
        try:
            self.parsed = ParsedSearch.parse(search.text)
            if self.is_masked:
                self.parsed.refuse_exclusions()
        except Unsearchable as problem:
            raise forms.ValidationError(str(problem)) from problem
        return search

    def memories(self) -> MemoryQuerySet:
        """The filtered memories, before the search for words (`pages.search`)."""
        found: MemoryQuerySet = self.ordered(Memory.objects.all())
        if not self.is_valid():
            return found.none()
        active = self.active
        for name in ("status", "kind", "source"):
            if name in active:
                found = found.filter(**{name: active[name]})
        if "subject" in active:
            found = found.about(active["subject"])
        if "whose" in active:
            found = found.filter(subject__isnull=True)
        return found

    @property
    def is_sortable(self) -> bool:
        """The index of words gives the newest matches first."""
        return "search" not in self.active

    @property
    def searched(self) -> TextSearch | None:
        return self.active.get("search")

    @property
    def query_without_search(self) -> str:
        return self.query_string(without="search")

    def spelled_out(self, name: str, value: Any) -> str:
        if name == "subject":
            return f"about {write_out_invisible(value.label) or 'a subject'}"
        if name == "whose":
            return "shared by all"
        if name == "search":
            return f"words “{value.text}”"
        return super().spelled_out(name, value).lower()
