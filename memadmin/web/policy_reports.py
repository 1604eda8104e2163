"""Reports of Content Security Policy violations: one line in the server's log, without content.

A line contains only the violated rule and the host, because a whole address or a piece of script may contain personal
data. Anyone can send reports, so they are rate-limited before they are parsed, and nothing is stored.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

logger = logging.getLogger("memadmin.policy")

PER_MINUTE = 30
"""Reports processed by each process; further ones get the same response and are dropped."""

LARGEST_BYTES = 16_384

DIRECTIVES = frozenset(
    {
        *("default-src", "script-src", "script-src-elem", "script-src-attr", "style-src", "style-src-elem"),
        *("style-src-attr", "img-src", "font-src", "connect-src", "media-src", "object-src", "frame-src", "child-src"),
        *("worker-src", "manifest-src", "form-action", "frame-ancestors", "base-uri"),
        *("require-trusted-types-for", "trusted-types"),
    }
)
HOST = re.compile(r"[a-z0-9.:\[\]-]{1,253}", re.IGNORECASE)
OWN_WORDS = frozenset(
    {"inline", "eval", "wasm-eval", "self", "data", "blob", "trusted-types-policy", "trusted-types-sink"}
)


class Limit:
    """Rate limit: at most `per_minute` in any minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute, self.clock = per_minute, clock
        self.taken: deque[float] = deque()

    def take(self) -> bool:
        now = self.clock()
        while self.taken and self.taken[0] <= now - 60:
            self.taken.popleft()
        if len(self.taken) >= self.per_minute:
            return False
        self.taken.append(now)
        return True


limit = Limit(PER_MINUTE)


@csrf_exempt
@login_not_required
@require_POST
def policy_report(request: HttpRequest) -> HttpResponse:
    """The `report-uri` of the policy. Always 204: the sender gets no information."""
    if limit.take() and int(request.META.get("CONTENT_LENGTH") or 0) <= LARGEST_BYTES:
        for directive, blocked in violations(request.body):
            logger.warning("Content Security Policy: %s refused %s", directive, blocked)
    return HttpResponse(status=204)


def violations(body: bytes) -> list[tuple[str, str]]:
    """Rule and host of each violation in a report, in both formats of browsers."""
    try:
        reports = json.loads(body)
    except (ValueError, RecursionError):
        return []
    found: list[tuple[str, str]] = []
    for each in reports[:PER_MINUTE] if isinstance(reports, list) else [reports]:
        report: Any = each.get("csp-report") or each.get("body") if isinstance(each, dict) else None
        if isinstance(report, dict):
            directive = report.get("effective-directive") or report.get("effectiveDirective")
            blocked = report.get("blocked-uri") or report.get("blockedURL")
            found.append((directive_of(directive or report.get("violated-directive")), host_of(blocked)))
    return found


def directive_of(value: object) -> str:
    word = str(value).split(" ")[0]
    return word if word in DIRECTIVES else "an unknown rule"


def host_of(value: object) -> str:
    """The host of an address, or the browser's keyword for a source without one."""
    text = str(value or "")[:2_000]
    if text in OWN_WORDS:
        return text
    try:
        host = urlsplit(text).hostname or ""
    except ValueError:
        host = ""
    return host if HOST.fullmatch(host) else "something without a host"
