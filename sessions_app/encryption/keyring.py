"""Keys that this console has, by the names that stores use for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from memadmin.client.master_key import UnusableKey
from memadmin.environment import NamedSecret
from sessions_app.encryption.keys import SessionKey, doubt_about


@dataclass(frozen=True, slots=True)
class Keyring:
    keys: Mapping[str, SessionKey]
    problems: Mapping[str, str]
    """Sentences that explain why a name has no key."""
    doubts: Mapping[str, str]
    """Sentences about suspicious keys that are used all the same."""

    @classmethod
    def of(cls, secrets: Iterable[NamedSecret]) -> Keyring:
        keys, problems, doubts = {}, {}, {}
        for secret in secrets:
            if secret.problem:
                problems[secret.name] = f"The session key {secret.name} cannot be used: {secret.problem}"
                continue
            try:
                keys[secret.name] = SessionKey(secret.name, secret.text)
            except UnusableKey as problem:
                problems[secret.name] = f"The session key {secret.name} ({secret.variable}) cannot be used: {problem}."
                continue
            if doubt := doubt_about(secret.text):
                doubts[secret.name] = f"The session key {secret.name} ({secret.variable}) {doubt}."
        return cls(keys, problems, doubts)

    def get(self, name: str) -> SessionKey | None:
        return self.keys.get(name)

    def why_not(self, name: str) -> str:
        """A sentence for a key that is not loaded."""
        return self.problems.get(name) or f"The session key {name} is not in the keyring of this console."


def keyring() -> Keyring:
    """The keys of MEMADMIN_KEYRING."""
    return Keyring.of(settings.SESSION_KEYS)
