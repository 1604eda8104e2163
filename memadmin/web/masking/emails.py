"""E-mail addresses: what stands around an at sign, if Django takes the domain for one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.utils.encoding import punycode

LONGEST_LOCAL, LONGEST_DOMAIN = 64, 253

# The sign itself, in a full-width form, and as it stands in addresses of pages.
SIGNS = ("@", "\uff20", "%40")
AT = re.compile("|".join(SIGNS))
# Letters of any script. Signs that addresses may have and nearly never do would take in what stands before.
LOCAL = re.compile(r"[\w.!#$%*+^~-]+\Z")
DOMAIN = re.compile(r"[\w.-]+")

validator = EmailValidator()


def find(text: str) -> Iterator[tuple[int, int]]:
    # Most texts have none, which is known sooner of each than of all of them.
    for at in AT.finditer(text) if any(sign in text for sign in SIGNS) else ():
        local = LOCAL.search(text, max(at.start() - LONGEST_LOCAL, 0), at.start())
        domain = DOMAIN.match(text, at.end(), at.end() + LONGEST_DOMAIN)
        if local and domain and (length := _length_of_domain(domain[0])):
            yield local.start(), at.end() + length


def domain_of(address: str) -> str:
    return AT.split(address)[-1]


def _length_of_domain(text: str) -> int:
    """How much of what follows the sign is a domain; 0 when nothing is."""
    domain = text.rstrip(".-_")
    *_, top = domain.split(".")
    if top.isdecimal():  # the version of a package
        return 0
    try:
        validator_accepts = bool(validator.domain_regex.match(punycode(domain)))
    except (UnicodeError, ValidationError):
        return 0
    return len(domain) if validator_accepts else 0
