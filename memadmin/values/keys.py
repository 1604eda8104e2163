"""Keys, tokens and passwords, by the expressions of detect-secrets.

Its functions work line by line, return no positions, and may verify a key with its service; so only its expressions
are used. Those for high entropy are not: many ids of agents look like that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from detect_secrets.plugins import keyword
from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

SHORTEST = 11
"""Length of the shortest key that is recognised by its form."""

LONG = 16

SHORTEST_SECRET = 4
SHORTEST_PIN = 3
LONGEST_NAME = 100

AWS_BY_ITSELF, AWS_NAMED = AWSKeyDetector.denylist

KNOWN_BY_LOOKS = (
    *AzureStorageKeyDetector.denylist,
    *DiscordBotTokenDetector.denylist,
    *GitHubTokenDetector.denylist,
    *GitLabTokenDetector.denylist,
    *JwtTokenDetector.denylist,
    *PypiTokenDetector.denylist,
    *SendGridDetector.denylist,
    *SquareOAuthDetector.denylist,
    *TelegramBotTokenDetector.denylist,
    *TwilioKeyDetector.denylist,
    AWS_BY_ITSELF,
)
"""All of these require a word of at least LONG characters."""

# Newer prefixes of issuers, which are not in detect-secrets.
NEWER = (
    "sk-proj-",
    "sk-ant-",
    "sk-svcacct-",
    "sk-admin-",
    "sk_test_",
    "rk_test_",
    "github_pat_",
    "AIza",
    "hf_",
    "ya29.",
)

# Each expression requires one of the strings in front of it, and most texts contain none.
KNOWN_WITH_A_PIECE = (
    (("AKC", "AP"), ArtifactoryDetector.denylist),
    (("://",), BasicAuthDetector.denylist),
    (("-us",), MailchimpDetector.denylist),
    (("_authToken",), NpmDetector.denylist),
    (("T3BlbkFJ",), OpenAIDetector.denylist),
    (("BEGIN ", "PuTTY"), PrivateKeyDetector.denylist),
    (("xox", "hooks.slack"), SlackDetector.denylist),
    (("k_live_",), StripeDetector.denylist),
    (NEWER, [re.compile(f"(?:{'|'.join(map(re.escape, NEWER))})[A-Za-z0-9_-]{{16,}}")]),
)
PIECE = re.compile("|".join(re.escape(piece) for pieces, _ in KNOWN_WITH_A_PIECE for piece in pieces))

PRIVATE_KEY = re.compile("|".join(form.pattern for form in PrivateKeyDetector.denylist))
END_OF_PRIVATE_KEY = re.compile(r"-----END [A-Z ]{1,40}-----")

# Recognised by a preceding name. The expressions are slow, so they search only around such names.
TELLING = ("key", "pass", "pwd", "pw", "secret", "token", "contrase")
NAMES = tuple(sorted({name.replace("_?", dash) for name in keyword.DENYLIST for dash in ("", "_")}))
BEFORE_NAME, AFTER_NAME = 120, 280
LONG_RUN = re.compile(r"[\w/+-]{24}")
NAMED_LONG = (
    *CloudantDetector.denylist,
    *IbmCloudIamDetector.denylist,
    *IbmCosHmacDetector.denylist,
    *SoftlayerDetector.denylist,
    AWS_NAMED,
)
NAMED = {**keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP, **keyword.CONFIG_DENYLIST_REGEX_TO_GROUP}
"""Each with the group of the secret: its first word if it is not quoted."""
ASSIGNS = re.compile("[:=;!]")
"""Every match of these expressions contains one of these characters."""

NAME = re.compile(keyword.DENYLIST_REGEX, re.IGNORECASE)
OTHER_NAMES = frozenset(
    ("authorization", "bearer", "cookie", "credentials", "cvc", "cvv", "otp", "passcode", "passphrase", "pin")
)
"""Further names of secrets; detect-secrets has names in source code."""

QUOTES = "\"'`"
WITH_PASSWORD = frozenset(BasicAuthDetector.denylist)
"""Expressions of which only the group is secret, however short."""

WORD_BEFORE = re.compile(r"[A-Za-z0-9_-]*\Z")
WORD_AFTER = re.compile(r"[A-Za-z0-9_+/=.-]*")


def find(text: str, *, is_prose: bool = True) -> Iterator[tuple[int, int]]:
    """Positions of keys, possibly only a part of each: `whole_word` extends them."""
    if len(text) < SHORTEST:
        return
    long_words = " ".join([word for word in text.split() if len(word) >= LONG])
    if long_words:
        for form in KNOWN_BY_LOOKS:
            if form.search(long_words):
                yield from map(_place, form.finditer(text))
    for pieces, forms in KNOWN_WITH_A_PIECE if PIECE.search(text) else ():
        if any(piece in text for piece in pieces):
            for form in forms:
                yield from map(_place, form.finditer(text))
    lower = _lowered(text)
    if not any(piece in lower for piece in TELLING):
        return
    if long_words and LONG_RUN.search(long_words):
        for form in NAMED_LONG:
            yield from map(_place, form.finditer(text))
    # Without an assignment, names of secrets are ordinary words.
    for start, end in _around_names(lower) if is_prose and ASSIGNS.search(text) else ():
        if not ASSIGNS.search(text, start, end):
            continue
        for form, group in NAMED.items():
            for match in form.finditer(text, start, end):
                yield from _secret(text, match, group)


def _lowered(text: str) -> str:
    """The text in lower case with unchanged positions: some capitals have lower-case forms of two characters."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join([small if len(small := letter.lower()) == 1 else letter for letter in text])


def is_secret_member(name: str, value: str) -> bool:
    """Whether the value of a JSON member with this name is a secret, whatever its form."""
    # The name first: nearly all names are harmless, and values may be long.
    shortest = _shortest_secret(name) if len(name) <= LONGEST_NAME else None
    return shortest is not None and len(value) >= shortest and not any(map(str.isspace, value))


@lru_cache(4_000)
def _shortest_secret(name: str) -> int | None:
    """Minimum length of a secret with this name; None for names that do not indicate a secret."""
    name = name.lower().replace("-", "_")
    if name in OTHER_NAMES:
        return SHORTEST_PIN
    if NAME.search(name):
        return SHORTEST_SECRET
    # Short tokens are the units of language models.
    return LONG if name.endswith("token") else None


def whole_word(text: str, start: int, end: int) -> tuple[int, int]:
    """A position extended to the whole word, or to the whole private key."""
    if PRIVATE_KEY.match(text, start):
        closing = END_OF_PRIVATE_KEY.search(text, end)
        return start, closing.end() if closing else len(text)
    before = WORD_BEFORE.search(text, max(start - LONGEST_NAME, 0), start)
    after = WORD_AFTER.match(text, end)
    assert before is not None
    assert after is not None
    return before.start(), after.end()


def _place(match: re.Match[str]) -> tuple[int, int]:
    """Position of the secret in a match: the longest group, if the expression has groups, else the whole match."""
    groups = [match.span(group) for group in range(1, (match.lastindex or 0) + 1)]
    start, end = max(groups, key=lambda span: span[1] - span[0], default=(0, 0))
    if end - start >= SHORTEST or match.re in WITH_PASSWORD:
        return start, end
    start, end = match.span()
    # Some expressions also match surrounding characters.
    while start < end and not match.string[start].isalnum():
        start += 1
    return start, end


def _around_names(lower: str) -> list[tuple[int, int]]:
    """Ranges around names of secrets in a lower-case text, in order, without overlaps."""
    places = []
    for name in NAMES:
        place = lower.find(name)
        while place >= 0:
            places.append(place)
            place = lower.find(name, place + len(name))
    around: list[tuple[int, int]] = []
    for place in sorted(places):
        start, end = max(place - BEFORE_NAME, 0), place + AFTER_NAME
        if around and start <= around[-1][1]:
            start = around.pop()[0]
        around.append((start, end))
    return around


def _secret(text: str, match: re.Match[str], group: int) -> Iterator[tuple[int, int]]:
    """Position of the secret in a match of an assignment; only the first word if it is not quoted."""
    first, last = match.span(group)
    is_quoted = last < len(text) and text[last] in QUOTES and text[first - 1] == text[last]
    if not is_quoted:
        words = text[first:last].split(maxsplit=1)
        last = first + len(words[0]) if words else first
    if last - first >= SHORTEST_SECRET and any(map(str.isalnum, text[first:last])):
        yield first, last
