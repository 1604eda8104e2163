"""Django checks of the keyring, made at every start. Its problems stop nothing else."""

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
                hint="Encrypted sessions of stores with this key cannot be read; everything else works.",
                id="memadmin.W002",
            )
            for sentence in keys.problems.values()
        ),
        *(
            Warning(
                sentence,
                hint="The key is used as it is. If the agents have a different text, their items cannot be decrypted.",
                id="memadmin.W003",
            )
            for sentence in keys.doubts.values()
        ),
    ]
