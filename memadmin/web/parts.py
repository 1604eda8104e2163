"""Parts of pages that stand there many times, such as the rows of a list: Jinja2, in `parts/`.

Jinja2 makes Python functions of its templates, which is what a hundred rows take. Parts have the filters of every page
(`templatetags.memadmin`) and those of its tags that are functions, and know nothing but what they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.template.defaultfilters import pluralize
from jinja2 import Environment, StrictUndefined
from jinja2.runtime import Context

from memadmin.web.addresses import quoted
from memadmin.web.hostile import write_out_invisible
from memadmin.web.templatetags.memadmin import badge, icon, register, tagx


class PlainContext(Context):
    """Calls what a part names as it is. Jinja2 looks each time whether that wants the context; nothing of ours does."""

    def call(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        # Of the loop or block that the call stands in: for functions that want the context.
        named.pop("_loop_vars", None)
        named.pop("_block_vars", None)
        return function(*args, **named)


def environment(**options: Any) -> Environment:
    """For Django's own backend, which escapes whatever is not marked safe. A name that is not there is an error."""
    parts = Environment(**{**options, "undefined": StrictUndefined}, trim_blocks=True, lstrip_blocks=True)
    # Python's own: Jinja2's would look for a member of that name as well, and a page has a thousand points.
    parts.getattr = getattr  # type: ignore[assignment,method-assign]
    # Unlike those of Django's templates, what parts show as text is text.
    parts.context_class = PlainContext
    parts.filters.update(register.filters, visible=write_out_invisible, pluralize=pluralize, quoted=quoted)
    parts.globals.update(icon=icon, badge=badge, tagx=tagx)
    return parts
