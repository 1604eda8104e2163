"""What is wrong with the keyring, said at every start; everything else works without it."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Warning, register

from sessions_app.encryption.keyring import keyring


@register
def session_keys_are_usable(**options: Any) -> list[CheckMessage]:
    keys = keyring()
    return [
        *(
            Warning(
                sentence,
                hint="Sealed sessions of stores that use it stay closed; everything else works.",
                id="memadmin.W002",
            )
            for sentence in keys.problems.values()
        ),
        *(
            Warning(
                sentence,
                hint="It is used as it is. Where agents are given another text, nothing they sealed can be opened.",
                id="memadmin.W003",
            )
            for sentence in keys.doubts.values()
        ),
    ]
