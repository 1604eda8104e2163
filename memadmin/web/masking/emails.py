"""E-mail addresses: the text around an at sign, if Django accepts the domain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.utils.encoding import punycode

from memadmin.values.effort import EMAIL_STEPS, UNLIMITED, StepLimit

LONGEST_LOCAL, LONGEST_DOMAIN = 64, 253

# The sign itself, in a full-width form, and URL-encoded.
SIGNS = ("@", "\uff20", "%40")
AT = re.compile("|".join(SIGNS))
# Letters of any script. Allowed but very rare signs are left out: they would match the text before an address. Matched
# backwards from the sign: a search would try every beginning.
LOCAL = re.compile(r"[\w.!#$%*+^~-]+")
DOMAIN = re.compile(r"[\w.-]+")

validator = EmailValidator()


def find(text: str, limit: StepLimit = UNLIMITED) -> Iterator[tuple[int, int]]:
    """Positions of addresses. Raises TooMuchWork."""
    # Most texts have none; a search for each sign is faster than the expression.
    for at in AT.finditer(text) if any(sign in text for sign in SIGNS) else ():
        local = LOCAL.match(text[max(at.start() - LONGEST_LOCAL, 0) : at.start()][::-1])
        domain = DOMAIN.match(text, at.end(), at.end() + LONGEST_DOMAIN)
        if not local or not domain or "." not in domain[0]:
            continue
        limit.spend(EMAIL_STEPS)
        if length := _length_of_domain(domain[0]):
            yield at.start() - local.end(), at.end() + length


def domain_of(address: str) -> str:
    return AT.split(address)[-1]


def _length_of_domain(text: str) -> int:
    """Length of the domain at the beginning of `text`; 0 without one."""
    domain = text.rstrip(".-_")
    *_, top = domain.split(".")
    if top.isdecimal():  # the version of a package
        return 0
    try:
        validator_accepts = bool(validator.domain_regex.match(punycode(domain)))
    except (UnicodeError, ValidationError):
        return 0
    return len(domain) if validator_accepts else 0
