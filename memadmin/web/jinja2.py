"""The environment of the Jinja2 templates: rows of long tables and events of a timeline, in `templates/jinja2/`.

Pages, layouts and everything that appears once on a page are Django templates. Jinja2 compiles a template to Python,
which matters only where a page repeats the same markup fifty or a hundred times, so it is used only there.
"""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import pluralize
from django.urls import reverse
from jinja2 import Environment, StrictUndefined

from memadmin.web.templatetags.memadmin import badge, icon, register, tagx


def environment(**options: Any) -> Environment:
    """The environment for Django's own backend, which turns autoescape on. An undefined name is an error.

    Templates have the filters and function tags of every page (`templatetags.memadmin`), and only the variables that
    `{% jinja2 %}` passes.
    """
    templates = Environment(**options | {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True})
    templates.filters.update(register.filters, pluralize=pluralize)
    templates.globals.update(icon=icon, badge=badge, tagx=tagx, url=url)
    return templates


def url(name: str, *arguments: object) -> str:
    return reverse(name, args=arguments)
