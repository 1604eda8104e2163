"""Keys, tokens and passwords, by the expressions of detect-secrets.

Its functions work line by line, return no positions, and may verify a key with its service; so only its expressions
are used. Those for high entropy are not: many ids of agents look like that. Expressions whose time grows faster than
the text are replaced by equivalent ones: web tokens, npm, OpenAI, and values after a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.private_key import PrivateKeyDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from memadmin.values import said_secrets
from memadmin.values.rewriting import RewrittenText

SHORTEST = 11
"""Length of the shortest key that is recognised by its form."""

LONG = 16

SHORTEST_SECRET = 4
SHORTEST_PIN = 3
LONGEST_NAME = 100

AWS_BY_ITSELF, AWS_NAMED = AWSKeyDetector.denylist

# From the beginning of a word to its first "eyJ", once: each of many would be followed to the end of the word.
JWT = re.compile(r"(?<![\w=-])(?>[\w=-]*?(?=eyJ))(?=[\w=.-]{16})(eyJ[\w=-]++\.[\w=-]++)", re.ASCII)
# In the middle of a key: "OpenAI" in base64.
OPENAI = re.compile(r"(?<=[A-Za-z0-9]{20})T3BlbkFJ[A-Za-z0-9]{20}")
NPM_TOKEN = re.compile(r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])")
NPM_NAMED = re.compile(r"_authToken\s{0,20}+=\s{0,20}+[\"']?(\w[^\s\"']{10,}+)")

KNOWN_BY_LOOKS = (
    *AzureStorageKeyDetector.denylist,
    *DiscordBotTokenDetector.denylist,
    *GitHubTokenDetector.denylist,
    *GitLabTokenDetector.denylist,
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
    (("eyJ",), [JWT]),
    (("_authToken",), [NPM_NAMED]),
    (("npm_",), [NPM_TOKEN]),
    (("T3BlbkFJ",), [OPENAI]),
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
NAMES = tuple(sorted({name.replace("_?", dash) for name in keyword.DENYLIST for dash in ("", "_", "-")}))
LONG_RUN = re.compile(r"[\w/+-]{24}")
NAMED_LONG = (
    *CloudantDetector.denylist,
    *IbmCloudIamDetector.denylist,
    *IbmCosHmacDetector.denylist,
    *SoftlayerDetector.denylist,
    AWS_NAMED,
)
BLANKS = re.compile(" {3,}")
"""These expressions try each division of a run of blanks, so they read a text in which it is two blanks."""

# The assignments that detect-secrets knows, in the languages of its list. Behind a name each part can match in one way
# only, so that a long text takes no longer than its length.
_QUOTED = r"(?P<quote>[\"'`])(?P<quoted>\w[^\v\"'`]{0,250}+)(?P=quote)"
_BARE = r"(?P<bare>\w[^\s\"'`]*+)"
END_OF_WORD = re.compile(r"\w*+")
ASSIGNED = re.compile(rf"[\]'\"]{{0,2}}+\s{{0,20}}+(?::=?|={{1,3}}>?|!={{1,2}})\s{{0,20}}+@?(?:{_QUOTED}|{_BARE})")
QUOTED_AND_ENDED = re.compile(rf"[^\s\"'`]{{0,50}}+\s{{0,20}}+{_QUOTED};")
COMPARED = re.compile(rf"{_QUOTED}\s{{0,20}}+[!=]{{2,3}}+\s{{0,20}}+(?P<name>\w{{1,100}}+)")

# Header fields of HTTP with credentials. A placeholder such as <token> or $TOKEN does not begin like one.
SCHEME = r"(?:apikey|basic|bearer|digest|negotiate|token)\s{1,5}+"
_LONG_TOKEN = rf"(?=[A-Za-z+/=._~-]{{0,100}}+\d)[\w+/=.~-]{{{LONG},}}+"
AUTHORIZATION = re.compile(
    rf"\bauthorization[\"']?\s{{0,5}}+[:=]\s{{0,5}}+[\"']?(?:{SCHEME}([\w+/=.~-][^\s\"',;]{{5,}}+)|({_LONG_TOKEN}))",
    re.IGNORECASE,
)
BEARER = re.compile(rf"\bbearer\s{{1,5}}+({_LONG_TOKEN})", re.IGNORECASE)
_PAIR = r"[\w.-]{1,100}+=[^\s;,\"']++"
COOKIE = re.compile(rf"\bcookie[\"']?\s{{0,5}}+:\s{{0,5}}+[\"']?({_PAIR}(?:; ?{_PAIR})*+)", re.IGNORECASE)
HEADERS = ((("authorization",), AUTHORIZATION), (("bearer",), BEARER), (("cookie",), COOKIE))
HEADER_VALUES = {
    "authorization": re.compile(rf"{SCHEME}\S{{6,}}", re.IGNORECASE),
    "proxy_authorization": re.compile(rf"{SCHEME}\S{{6,}}", re.IGNORECASE),
    "cookie": re.compile(_PAIR),
    "set_cookie": re.compile(_PAIR),
}
"""Values of members with these names are secret although they contain blanks."""

NAME = re.compile(keyword.DENYLIST_REGEX, re.IGNORECASE)
OTHER_NAMES = frozenset(("bearer", "credentials", "cvc", "cvv", "otp", "passcode", "passphrase", "pin", *HEADER_VALUES))
"""Further names of secrets; detect-secrets has names in source code."""

WITH_PASSWORD = frozenset(BasicAuthDetector.denylist)
"""Expressions of which only the group is secret, however short."""

CHARACTERS_BEFORE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
WORD_AFTER = re.compile(r"[A-Za-z0-9_+/=.-]*")


def find(text: str, *, is_prose: bool = True) -> Iterator[tuple[int, int]]:
    """Positions of keys, possibly only a part of each: `whole_words` extends them."""
    if is_prose:
        yield from said_secrets.find(text)
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
    for names, form in HEADERS:
        if any(name in lower for name in names):
            yield from (match.span(match.lastindex or 0) for match in form.finditer(text))
    if not any(piece in lower for piece in TELLING):
        return
    if long_words and LONG_RUN.search(long_words):
        narrow = RewrittenText(text, BLANKS, lambda blanks: "  ")
        for form in NAMED_LONG:
            for match in form.finditer(narrow.text):
                yield narrow.in_original(*_place(match))
    if is_prose:
        yield from _assigned(text, lower)


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
    if shortest is None or len(value) < shortest:
        return False
    header = HEADER_VALUES.get(name.lower().replace("-", "_"))
    return bool(header and header.match(value)) or not any(map(str.isspace, value))


@lru_cache(4_000)
def _shortest_secret(name: str) -> int | None:
    """Minimum length of a secret with this name; None for names that do not indicate a secret."""
    is_said = said_secrets.is_name(name)
    name = name.lower().replace("-", "_")
    if name in OTHER_NAMES or is_said:
        return SHORTEST_PIN
    if NAME.search(name):
        return SHORTEST_SECRET
    # Short tokens are the units of language models.
    return LONG if name.endswith("token") else None


def whole_words(text: str, found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The positions in order, each extended to the whole word, or to the whole private key.

    A position within the previous word is left out: it would be extended to the same end, which takes the square of the
    time for a word that matches in each of its parts.
    """
    reached = 0
    for start, end in sorted(found):
        if end > reached:
            start, reached = _whole_word(text, start, end)
            yield start, reached


def _whole_word(text: str, start: int, end: int) -> tuple[int, int]:
    if PRIVATE_KEY.match(text, start):
        closing = END_OF_PRIVATE_KEY.search(text, end)
        return start, closing.end() if closing else len(text)
    before = text[max(start - LONGEST_NAME, 0) : start]
    after = WORD_AFTER.match(text, end)
    assert after is not None
    return start - len(before) + len(before.rstrip(CHARACTERS_BEFORE)), after.end()


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


def _assigned(text: str, lower: str) -> Iterator[tuple[int, int]]:
    """Positions of values that are assigned to a name of a secret, or compared with it."""
    end = 0
    for place in sorted(_places_of_names(lower)):
        if place < end:  # within the same word or value
            continue
        word = END_OF_WORD.match(text, place)
        assert word is not None
        end = word.end()
        for form in (ASSIGNED, QUOTED_AND_ENDED):
            if match := form.match(text, end):
                # A name within the value is a part of it.
                end = match.end()
                yield from _value(match)
                break
    for match in COMPARED.finditer(text) if "==" in text or "!=" in text else ():
        if NAME.search(match["name"]):
            yield from _value(match)


def _places_of_names(lower: str) -> Iterator[int]:
    for name in NAMES:
        place = lower.find(name)
        while place >= 0:
            yield place
            place = lower.find(name, place + len(name))


def _value(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Position of the value in a match of an assignment."""
    start, end = match.span("quoted")
    if start < 0:
        start, end = match.span("bare")
        end = start + len(match["bare"].rstrip(","))
    if end - start >= SHORTEST_SECRET and any(map(str.isalnum, match.string[start:end])):
        yield start, end
