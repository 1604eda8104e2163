"""What agents seal with the SDK's `EncryptedSession`: keys, opening, sealing anew, and what nobody reads any more.

Pure: no query, no request. A store says which key of the keyring its agents use; the keys themselves are in the
environment, and nowhere else.
"""

from sessions_app.encryption.keyring import Keyring, keyring
from sessions_app.encryption.keys import SessionKey
from sessions_app.encryption.sealing import Sealing, SessionSeals, sealing_of
from sessions_app.encryption.session_ids import BadSessionIds, WrapperIds

__all__ = [
    "BadSessionIds",
    "Keyring",
    "Sealing",
    "SessionKey",
    "SessionSeals",
    "WrapperIds",
    "keyring",
    "sealing_of",
]
