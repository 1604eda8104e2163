"""Parts of pages that stand there many times, such as the rows of a list: Jinja2, in `parts/`.

Jinja2 makes Python functions of its templates, which is what a hundred rows take. Parts have the filters of every page
(`templatetags.memadmin`) and those of its tags that are functions, and know nothing but what they are given.
"""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import pluralize
from jinja2 import Environment, StrictUndefined

from memadmin.web.addresses import quoted
from memadmin.web.templatetags.memadmin import badge, icon, register, tagx


def environment(**options: Any) -> Environment:
    """For Django's own backend, which escapes whatever is not marked safe. A name that is not there is an error."""
    parts = Environment(**{**options, "undefined": StrictUndefined}, trim_blocks=True, lstrip_blocks=True)
    parts.filters.update(register.filters, pluralize=pluralize, quoted=quoted)
    parts.globals.update(icon=icon, badge=badge, tagx=tagx)
    return parts
