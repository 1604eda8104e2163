"""Timeline of a session, built from stored items. Pure: no request, no template, no query."""

from sessions_app.timeline.build import build_timeline
from sessions_app.timeline.events import Event, Timeline
from sessions_app.timeline.findings import Finding, FindingCode, Inspector, title_of
from sessions_app.timeline.markdown import to_markdown

__all__ = [
    "Event",
    "Finding",
    "FindingCode",
    "Inspector",
    "Timeline",
    "build_timeline",
    "title_of",
    "to_markdown",
]
