"""Hostile text in a real browser, in every place where a page shows what somebody else wrote.

No script runs, nothing is asked of a foreign host, the policy has nothing to report, and nothing leaves its card. The
last tests break a template on purpose, so that the first ones are known to notice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, cycle, islice
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils.safestring import mark_safe
from playwright.sync_api import Dialog, Page

from memadmin.web import safe_text as hostile_text
from memadmin.web.templatetags import memadmin as tags
from sessions_app.models import AgentMessage, SessionRecord, SessionStore, Subject, SubjectAlias
from sessions_app.search.remembered import MAX_CHARACTERS
from sessions_app.services.inspection import inspect_session
from sessions_app.views.window import PAGE_ITEMS
from tests.agents import add_items, assistant, attach_main_store
from tests.browser.conftest import Watch
from tests.browser.looking import settle, wait_until
from tests.hostile import CORPUS, MARKUP, items_of, parts_of, poisoned
from tests.sessions.timeline.items import EXAMPLES

SignIn: TypeAlias = Callable[..., User]

WIDTHS = (1440, 390)
WORD = "hostilecorpus"
"""Said in every session, so that a search finds them all."""


def parted(corpus: Mapping[str, str], together: int) -> list[dict[str, str]]:
    named = list(corpus.items())
    return [dict(named[start : start + together]) for start in range(0, len(named), together)]


MILLION = 1_000_000
"""More than any page shows of a text. `tests/sessions/test_timeline_page.py` has ten of them, without a browser."""

OBJECTS = [example["item"] for example in EXAMPLES if isinstance(example["item"], dict)]
RUNNING = (
    *("script", "image that fails", "style attribute", "element of a name", "half a tag", "event attribute", "htmx"),
    "javascript",
)
SPREADING = ("ansi", "bidi", "combining storm", "one long word", "nul and surrogate")
EVERYWHERE = {name: CORPUS[name] for name in (*RUNNING, *SPREADING)}
"""Texts of every way out of a place: each kind of item has them all. The others are in one kind each, by turns."""
ELSEWHERE = {name: text for name, text in CORPUS.items() if name not in EVERYWHERE}
IN_LISTS = [*parted(EVERYWHERE, 1), *parted(dict(list(ELSEWHERE.items())[::3]), 4)]
"""Texts of each row of a list: one everywhere in it, or four by turns, of a third of the others."""

numbers = count(1)

OPENED = "for (const details of document.querySelectorAll('details')) details.open = true;"

# What sticks out of its card, row or line, unless something in between scrolls or clips it; and what covers the page.
STICKING_OUT = """
() => {
  const found = [];
  const page = document.documentElement;
  if (page.scrollWidth > window.innerWidth) {
    const wide = [...document.querySelectorAll("body *")];
    const widest = wide.filter((node) => node.getBoundingClientRect().right > window.innerWidth).at(-1);
    found.push(`the page is ${page.scrollWidth} px wide: ${widest?.outerHTML.slice(0, 150)}`);
  }
  const holders = "main .card, main .tl-item, main .item-row, main td, main .head, main .alert, .toast-static, .topbar";
  for (const holder of document.querySelectorAll(holders)) {
    if (!holder.offsetParent || getComputedStyle(holder).overflowX !== "visible") continue;
    if (holder.scrollWidth <= holder.clientWidth + 2) continue;
    const edge = holder.getBoundingClientRect().right + 1;
    const inner = [...holder.querySelectorAll("*")].filter((node) => node.getBoundingClientRect().right > edge);
    found.push(`${inner.at(-1)?.outerHTML.slice(0, 150)} sticks out of ${holder.className || holder.tagName}`);
  }
  const middle = document.elementFromPoint(window.innerWidth / 2, window.innerHeight / 2);
  if (middle && !middle.closest("main, #toasts, .page-wrapper, body > div, #container") && middle !== document.body)
    found.push(`${middle.outerHTML.slice(0, 200)} covers the page`);
  return found;
}
"""


class Trap:
    """Notices in the page what hostile text would do there: run, load, or trip the policy."""

    def __init__(self, page: Page, watch: Watch) -> None:
        self.page, self.watch = page, watch
        self.sprung: list[str] = []
        self.problems: list[str] = []
        self.widths = WIDTHS
        page.expose_function("hostile", lambda *what: self.sprung.append(f"a script ran: {what}"))
        page.expose_function("violated", lambda what: self.sprung.append(f"the policy was violated: {what}"))
        page.on("dialog", self.see_dialog)
        page.on("popup", lambda popup: self.sprung.append(f"a window opened: {popup.url}"))
        page.on("framenavigated", self.see_navigation)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => violated("
            "`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));"
        )

    def see_dialog(self, dialog: Dialog) -> None:
        self.sprung.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    def see_navigation(self, frame: Any) -> None:
        if not frame.url.startswith((self.watch.own_address, "about:blank")):
            self.sprung.append(f"went to {frame.url}")

    def visit(self, path: str, about: str = "") -> None:
        """Opens a page and looks around on it; `about` names its texts, where they are few."""
        self.page.goto(path)
        self.look_around(f"{path} ({about})" if about else path)

    def look_around(self, path: str) -> None:
        """On the page that is there, with everything on it opened, wide and narrow; notes whatever happens on it."""
        self.page.evaluate(OPENED)
        # It is in one of the widths already, as the page before has left it.
        for width in self.widths:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.sprung += [f"{width}: {what}" for what in self.page.evaluate(STICKING_OUT)]
        self.widths = self.widths[::-1]
        self.page.mouse.move(300, 400)
        self.page.keyboard.press("Tab")
        settle(self.page)
        if self.page.locator("main").count() != 1:
            self.sprung.append("it is not a page of ours any longer")
        self.note(path)

    def note(self, path: str) -> None:
        self.problems += [f"{path}: {what}" for what in [*self.sprung, *self.watch.problems]]
        self.sprung, self.watch.problems = [], []

    def missing(self, noticed: Mapping[str, str]) -> list[str]:
        """Names of texts of which the page that is there has not told the problem, when it has had time to."""

        def without_problem() -> list[str]:
            self.note(self.page.url)
            return [name for name, problem in noticed.items() if not any(problem in each for each in self.problems)]

        wait_until(self.page, lambda: not without_problem())
        return without_problem()

    def check(self) -> None:
        """Nothing happened on any of the pages."""
        # A reporter of tests may not take half a character for text.
        assert not self.problems, "\n".join(self.problems).encode(errors="backslashreplace").decode()


@pytest.fixture
def trap(page: Page, watch: Watch) -> Trap:
    return Trap(page, watch)


def storable(text: str, length: int) -> str:
    """As much of a text as a column can hold."""
    return text.replace("\x00", "").encode(errors="ignore").decode()[:length]


def with_call_of(number: int, item: dict[str, Any]) -> dict[str, Any]:
    """A call has the output of its own text, and not of another one's in the same session."""
    return {**item, "call_id": f"{number}-{item['call_id']}"} if "call_id" in item else item


def written_items(examples: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Items of an agent: of each kind one for each of the texts of EVERYWHERE, and some for others; and each of the
    examples, with a text that would run and with one that would spread.
    """
    for number, (name, text) in enumerate(CORPUS.items()):
        items = [with_call_of(number, item) for item in items_of(text)]
        yield from items if name in EVERYWHERE else [items[number % len(items)]]
    for item, *names in zip(examples, cycle(RUNNING), cycle(SPREADING), strict=False):
        yield from (poisoned(item, CORPUS[name]) for name in names)


def write_session(named: Mapping[str, str], *items: dict[str, Any]) -> SessionRecord:
    """A session with each text in a message, the items, and the texts by turns in its id and all that the registry
    knows of it.
    """
    number = next(numbers)
    texts = list(named.values())
    session_id = f"{number}:{storable(texts[0], 300)}"
    add_items(session_id, *(f"{WORD} {text}" for text in texts), *items)
    in_key, in_ticket, in_agent = islice(cycle(texts), 1, 4)
    subject = Subject.objects.create()
    SubjectAlias.objects.create(subject=subject, key=f"{number} {storable(in_key, 400)}", is_primary=True)
    columns = {
        "subject": subject,
        "ticket": storable(in_ticket, 200),
        "agent": storable(in_agent, 200),
        "labels": [storable(text, 50) for text in texts],
    }
    SessionRecord.objects.filter(session_id=session_id).update(**columns)
    record = SessionRecord.objects.select_related("store").get(session_id=session_id)
    inspect_session(record)
    return record


def write_all(rows: Iterable[Mapping[str, str]]) -> list[SessionRecord]:
    """A session for each group of texts."""
    attach_main_store()
    return [write_session(texts) for texts in rows]


@pytest.mark.parametrize(
    "examples", [OBJECTS[::4], pytest.param(OBJECTS, marks=pytest.mark.release)], ids=["some", "all"]
)
def test_timelines_are_sound(
    kept_main_store: SessionStore, trap: Trap, sign_in: SignIn, examples: Iterable[dict[str, Any]]
) -> None:
    """As many items on a page as it takes: it costs more than what is on it."""
    sign_in("support")
    items = list(written_items(examples))
    named = parted(CORPUS, 14)
    share = -(-len(items) // len(named))
    for place, texts in enumerate(named):
        record = write_session(texts, *items[place * share : (place + 1) * share])
        assert AgentMessage.objects.filter(session_id=record.session_id).count() <= PAGE_ITEMS
        trap.visit(record.get_absolute_url(), about=", ".join(texts))
    trap.check()


def test_markdown_is_sound(kept_main_store: SessionStore, trap: Trap, sign_in: SignIn) -> None:
    sign_in("support")
    add_items("s", *[assistant(text) for text in CORPUS.values()])
    trap.visit(f"{SessionRecord.objects.get().get_absolute_url()}?form=markdown")
    trap.check()


@pytest.mark.release
def test_everything_around_timelines_is_sound(
    agent_tables: None, trap: Trap, sign_in: SignIn, page: Page, client: Client
) -> None:
    person = sign_in("support", "compliance")
    records = write_all(IN_LISTS)
    client.force_login(person)
    searched = client.post(reverse("sessions:search"), {"q": WORD})["Location"]
    lists = [reverse("sessions:overview"), reverse("sessions:list"), reverse("sessions:subjects")]
    for path in [*lists, f"{searched}messages/"]:
        while path:
            trap.visit(path)
            older = page.locator("nav.pager a", has_text="Older")
            path = (older.first.get_attribute("href") or "") if older.count() else ""
    # One who is known by all of the texts, and has every sixth session.
    known_as_all = records[0].subject
    assert known_as_all
    for number, text in enumerate(CORPUS.values()):
        SubjectAlias.objects.create(subject=known_as_all, key=f"also {number} {storable(text, 400)}")
    SessionRecord.objects.filter(pk__in=[record.pk for record in records[::6]]).update(subject=known_as_all)
    trap.visit(known_as_all.get_absolute_url())
    for message in items_with_all_texts(records[0]):
        trap.visit(reverse("sessions:item", args=[records[0].pk, message]))
    trap.visit(reverse("audit:list"))
    trap.check()


def items_with_all_texts(record: SessionRecord) -> list[int]:
    """Stored ids of a message and of a call, with every text in each."""
    newest = AgentMessage.objects.order_by("pk").last()
    assert newest
    add_items(
        record.session_id,
        {"role": "user", "content": [part for text in CORPUS.values() for part in parts_of(text)]},
        {
            "type": "function_call",
            "call_id": "all",
            "name": "look_up",
            "arguments": json.dumps({t: t for t in CORPUS.values()}),
        },
    )
    return list(AgentMessage.objects.filter(pk__gt=newest.pk).order_by("pk").values_list("pk", flat=True))


@pytest.mark.release
def test_raw_admin_is_sound(agent_tables: None, trap: Trap, sign_in: SignIn, page: Page) -> None:
    person = sign_in("administrator")
    person.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    (record,) = write_all([dict(list(CORPUS.items())[::6])])
    message, _ = items_with_all_texts(record)
    rows = {"agentmessage": message, "sessionrecord": record.pk, "subject": record.subject_id}
    for model, pk in rows.items():
        path = reverse(f"admin:sessions_app_{model}_change", args=[pk])
        trap.visit(path)
        assert path in page.url
        trap.visit(reverse(f"admin:sessions_app_{model}_changelist"))
    trap.check()


def test_what_people_type_is_sound(
    kept_main_store: SessionStore, trap: Trap, sign_in: SignIn, page: Page, watch: Watch
) -> None:
    """Searches, filters, labels and their toasts."""
    watch.expect("status of 4")
    sign_in("support")
    add_items("s", "tea")
    record = SessionRecord.objects.get()
    texts = list(MARKUP.values())[::3]
    halves = [" ".join(texts[:5]), " ".join(texts[5:])]
    assert all(len(f"tea {half}") <= MAX_CHARACTERS for half in halves)
    page.goto(record.get_absolute_url())
    for half in halves:
        page.get_by_label("Search in this session").fill(f"tea {half}")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        trap.look_around(page.url)
    filtered = dict(zip(("ticket", "agent", "label"), texts, strict=False))
    for query in (filtered, {"store": texts[3], "days": texts[4]}):
        trap.visit(reverse("sessions:list", query=query))
    for half in halves:
        page.get_by_label("Find a subject, ticket or session ID").fill(half)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        trap.look_around(page.url)
    trap.check()


@pytest.mark.release
def test_a_megabyte_and_a_deep_value_are_sound(kept_main_store: SessionStore, trap: Trap, sign_in: SignIn) -> None:
    sign_in("support")
    deep = '{"a":[' * 90 + '"<img src=x onerror=hostile(1)>"' + "]}" * 90
    for text in (f"{MARKUP['script']} " * (MILLION // 40), deep):
        add_items("s", {"type": "function_call_output", "call_id": "a", "output": text})
    add_items("s", "x" * MILLION)
    record = SessionRecord.objects.get()
    trap.visit(record.get_absolute_url())
    for message in AgentMessage.objects.order_by("pk").values_list("pk", flat=True):
        trap.visit(reverse("sessions:item", args=[record.pk, message]))
    trap.check()


def test_files_are_no_pages(agent_tables: None, operator: Client) -> None:
    (record,) = write_all([{"script": MARKUP["script"]}])
    names: dict[str, list[Any]] = {"export-jsonl": [], "export-markdown": [], "item": [AgentMessage.objects.get().pk]}
    for name, more in names.items():
        answer = operator.get(reverse(f"sessions:{name}", args=[record.pk, *more]), {"download": ""})
        assert answer["Content-Disposition"].startswith("attachment"), name
        assert answer["X-Content-Type-Options"] == "nosniff", name
        assert "html" not in answer["Content-Type"], name


def test_a_title_is_not_reordered(agent_tables: None, trap: Trap, sign_in: SignIn, page: Page) -> None:
    (record,) = write_all([{"bidi": CORPUS["bidi"]}])
    sign_in("support")
    page.goto(record.get_absolute_url())
    assert not set(page.title()) & set("\u202e\u2066\u2067\u2068\u202d")


# --- broken on purpose: each of these has to be noticed -------------------------------------------------------------


def unescaped(text: str, pattern: Any) -> str:
    return mark_safe(text)


def test_a_template_that_marks_text_safe_is_noticed(
    agent_tables: None, trap: Trap, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostile_text, "mark_matches", unescaped)
    sign_in("support")
    noticed = {
        "image that fails": "script-src-attr",
        "script": "script-src-elem inline",
        "image": "foreign request: https://elsewhere.example/image.png",
        "style attribute": "style-src-attr",
        "htmx to ourselves": "a dialog opened",
        "base": "base-uri",
    }
    (record,) = write_all([{name: CORPUS[name] for name in noticed}])
    trap.visit(record.get_absolute_url())
    assert trap.missing(noticed) == []


def test_markdown_that_lets_html_through_is_noticed(
    agent_tables: None, trap: Trap, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags, "render_markdown", lambda text, *_: mark_safe(text))
    sign_in("support")
    (record,) = write_all([{"image that fails": CORPUS["image that fails"]}])
    trap.visit(f"{record.get_absolute_url()}?form=markdown")
    assert trap.missing({"image that fails": "script-src-attr"}) == []
    with pytest.raises(AssertionError):
        trap.check()


def test_a_script_that_runs_is_noticed_without_the_policy_too(
    agent_tables: None, trap: Trap, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(hostile_text, "mark_matches", unescaped)
    settings.CONTENT_SECURITY_POLICY = None
    sign_in("support")
    (record,) = write_all([{"script": MARKUP["script"]}])
    trap.visit(record.get_absolute_url())
    assert trap.missing({"script": "a script ran"}) == []
    with pytest.raises(AssertionError, match="a script ran"):
        trap.check()


def test_a_long_word_that_is_not_wrapped_is_noticed(
    agent_tables: None, trap: Trap, sign_in: SignIn, page: Page
) -> None:
    sign_in("support")
    (record,) = write_all([{"one long word": CORPUS["one long word"]}])
    page.route("**/app*.css", lambda route: route.fulfill(body="", content_type="text/css"))
    trap.visit(record.get_absolute_url())
    with pytest.raises(AssertionError, match=r"sticks out|px wide"):
        trap.check()
