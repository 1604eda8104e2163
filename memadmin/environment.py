"""Values of the settings from environment variables; each invalid value is refused with one sentence.

Every variable may instead be given as `NAME_FILE`, the path of a file that contains it, as containers receive secrets.
An empty variable counts as not set. Defaults are in `memadmin.variables`.
"""

from __future__ import annotations

import base64
import difflib
import ipaddress
import os
import re
import secrets
import zoneinfo
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.core.validators import validate_email
from environ.fileaware_mapping import FileAwareMapping

from memadmin import variables

_environment = FileAwareMapping(cache=False)

SHORTEST_SECRET_KEY = 32
"""In characters; a generated key has 67."""

POSTGRES = ("postgres://", "postgresql://")
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def text(name: str) -> str:
    """The value, or else the default, without spaces around it: a file with a secret usually ends in a newline."""
    try:
        value = str(_environment.get(name, "")).strip()
        if not value and (path := os.environ.get(f"{name}_FILE")):
            # An empty file is a mistake: the default in its place would hide that the secret did not arrive.
            raise ImproperlyConfigured(f"{name}_FILE names {path}, which is empty.")
        return value or variables.default_of(name)
    except OSError as problem:
        raise ImproperlyConfigured(
            f"{name}_FILE names {problem.filename}, which cannot be read: {problem.strerror}."
        ) from None


def words(name: str) -> list[str]:
    """A list, separated by commas."""
    return [word.strip() for word in text(name).split(",") if word.strip()]


def yes_or_no(name: str) -> bool:
    """False, unless the value means yes."""
    value = text(name).lower()
    if value not in YES + NO:
        raise ImproperlyConfigured(f"{name} must be yes or no; it is {value!r}.")
    return value in YES


def choice(name: str, *choices: str) -> str:
    """One of the choices."""
    value = text(name).lower()
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be {' or '.join(choices)}; it is {value!r}.")
    return value


def positive_integer(name: str) -> int:
    value = text(name)
    if not value.isdecimal() or int(value) < 1:
        raise ImproperlyConfigured(f"{name} must be a whole number above zero; it is {value!r}.")
    return int(value)


def at_most(name: str, limit: str) -> int:
    """A positive integer that is not above that of the variable `limit`, where it would have no effect."""
    value, most = positive_integer(name), positive_integer(limit)
    if value > most:
        raise ImproperlyConfigured(f"{name} must be at most {limit}, which is {most}; it is {value}.")
    return value


def whole_number(name: str) -> int:
    value = text(name)
    if not value.isdecimal():
        raise ImproperlyConfigured(f"{name} must be a whole number, 0 for never; it is {value!r}.")
    return int(value)


def port(name: str) -> int:
    value = positive_integer(name)
    if value > 65535:
        raise ImproperlyConfigured(f"{name} must be a port number, at most 65535; it is {value}.")
    return value


def table_name(name: str) -> str:
    """An agent table, as `table` or `schema.table`; both parts are quoted wherever they are used."""
    value = text(name)
    if not all(value.split(".")) or value.count(".") > 1 or "\0" in value:
        raise ImproperlyConfigured(f"{name} must be a table name, or schema.table; it is {value!r}.")
    return value


def time_zone(name: str) -> str:
    value = text(name)
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ImproperlyConfigured(f"{name} must be an IANA time zone such as Europe/Riga; it is {value!r}.") from None
    return value


def phone_regions(name: str) -> list[str]:
    """Countries whose numbers are dialled without a country code, two letters each."""
    from phonenumbers import SUPPORTED_REGIONS

    regions = [region.upper() for region in words(name)]
    if unknown := [region for region in regions if region not in SUPPORTED_REGIONS]:
        raise ImproperlyConfigured(f"{name} must be ISO codes of countries such as DE, US; {unknown[0]!r} is not one.")
    return regions


def embedder(name: str) -> str:
    """Name of an embedder for `memadmin.client.embedding.load`; not loaded here, because not every process needs it."""
    value = text(name)
    if value not in ("wordllama", "none") and not re.fullmatch(r"openai:[\w.:/-]{1,60}", value):
        raise ImproperlyConfigured(f"{name} must be wordllama, openai:MODEL or none; it is {value!r}.")
    return value


def vector_index(name: str) -> str:
    """Name of an index for `memadmin.client.vector_lookup.load`. Vectors and a key are sent there: without HTTPS only
    within this machine.
    """
    value = text(name)
    address = r"qdrant:(https://[\w.:-]+|http://(localhost|127\.0\.0\.1)(:\d+)?)(/[\w-]{1,80})?/?"
    if value not in ("pgvector", "qdrant::memory:") and not re.fullmatch(address, value):
        raise ImproperlyConfigured(f"{name} must be pgvector or qdrant:https://HOST:PORT; it is {value!r}.")
    return value


def distiller(name: str) -> str:
    """Name of a distiller: `rules`, a model of the SDK as `agent:MODEL`, or `none`."""
    value = text(name)
    if value not in ("rules", "none") and not re.fullmatch(r"agent:[\w.:/-]{1,70}", value):
        raise ImproperlyConfigured(f"{name} must be rules, agent:MODEL or none; it is {value!r}.")
    return value


HTTPS_OR_HERE = ("https://", "http://localhost:", "http://127.0.0.1:")


def host_of(address: str) -> str:
    """Host name of an address; empty if it has none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def https_address(name: str) -> str:
    """Empty when it is not set. Without HTTPS only this machine itself."""
    value = text(name)
    if value and not (value.startswith(HTTPS_OR_HERE) and host_of(value)):
        raise ImproperlyConfigured(f"{name} must be an address that begins with https://; it is {value!r}.")
    return value.rstrip("/")


def yes_with(name: str, other: str) -> bool:
    """A yes-or-no setting that requires `other`. Raises ImproperlyConfigured if it is on and `other` is off."""
    if yes_or_no(name) and not yes_or_no(other):
        raise ImproperlyConfigured(f"{name} is on, so {other} must be on, too.")
    return yes_or_no(name)


def required_with(name: str, other: str) -> str:
    """A value that is required because `other` is set."""
    value = text(name)
    if not value and text(other):
        raise ImproperlyConfigured(f"{other} is set, so {name} must be set, too.")
    return value


def embedded_role(name: str) -> str:
    """Role to connect as to the embedded PostgreSQL; with a DATABASE_URL that address contains it."""
    value = text(name)
    if value and text("DATABASE_URL"):
        raise ImproperlyConfigured(f"{name} is for the embedded PostgreSQL; with DATABASE_URL, put the role into it.")
    return value


def hosts(name: str) -> list[str]:
    """Host names as they are compared with the Host header, without its port."""
    values = words(name)
    for value in values:
        if not is_host(value):
            raise ImproperlyConfigured(
                f"{name} must list host names such as memadmin.example.org, without scheme, port or path (.example.org"
                f" for all below a domain, [::1] for an IPv6 address); it has {value!r}."
            )
    return values


def is_host(value: str) -> bool:
    if value.startswith("["):
        try:
            ipaddress.IPv6Address(value[1:].removesuffix("]"))
        except ValueError:
            return False
        return value.endswith("]")
    return value == "*" or bool(re.fullmatch(r"\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?", value, re.IGNORECASE))


def origins(name: str) -> list[str]:
    values = [value.rstrip("/") for value in words(name)]
    for value in values:
        # A browser sends no path with an origin.
        if not value.startswith(("https://", "http://")) or not host_of(value) or value.count("/") > 2:
            raise ImproperlyConfigured(f"{name} must list origins such as https://memadmin.example.org, not {value!r}.")
    return values


def mail_server(name: str) -> dict[str, Any]:
    """Django's settings of mail, from a URL; empty when the variable is not set."""
    url = text(name)
    if not url:
        return {}
    try:
        settings: dict[str, Any] = environ.Env.email_url_config(url)
        is_right = bool(settings["EMAIL_HOST"] or settings["EMAIL_FILE_PATH"])
    except (ImproperlyConfigured, ValueError):
        is_right = False
    if not is_right:
        # The value is not repeated: it contains a password.
        raise ImproperlyConfigured(
            f"{name} must look like smtp+tls://name:password@host:587, smtp+ssl://… or filemail:////folder."
        )
    return {setting: value for setting, value in settings.items() if value is not None}


def mail_addresses(name: str) -> list[str]:
    values = words(name)
    for value in values:
        try:
            validate_email(value)
        except ValidationError:
            raise ImproperlyConfigured(f"{name} must list e-mail addresses; {value!r} is not one.") from None
    return values


def mail_sender(name: str) -> str:
    """An e-mail address, also with a name before it."""
    value = text(name)
    try:
        validate_email(parseaddr(value)[1])
    except ValidationError:
        raise ImproperlyConfigured(
            f"{name} must be an e-mail address such as memadmin@example.org; it is {value!r}."
        ) from None
    return value


def secret_key(name: str, kept: Path) -> str:
    """A signing secret: from the environment, or else generated once and kept in a file."""
    given = text(name)
    if given:
        if len(given) < SHORTEST_SECRET_KEY:
            # The value is not repeated: it is a secret.
            raise ImproperlyConfigured(
                f"{name} must have at least {SHORTEST_SECRET_KEY} characters, such as `openssl rand -base64 50` writes."
            )
        return given
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists() or not kept.stat().st_size:
            fresh = kept.with_name(f"{kept.name}.{secrets.token_hex(4)}")
            fresh.touch(mode=0o600)
            fresh.write_text(secrets.token_urlsafe(50))
            fresh.replace(kept)
        return kept.read_text()
    except OSError as problem:
        raise ImproperlyConfigured(f"{name} is not set and {kept} cannot be used: {problem.strerror}.") from None


def signing_key(name: str) -> bytes:
    """The 32 bytes of an Ed25519 private key; empty when the variable is not set."""
    value = text(name)
    try:
        key = _pem_key(value) if value.startswith("-----") else base64.b64decode(value, validate=True)
    except ValueError:
        key = b""
    if value and len(key) != 32:
        # The value is not repeated: it is a secret.
        raise ImproperlyConfigured(
            f"{name} must be an Ed25519 private key: 32 bytes in base64, or what `openssl genpkey -algorithm ed25519`"
            " writes."
        )
    return key


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """One of several secrets of a kind, or the reason why it is missing."""

    name: str
    variable: str
    text: str = field(default="", repr=False)
    problem: str = ""
    """A sentence; it never repeats the secret."""


def named_secrets(name: str, prefix: str) -> tuple[NamedSecret, ...]:
    """The secrets that a variable lists by name, each in a variable of its own: `vault-2026` in PREFIX_VAULT_2026.

    One that is missing or cannot be read is returned with its problem: the others are of use without it.
    """
    found: dict[str, NamedSecret] = {}
    for word in words(name):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", word) or len(word) > 40:
            raise ImproperlyConfigured(
                f"{name} must list names of small letters, digits and hyphens such as vault-2026; {word!r} is not one."
            )
        variable = f"{prefix}_{word.replace('-', '_').upper()}"
        try:
            value = text(variable)
        except (ImproperlyConfigured, UnicodeDecodeError):
            problem = f"the file that {variable}_FILE names cannot be read, or is empty."
            found[word] = NamedSecret(word, variable, problem=problem)
            continue
        problem = "" if value else f"{variable} is not set."
        found[word] = NamedSecret(word, variable, value, problem)
    return tuple(found.values())


def public_keys(name: str) -> list[str]:
    """Keys as signed notes write them, separated by commas."""
    values = words(name)
    for value in values:
        if not re.fullmatch(r"[^\s+]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}", value):
            raise ImproperlyConfigured(f"{name} must list keys as checkpoints name them, name+hash+key, not {value!r}.")
    return values


def _pem_key(text: str) -> bytes:
    # Takes a moment to import, and most keys come in base64.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (TypeError, UnsupportedAlgorithm) as problem:
        raise ValueError("encrypted, or of an unknown kind") from problem
    return key.private_bytes_raw() if isinstance(key, Ed25519PrivateKey) else b""


def anchor_path(name: str, default: Path | None) -> Path | None:
    """An absolute path; `none` for no file despite a default."""
    value = text(name)
    if value == "none":
        return None
    if value and not Path(value).is_absolute():
        raise ImproperlyConfigured(f"{name} must be an absolute path, or none; it is {value!r}.")
    if value and Path(value).is_dir():
        raise ImproperlyConfigured(f"{name} must be the path of a file; {value} is a folder.")
    return Path(value) if value else default


def data_folder(name: str, default: Path) -> Path:
    """A folder that exists or can be made."""
    path = Path(text(name) or default).expanduser()
    if path.exists() and not path.is_dir():
        raise ImproperlyConfigured(f"{name} must be the path of a folder; {path} is a file.")
    return path


def key_folder(name: str, kept: Path | None) -> Path | None:
    """An absolute path; else the default, where that folder exists."""
    value = text(name)
    if value and not Path(value).is_absolute():
        raise ImproperlyConfigured(f"{name} must be an absolute path; it is {value!r}.")
    return Path(value) if value else kept if kept and kept.is_dir() else None


def receiver(name: str) -> str:
    """The address of a web service; without TLS only on this machine, since a secret is sent along."""
    value = text(name)
    if not value:
        return ""
    try:
        address = urlsplit(value)
        is_right = bool(address.hostname) and address.port != 0
    except ValueError:
        is_right = False
    if is_right:
        is_here = address.hostname in ("localhost", "127.0.0.1", "::1")
        is_right = address.scheme == "https" or (address.scheme == "http" and is_here)
    if not is_right or address.username is not None or address.fragment:
        # The value is not repeated: it may contain a password.
        raise ImproperlyConfigured(f"{name} must look like https://host/path, without a password in it.")
    return value


def bearer_token(name: str) -> str:
    """A token that programs send with each request; empty when it is not set."""
    value = text(name)
    if value and not re.fullmatch(r"[\w.~+/=-]{20,200}", value, re.ASCII):
        # The value is not repeated: it is a secret.
        raise ImproperlyConfigured(
            f"{name} must be 20 to 200 letters and digits without spaces, such as `openssl rand -hex 32` writes."
        )
    return value


def webhook_secret(name: str, other: str) -> bytes:
    """The key of Standard Webhooks: 24 to 64 bytes in base64, after `whsec_` or bare. Required with `other`."""
    value = required_with(name, other).removeprefix("whsec_")
    try:
        key = base64.b64decode(value, validate=True)
    except ValueError:
        key = b""
    if value and not 24 <= len(key) <= 64:
        # The value is not repeated: it is a secret.
        raise ImproperlyConfigured(
            f"{name} must be 24 to 64 random bytes in base64, such as `openssl rand -base64 32` writes."
        )
    return key


def hour(name: str) -> int:
    value = text(name)
    if not value.isdecimal() or int(value) > 23:
        raise ImproperlyConfigured(f"{name} must be an hour of the day in UTC, 0 to 23; it is {value!r}.")
    return int(value)


def bucket(name: str) -> str:
    """`bucket` or `bucket/prefix`, of S3."""
    value = text(name).rstrip("/")
    if value and not re.fullmatch(r"[a-z0-9][a-z0-9.-]{2,62}(/[^\s?#]{1,200})?", value):
        raise ImproperlyConfigured(f"{name} must be a bucket, or bucket/prefix; it is {value!r}.")
    return value


def database(name: str) -> dict[str, Any]:
    """Django's settings of a PostgreSQL database, from a URL; empty when the variable is not set."""
    url = text(name)
    if not url:
        return {}
    try:
        settings: dict[str, Any] = environ.Env.db_url_config(url) if url.startswith(POSTGRES) else {}
    except (ValueError, KeyError):
        settings = {}
    if not settings.get("NAME"):
        # The value is not repeated: it contains a password.
        raise ImproperlyConfigured(f"{name} must look like postgres://role:password@host:5432/database.")
    return settings


OURS, SESSION_KEY = "MEMADMIN_", "MEMADMIN_SESSION_KEY_"


def unknown_names() -> list[str]:
    """Sentences about variables of this process that nothing reads, because they are misspelt or of another version."""
    keys = {f"{SESSION_KEY}{name.replace('-', '_').upper()}" for name in words("MEMADMIN_KEYRING")}
    known = {name for name in variables.VARIABLES if not name.endswith("*")} | keys
    sentences = []
    for given in sorted(os.environ):
        name = given.removesuffix("_FILE")
        if not given.startswith(OURS) or given in known or name in known:
            continue
        if name.startswith(SESSION_KEY):
            sentences.append(f"{given} is set, and MEMADMIN_KEYRING does not list that key: it is not used.")
        else:
            ours = [each.removeprefix(OURS) for each in known]
            alike = difflib.get_close_matches(name.removeprefix(OURS), ours, n=1, cutoff=0.75)
            question = f" Did you mean {alike[0] if alike[0] in known else OURS + alike[0]}?" if alike else ""
            sentences.append(f"{given} is no setting and has no effect.{question}")
    return sentences
