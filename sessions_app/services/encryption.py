"""Encryption settings of a store: key name, time to live, and session ids."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction

from memadmin import audit
from sessions_app import audit_events
from sessions_app.encryption import BadSessionIds, WrapperIds, keyring
from sessions_app.models import SessionRecord, SessionStore

LONGEST_TTL = timedelta(days=100 * 365)


class EncryptionRefused(Exception):
    """The settings are invalid, and nothing was changed; the message is a sentence."""


@transaction.atomic
def declare_encryption(
    store: SessionStore,
    *,
    key: str | None = None,
    ttl: timedelta | None = None,
    forgets_ttl: bool = False,
    session_ids: str | None = None,
    by: User | None = None,
) -> SessionStore:
    """Sets the name of the key, the agents' time to live, and how their session ids differ; None: unchanged.

    An empty name means that no key is set; `forgets_ttl` that the time to live is not declared. Sessions that are known
    to be encrypted are inspected again. Raises EncryptionRefused.
    """
    store = SessionStore.objects.select_for_update().get(pk=store.pk)
    before = (store.encryption_key, store.encryption_ttl_seconds, store.encryption_ids)
    if key and keyring().get(key) is None:
        raise EncryptionRefused(keyring().why_not(key))
    if ttl is not None and not timedelta(seconds=1) <= ttl <= LONGEST_TTL:
        raise EncryptionRefused("The ttl must be at least one second and at most a hundred years.")
    try:
        WrapperIds.parse(session_ids or "")
    except BadSessionIds as problem:
        raise EncryptionRefused(str(problem)) from problem
    store.encryption_key = store.encryption_key if key is None else key
    if ttl is not None or forgets_ttl:
        store.encryption_ttl_seconds = None if ttl is None else int(ttl.total_seconds())
    store.encryption_ids = store.encryption_ids if session_ids is None else session_ids.strip()
    if before == (store.encryption_key, store.encryption_ttl_seconds, store.encryption_ids):
        return store
    audit.record(audit_events.ENCRYPTION_DECLARED, by=by, target=store)
    store.save(update_fields=["encryption_key", "encryption_ttl_seconds", "encryption_ids"])
    SessionRecord.objects.filter(store=store, is_encrypted=True).inspect_again()
    return store
