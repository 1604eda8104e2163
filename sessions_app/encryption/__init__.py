"""Sessions encrypted with the SDK's `EncryptedSession`: keys, decryption, re-encryption and expired items.

Pure: no query, no request. A store has the name of the key that its agents use; the keys themselves are in the
environment only.
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
