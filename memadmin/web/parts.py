"""Parts of pages that stand there many times, such as the rows of a list, or on every page: Jinja2, in `parts/`.

Jinja2 makes Python functions of its templates, which is what a hundred rows take. Parts have the filters of every page
(`templatetags.memadmin`) and those of its tags that are functions, and know nothing but what they are given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

import markupsafe
from django.template.defaultfilters import capfirst, pluralize, truncatechars
from django.utils.safestring import SafeString, mark_safe
from jinja2 import Environment, StrictUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension
from jinja2.runtime import Context
from markupsafe import Markup

from memadmin.web.addresses import quoted
from memadmin.web.hostile import write_out_invisible
from memadmin.web.navigation import address_of
from memadmin.web.templatetags.memadmin import badge, icon, register, tagx


class PlainContext(Context):
    """Calls what a part names as it is. Jinja2 looks each time whether that wants the context; nothing of ours does."""

    def call(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Any:
        # Of the loop or block that the call stands in: for functions that want the context.
        named.pop("_loop_vars", None)
        named.pop("_block_vars", None)
        return function(*args, **named)


def written(value: Any) -> str:
    """A value as it stands in a page: escaped unless it is safe."""
    kind = type(value)
    if kind is str:
        return escape(value)
    if kind is SafeString or kind is Markup:
        return value  # type: ignore[no-any-return]  # either is a str
    return markupsafe.escape(value)


class PartCompiler(CodeGenerator):
    """Has each value written by `written`, which takes a third of what the escaping takes that Jinja2 writes for it.

    Most values are plain text, of which Jinja2 makes a safe one each, only to join them.
    """

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if frame.eval_ctx.autoescape and not frame.eval_ctx.volatile and finalize.src is None:
            self.write("environment.written(")
        else:
            super()._output_child_pre(node, frame, finalize)


class WithoutIndents(Extension):
    """Leaves the spaces out that parts are indented with: a quarter of a list, and what is shown has its own."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"^[ \t]+", "", source, flags=re.MULTILINE)


def environment(**options: Any) -> Environment:
    """For Django's own backend, which escapes whatever is not marked safe. A name that is not there is an error."""
    options |= {"undefined": StrictUndefined, "extensions": [WithoutIndents], "trim_blocks": True}
    parts = Environment(**options)
    # Python's own: Jinja2's would look for a member of that name as well, and a page has a thousand points.
    parts.getattr = getattr  # type: ignore[assignment,method-assign]
    parts.code_generator_class, parts.written = PartCompiler, written  # type: ignore[attr-defined]
    # Unlike those of Django's templates, what parts show as text is text.
    parts.context_class = PlainContext
    parts.filters.update(register.filters, visible=write_out_invisible, quoted=quoted)
    parts.filters.update(capfirst=capfirst, pluralize=pluralize, truncatechars=truncatechars)
    parts.globals.update(icon=icon, badge=badge, tagx=tagx, address_of=address_of, csrf_field=csrf_field)
    return parts


def csrf_field(token: str) -> SafeString:
    """What `{% csrf_token %}` is in a page, of the token that the part was given."""
    # It is letters and digits.
    return mark_safe(f'<input type="hidden" name="csrfmiddlewaretoken" value="{token}">')
