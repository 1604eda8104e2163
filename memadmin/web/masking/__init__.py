"""Detection and masking of card numbers, account numbers, e-mail addresses, phone numbers, keys and tokens. Pure.

Detection uses well-maintained libraries. It protects from casual reading, without a guarantee: values that are spelled
out, split between two messages, encoded or part of a picture are not found, and neither are keys of unknown kinds. The
list is in `docs/masking.md`.
"""

from memadmin.values.keys import is_secret_member
from memadmin.web.masking.finding import SensitiveKind, SensitiveSpan, find_cards, find_values
from memadmin.web.masking.masks import DOTS, MASK, MASKED_SECRET, mask_found, mask_in_json, mask_text

__all__ = [
    "DOTS",
    "MASK",
    "MASKED_SECRET",
    "SensitiveKind",
    "SensitiveSpan",
    "find_cards",
    "find_values",
    "is_secret_member",
    "mask_found",
    "mask_in_json",
    "mask_text",
]
