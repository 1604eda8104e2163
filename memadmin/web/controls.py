"""How forms are written into pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from django.forms.renderers import DjangoTemplates
from django.http import HttpRequest
from django.utils.safestring import SafeString, mark_safe

Widget = Mapping[str, Any]
"""What Django's widgets tell the templates about themselves."""


class ControlRenderer(DjangoTemplates):
    """Django's own, with the controls of filters written down in Python.

    Django has a template for each control, each option, and the attributes of each: for a handful of filters that takes
    as long as half a page of rows.
    """

    def render(self, template_name: str, context: dict[str, Any], request: HttpRequest | None = None) -> str:
        write = WRITTEN_HERE.get(template_name.removeprefix("django/forms/widgets/"))
        return write(context["widget"]) if write else super().render(template_name, context, request)


def written_input(widget: Widget) -> SafeString:
    value = {} if widget["value"] is None else {"value": widget["value"]}
    return mark_safe(f"<input{written({'type': widget['type'], 'name': widget['name'], **value, **widget['attrs']})}>")


def written_select(widget: Widget) -> SafeString:
    groups = (
        f'<optgroup label="{escape(str(name))}">{written_options(options)}</optgroup>'
        if name
        else written_options(options)
        for name, options, _ in widget["optgroups"]
    )
    return mark_safe(f"<select{written({'name': widget['name'], **widget['attrs']})}>{''.join(groups)}</select>")


def written_options(options: list[Widget]) -> str:
    return "".join(
        f"<option{written({'value': option['value'], **option['attrs']})}>{escape(str(option['label']))}</option>"
        for option in options
    )


def written(attributes: Mapping[str, object]) -> str:
    """True stands for an attribute without a value, False for one that is not there."""
    return "".join(
        f" {escape(name)}" if value is True else f' {escape(name)}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not False
    )


WRITTEN_HERE: dict[str, Callable[[Widget], SafeString]] = {
    "select.html": written_select,
    **dict.fromkeys(("text.html", "date.html", "hidden.html", "checkbox.html"), written_input),
}
