"""Card numbers, account numbers, e-mail addresses, phone numbers, keys and tokens in text: found, and masked. Pure.

What is found is what well-kept libraries take for such a value. That protects from a glance, and is no promise: a
number that is spelled out, split between two messages, encoded or drawn in a picture is not found, and neither is
a key of a kind that nobody has described. The list is in `docs/masking.md`.
"""

from memadmin.values.keys import is_secret_member
from memadmin.web.masking.finding import MaskingTimeout, SensitiveKind, SensitiveSpan, find_values
from memadmin.web.masking.masks import DOTS, MASK, MASKED_SECRET, mask_found, mask_text

__all__ = [
    "DOTS",
    "MASK",
    "MASKED_SECRET",
    "MaskingTimeout",
    "SensitiveKind",
    "SensitiveSpan",
    "find_values",
    "is_secret_member",
    "mask_found",
    "mask_text",
]
