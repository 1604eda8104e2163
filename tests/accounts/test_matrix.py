"""Every URL, tried by every role with both methods, on objects that are there, unknown, and somebody else's."""

from __future__ import annotations

import ast
import logging
import re
import uuid
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.http import HttpResponse
from django.template.backends.django import Template
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.grants import services as grants
from memadmin.accounts.models import RoleRequest
from memadmin.accounts.role_requests.services import AccountRight, request_role
from memadmin.accounts.session_store import SessionStore, digest_of
from memadmin.audit.models import AuditEvent
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.home.models import SavedView
from memadmin.rehearsal import Rehearsal
from memadmin.runs.models import Run
from memadmin.web import errors
from memories_app.models import Recall, Signal
from sessions_app.audit_events import RedactReason
from sessions_app.models import AgentMessage, AgentSession, SessionIdPattern, SubjectAlias, WatchedPath
from sessions_app.redaction.services import RedactionRequest, redact_in_session
from sessions_app.search.remembered import remember_search
from sessions_app.services.unlocking import request_unlocking
from tests.accounts.factors import let_proof_age, with_app
from tests.accounts.matrix import (
    DECIDERS,
    DECISIONS,
    DOOR,
    EVERYBODY,
    FRESH_PROOF,
    LEADS_ON,
    LOCKED,
    MATRIX,
    OUTSIDER,
    RAW_EDITOR,
    SAME,
    STRANGER,
    SUPERUSER,
    SUPPORT,
    Rule,
)
from tests.agents import drop_agent_tables, make_agent_tables
from tests.builders import make_session, make_store, make_subject
from tests.erasure.batches import csv_of, uploaded
from tests.erasure.builders import make_request
from tests.memories.builders import approval_rule, one_of_each
from tests.memories.builders import decided as a_decision
from tests.memories.queue import waiting
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.retention.policies import in_force, proposed
from tests.web.test_headers import POLICY

REFUSALS = (403, 404, 405)

LOGIN = re.compile(r"/(accounts|admin)/login/\?next=")

WORDS = "tea leaves nobody may see by accident"


def names_of(resolver: URLResolver, namespaces: tuple[str, ...] = ()) -> Iterator[str]:
    """Every URL by its name, else by its own part of the route."""
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from names_of(pattern, (*namespaces, *([pattern.namespace] if pattern.namespace else [])))
        elif isinstance(pattern, URLPattern):
            yield ":".join([*namespaces, pattern.name or str(pattern.pattern)])


def test_every_url_is_in_the_matrix_and_nothing_else_is() -> None:
    there = set(names_of(get_resolver())) - LEADS_ON - set(SAME)
    assert there - set(MATRIX) == set(), "say in tests/accounts/matrix.py who may use these"
    assert set(MATRIX) - there == set()


def test_names_of_django_allauth_lead_to_our_pages() -> None:
    assert {reverse(name) for name in SAME} == {reverse(name) for name in SAME.values()}


@dataclass
class World:
    """One of everything, and for what belongs to a person one of somebody else's."""

    here: dict[str, Any]
    not_here: dict[str, Any] = field(default_factory=dict)
    somebody_elses: dict[str, Any] = field(default_factory=dict)
    locked: dict[str, Any] = field(default_factory=dict)
    object_ids: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def tables(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The agents' tables, there before a test's transaction begins and until after it ended.

    For the module, because what is made for a test alone is made, and taken away, within its transaction.
    """
    with django_db_blocker.unblock():
        make_agent_tables()
    yield
    with django_db_blocker.unblock():
        drop_agent_tables()


@pytest.fixture(scope="module")
def world(tables: None, shared_world: None) -> World:
    """One of everything; what belongs to a person is that of an outsider, to whom each test gives a role."""
    return make_world(person())


def somebody(role: str) -> User:
    """The person to whom the world belongs, or a new one, with this role."""
    user = User.objects.filter(username="outsider").first() or person()
    if role == SUPERUSER:
        user.is_staff = user.is_superuser = True
        user.save()
    elif role != OUTSIDER:
        user.groups.add(Group.objects.get(name=SUPPORT if role == RAW_EDITOR else role))
    if role == RAW_EDITOR:
        user.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    return user


def browser_of(user: User) -> Client:
    """Signed in, and in the list of where they are."""
    client = signed_in(user)
    key = digest_of(client.session.session_key or "")
    UserSession.objects.create(user=user, ip="127.0.0.1", session_key=key, user_agent="")
    return client


def make_world(user: User) -> World:
    colleague = User.objects.create_user("colleague", password="colleague")
    store = make_store()
    AgentSession.objects.create(session_id="customer_1:ticket_1", created_at=now(), updated_at=now())
    message = AgentMessage.objects.create(
        id=1,
        session_id="customer_1:ticket_1",
        message_data=f'{{"role": "user", "content": "{WORDS}"}}',
        created_at=now(),
    )
    subject = make_subject("customer_1")
    record = make_session("customer_1:ticket_1", store=store, subject=subject)
    locked = make_session("customer_2:ticket_2", store=store, is_sensitive=True)
    alias = SubjectAlias.objects.create(subject=subject, kind="user", key="also_1")
    merged = make_subject("customer_3")
    merged.merged_into = subject
    merged.save()
    pattern = SessionIdPattern.objects.create(store=store, name="tickets", pattern="customer_{subject}", position=1)
    asked: dict[str, Any] = {"reason": "support_case", "ticket": "T-1", "minutes": 30, "record_ids": [locked.pk]}
    own, theirs = (grants.request_grant(by=by, **asked) for by in (user, colleague))
    for each in (user, colleague):
        with_app(each)
    factors = {each.pk: Authenticator.objects.get(user=each, type="totp").pk for each in (user, colleague)}
    own_session = UserSession.objects.create(user=user, ip="127.0.0.1", session_key="own", user_agent="")
    their_session = UserSession.objects.create(user=colleague, ip="127.0.0.1", session_key="theirs", user_agent="")
    own_view, their_view = (
        SavedView.objects.create(owner=by, list_name="sessions-stores", name="risky", query="")
        for by in (user, colleague)
    )
    rule, decided = approval_rule(), waiting("Prefers gin.", subject=subject)
    case = make_request(make_subject("customer_4"), by=colleague)
    access_case = make_request(make_subject("customer_5"), by=colleague, kind=SubjectRequest.Kind.ACCESS)
    SubjectRequest.objects.filter(pk=case.pk).update(receipt='{"payload": {"outcome": "complete"}}')
    nothing = uuid.uuid4()
    return World(
        here={
            "record_id": record.pk,
            "item_id": message.pk,
            "subject_id": subject.pk,
            "alias_id": alias.pk,
            "name": store.name,
            "key": "stores",
            "kind": "sqlite",
            "pattern_id": pattern.pk,
            "watched_id": WatchedPath.objects.create(name="bots", kind="sqlite", options={"path": "/none/*.db"}).pk,
            "search_id": remember_search(user, "tea").pk,
            "redaction_id": redact_in_session(
                record, RedactionRequest("tea leaves", reason=RedactReason.MISTAKE, by=user)
            ).pk,
            "grant_id": own.pk,
            "request_id": role_request(colleague).pk,
            "run_id": Run.objects.create(kind="of_a_later_version").pk,
            "run_number": Run.objects.create(kind="retention").pk,
            "hold_id": make_hold("dispute", by=colleague).pk,
            "policy_id": proposed(in_force("Chats"), by=colleague).policy_id,
            "version_number": 2,
            "unlock_id": request_unlocking([locked.pk], reason="mistake", by=colleague).pk,
            "case_id": case.id,
            "access_id": access_case.id,
            "token": "none",
            "step_id": ErasureStep.objects.create(request=case, name="sessions", place="main", position=0).pk,
            "batch_id": uploaded(csv_of("customer_5"), by=colleague).id,
            "line_number": 2,
            "event_id": AuditEvent.objects.latest("number").id,
            "session_id": own_session.pk,
            "memory_id": waiting("Prefers tea.", subject=subject).pk,
            "recall_id": Recall.objects.create(record_id=record.pk, subject=subject).pk,
            "signal_id": Signal.objects.create(record_id=record.pk, item_id="1", kind="feedback", given_by=user).pk,
            "number": 1,
            "view_id": own_view.pk,
            "rule_id": rule.pk,
            "review_id": a_decision(decided, rule, is_sample=True).pk,
            "factor_id": factors[user.pk],
            "person_id": colleague.pk,
            "browser_id": their_session.pk,
            "id": colleague.pk,
            "app_label": "sessions_app",
            "url": "nothing",
            "content_type_id": 1,
            "provider_id": "company",
        },
        not_here={
            "record_id": nothing,
            "subject_id": nothing,
            "memory_id": nothing,
            "recall_id": nothing,
            "signal_id": nothing,
            "redaction_id": nothing,
            "alias_id": 999_999,
            "name": "no-such-store",
            "key": "no-such-area",
            "kind": "no-such-kind",
            "pattern_id": 999_999,
            "watched_id": 999_999,
            "grant_id": nothing,
            "request_id": nothing,
            "run_id": 999_999,
            "run_number": 999_999,
            "hold_id": nothing,
            "policy_id": nothing,
            "version_number": 999_999,
            "unlock_id": nothing,
            "case_id": nothing,
            "access_id": nothing,
            "step_id": 999_999,
            "batch_id": nothing,
            "line_number": 999_999,
            "event_id": nothing,
            "view_id": nothing,
            "rule_id": nothing,
            "review_id": nothing,
            "session_id": 999_999,
            "factor_id": 999_999,
            "person_id": 999_999,
            "browser_id": 999_999,
        },
        somebody_elses={
            "grant_id": theirs.pk,
            "session_id": their_session.pk,
            "factor_id": factors[colleague.pk],
            "view_id": their_view.pk,
        },
        locked={"record_id": locked.pk},
        object_ids={
            "auth_user": colleague.pk,
            "auth_group": Group.objects.get(name=SUPPORT).pk,
            "sessions_app_subject": subject.pk,
            "sessions_app_sessionrecord": record.pk,
            "sessions_app_sessionstore": store.pk,
            "sessions_app_agentmessage": message.pk,
            **{f"memories_app_{row._meta.model_name}": row.pk for row in one_of_each(decided, WORDS)},
            "procrastinate_procrastinatejob": make_job(),
        },
    )


def role_request(whom: User) -> RoleRequest:
    by = User.objects.create_user("requester")
    by.groups.add(Group.objects.get(name="administrator"))
    return request_role(whom, AccountRight(role=Group.objects.get(name="compliance")), by=by, why=audit.Why("staff"))


def make_job() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name) VALUES ('default', 'tried') RETURNING id"
        )
        return int(cursor.fetchone()[0])


def parameters_of(name: str) -> list[str]:
    """The names of the parts of an address that an object fills in."""
    resolver: Any = get_resolver()
    *namespaces, last = name.split(":")
    for namespace in namespaces:
        resolver = resolver.namespace_dict[namespace][1]
    return list(resolver.reverse_dict.getlist(last)[0][0][0][1])


def address_of(url_name: str, world: World, /, **instead: Any) -> str:
    model = url_name.removeprefix("admin:").rpartition("_")[0]
    filled = {**world.here, "object_id": world.object_ids.get(model, 1), **instead}
    return reverse(url_name, kwargs={parameter: filled[parameter] for parameter in parameters_of(url_name)})


@dataclass
class Tries:
    """Requests whose effect is undone, and what was wrong about their answers."""

    client: Client
    role: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        cookie = self.client.cookies.get(settings.SESSION_COOKIE_NAME)
        self.signed_in_with = cookie.value if cookie else ""
        self.before = transaction.savepoint()

    def request(self, method: str, address: str) -> Any:
        """The answer to a request. Only the event of a refused one stays, which nothing here reads: to undo it and to
        begin anew would take as long as the refusal.
        """
        answer = self.client.generic(method, address)
        if answer.status_code not in REFUSALS:
            transaction.savepoint_rollback(self.before)
        if self.signed_in_with:
            self.client.cookies[settings.SESSION_COOKIE_NAME] = self.signed_in_with
        return answer

    def send(self, method: str, address: str) -> int:
        answer = self.request(method, address)
        if missing := POLICY - set(answer.get("Content-Security-Policy", "").split("; ")):
            self.wrong.append(f"{self.role} {method} {address}: no policy of {sorted(missing)}")
        is_sent_away = answer.status_code == 302 and LOGIN.match(answer["Location"])
        return 401 if is_sent_away else answer.status_code

    def expect(self, method: str, address: str, *statuses: int, but: tuple[int, ...] = ()) -> None:
        status = self.send(method, address)
        is_right = status in statuses if statuses else status not in but and (status < 500 or status == 503)
        if not is_right:
            expected = " or ".join(map(str, statuses)) if statuses else f"anything but {but}"
            self.wrong.append(f"{self.role} {method} {address}: {status}, expected {expected}")


@pytest.fixture
def brief_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals without their page and their traceback in the log, which took as long as the refusals themselves.

    The status alone is looked at here; tests/web/test_errors.py tests the pages.
    """
    monkeypatch.setattr(errors, "in_words", lambda roles: "")
    monkeypatch.setattr(errors, "render", lambda request, template, *context, status: HttpResponse(status=status))
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)


def without_pages(patching: pytest.MonkeyPatch) -> None:
    """Answers with the name of their template instead of the page that it makes."""
    patching.setattr(Template, "render", lambda template, *_: template.template.name)


def with_lasting_people(patching: pytest.MonkeyPatch) -> None:
    """Each request is undone, so all find the same session, person and rights. Reading those took a third."""
    sessions: dict[str | None, dict[str, Any]] = {}
    people: dict[int, Any] = {}
    read_session, read_person = SessionStore.load, ModelBackend.get_user

    def load(store: SessionStore) -> dict[str, Any]:
        if store.session_key not in sessions:
            sessions[store.session_key] = read_session(store)
        return deepcopy(sessions[store.session_key])

    def get_user(backend: ModelBackend, pk: int) -> Any:
        if pk not in people:
            people[pk] = read_person(backend, pk)
        return people[pk]

    patching.setattr(SessionStore, "load", load)
    patching.setattr(ModelBackend, "get_user", get_user)


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("role", [STRANGER, *sorted(EVERYBODY)])
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.release)], ids=["refusals", "whole"])
def test_role_at_every_address(
    world: World, brief_refusals: None, monkeypatch: pytest.MonkeyPatch, role: str, whole: bool
) -> None:
    """At each call what is refused to the role, and what is somebody else's or locked. The rest is before a release:
    pages that open, which have tests of their own, and what is unknown.
    """
    user = somebody(OUTSIDER if role == STRANGER else role)
    tries = Tries(Client() if role == STRANGER else browser_of(user), role)
    with_lasting_people(monkeypatch)
    for name, rule in MATRIX.items():
        for method, allowed in (("GET", rule.reads), ("POST", rule.sends)):
            try_at(tries, world, name, rule, method, allowed, whole=whole)
    assert not tries.wrong, "\n".join(tries.wrong)


def try_at(
    tries: Tries,
    world: World,
    name: str,
    rule: Rule,
    method: str,
    allowed: frozenset[str] | None,
    *,
    whole: bool = True,
) -> None:
    """The object that is there, one that is not, somebody else's, and a locked one, as far as the address has any;
    unless `whole`, without what opens or does not exist.
    """
    here, own = address_of(name, world), None
    if name in DECISIONS:
        here, own = address_of(name, world, grant_id=world.somebody_elses["grant_id"]), here
    if allowed is None:
        if not whole:
            return
        # Django admin looks at the door before it looks at the method.
        is_refused_first = name.startswith("admin:") and tries.role not in DOOR
        tries.expect(method, here, *((401, 405) if tries.role == STRANGER else (403,) if is_refused_first else (405,)))
        return
    is_allowed = tries.role in allowed
    if not is_allowed:
        tries.expect(method, here, 401 if tries.role == STRANGER else 403)
    elif whole and name != "admin:login":  # which is only the way to the login
        tries.expect(method, here, but=(401, 403, 405, *(() if may_be_missing(name) else (404,))))
    if tries.role == STRANGER:
        return
    if own:
        tries.expect(method, own, 403, 422)
    parameters = set(parameters_of(name))
    for parameter in sorted(parameters & set(world.not_here)) if whole else ():
        unknown = address_of(name, world, **{parameter: world.not_here[parameter]})
        tries.expect(method, unknown, 404 if is_allowed else 403)
    for parameter in sorted(parameters & set(world.somebody_elses)):
        theirs = address_of(name, world, **{parameter: world.somebody_elses[parameter]})
        sees_all = parameter == "grant_id" and tries.role in DECIDERS
        tries.expect(method, theirs, *(() if sees_all else (404 if is_allowed else 403,)), but=(401, 403, 404, 405))
    if name in LOCKED:
        tries.expect(method, address_of(name, world, **world.locked), 403)


@pytest.mark.slow
@pytest.mark.django_db
def test_what_asks_for_a_fresh_proof_and_what_does_not(
    world: World, brief_refusals: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser_of(somebody(SUPERUSER))
    let_proof_age(client)
    tries = Tries(client, SUPERUSER)
    with_lasting_people(monkeypatch)
    without_pages(monkeypatch)
    monkeypatch.setattr(Rehearsal, "refusal_by", lambda *_: None)  # which finds that the forms are empty
    asks: dict[str, set[str]] = {"GET": set(), "POST": set()}
    for name, rule in MATRIX.items():
        for method, takes in (("GET", rule.reads), ("POST", rule.sends)):
            if takes is not None and is_asked(tries, method, address_of(name, world)):
                asks[method].add(name)
    for method, expected in FRESH_PROOF.items():
        assert asks[method] - expected == set(), f"ask at {method}, and tests/accounts/matrix.py does not say so"
        assert expected - asks[method] == set(), f"have to ask at {method}"


def is_asked(tries: Tries, method: str, address: str) -> bool:
    """Whether an old proof is not enough."""
    answer = tries.request(method, address)
    if method == "GET":
        return bool(answer.status_code == 302 and answer["Location"].startswith("/accounts/confirm/"))
    return bool(answer.status_code == 422 and answer.text == "accounts/confirm_form.html")


def may_be_missing(name: str) -> bool:
    """Where 404 is an answer to a good request, too."""
    return name in {"openid_connect_login", "openid_connect_callback", "admin:view_on_site", "metrics"}


@pytest.mark.django_db
def test_a_rule_that_is_too_wide_or_too_narrow_is_found(world: World) -> None:
    """The test of the test."""
    tries = Tries(browser_of(somebody(SUPPORT)), SUPPORT)
    try_at(tries, world, "audit:list", Rule(reads=EVERYBODY), "GET", EVERYBODY)
    try_at(tries, world, "sessions:list", Rule(reads=frozenset()), "GET", frozenset())
    try_at(tries, world, "sessions:label", Rule(), "POST", None)
    assert len(tries.wrong) == 3


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("role", sorted(EVERYBODY))
def test_crawling_the_admin_shows_what_the_role_may_see_and_no_words(world: World, role: str) -> None:
    client = browser_of(somebody(role))
    seen, waiting = set(), ["/admin/"]
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen.add(address)
        answer = client.get(address)
        assert answer.status_code in (200, 302) or (answer.status_code == 403 and address == "/admin/"), address
        may_show = role in {RAW_EDITOR, SUPERUSER} and "/agentmessage/1/" in address
        assert may_show or WORDS not in answer.text, address
        assert set(answer["Content-Security-Policy"].split("; ")) >= POLICY
        waiting += links_of(answer.text, address)
    assert len(seen) == 1 or role in {"administrator", RAW_EDITOR, SUPERUSER}


def links_of(page: str, address: str) -> list[str]:
    """The pages of Django admin to which a page leads; without their queries, which filters multiply."""
    found = {urljoin(address, unescape(link)) for link in re.findall(r'href="([^"?#]+)', page)}
    return [link for link in sorted(found) if link.startswith("/admin/") and "logout" not in link]


def lookups_in(source: str) -> list[str]:
    """Where code fetches one object by itself."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        by_manager = called.endswith((".get", ".aget")) and ".objects" in called
        if by_manager or called.split(".")[-1] in {"get_object_or_404", "aget_object_or_404"}:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


def views() -> list[Path]:
    apps = [settings.CHECKOUT_DIR / name for name in ("memadmin", "sessions_app", "memories_app")]
    return [
        path for app in apps for path in app.rglob("*.py") if path.name == "views.py" or path.parent.name == "views"
    ]


def test_views_fetch_objects_through_access_alone() -> None:
    assert len(views()) > 10
    found = {str(path): lookups for path in views() if (lookups := lookups_in(path.read_text()))}
    assert found == {}, "a function of access.py decides who may have the object"


@pytest.mark.parametrize(
    "source", ["Subject.objects.get(pk=1)", "get_object_or_404(Subject, pk=1)", "Subject.objects.all().filter().get()"]
)
def test_a_lookup_of_a_view_would_be_found(source: str) -> None:
    assert lookups_in(source)
