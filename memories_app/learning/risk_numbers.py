"""Numbers, dates and addresses that identify a person. Pure: strings in, positions out.

Numbers with a form of their own are found anywhere; their check digits are compared by python-stdnum. Other numbers and
dates count only near a word that announces them, such as "passport". All expressions are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from stdnum.br import cpf
from stdnum.ch import ssn as ahv
from stdnum.es import dni, nie
from stdnum.fi import hetu
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.mx import curp
from stdnum.us import ssn

BEFORE, AFTER = 30, 45
"""Characters around an announcing word in which its number or date is looked for."""

FORMS: tuple[tuple[re.Pattern[str], Callable[[str], bool] | None], ...] = (
    (re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"), ssn.is_valid),
    (re.compile(r"\b[12] ?\d\d ?\d\d ?\d[\dAB] ?\d{3} ?\d{3} ?\d\d\b"), nir.is_valid),
    (re.compile(r"\b[A-Z]{6}\d\d[A-EHLMPR-T]\d\d[A-Z]\d{3}[A-Z]\b", re.IGNORECASE), codicefiscale.is_valid),
    (re.compile(r"\b\d{8}-?[A-Z]\b", re.IGNORECASE), dni.is_valid),
    (re.compile(r"\b[XYZ]-?\d{7}-?[A-Z]\b", re.IGNORECASE), nie.is_valid),
    (re.compile(r"\b\d{3}\.\d{3}\.\d{3}-\d{2}\b"), cpf.is_valid),
    (re.compile(r"\b756\.\d{4}\.\d{4}\.\d\d\b"), ahv.is_valid),
    (re.compile(r"\b\d{6}[-+A]\d{3}[\dA-Y]\b"), hetu.is_valid),
    (re.compile(r"\b[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z\d]\d\b", re.IGNORECASE), curp.is_valid),
    # National Insurance in the United Kingdom, which has no check digit.
    (re.compile(r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]\b"), None),
    # German pension insurance: area, date of birth, letter, serial number.
    (re.compile(r"\b\d\d ?\d{6} ?[A-Z] ?\d{3}\b"), None),
)
"""Numbers of persons with a form of their own, and what checks them."""

NUMBER = re.compile(r"(?<!\w)[A-Za-z]{0,6}\d(?:[ .\-/]?[A-Za-z0-9]){2,24}")
YEAR = re.compile(r"(?:19|20)\d\d\W?")
DOCUMENT = re.compile(r"\b(?=[A-Za-z\d]{6,11}\b)[A-Za-z]{0,5}\d[A-Za-z\d]{2,10}\b")
FEWEST_DIGITS = 4

MONTH = (
    r"(?:jan|feb|mar|m[äa]r|apr|abr|avr|ma[iy]|mag|jun|giu|jui|jul|lug|aug|ago|ao[uû]|sep|set|o[ck]t|out|ott|nov|de[cz]"
    r"|d[eé]c|dic|gen|ene|f[eé]v)\w{0,8}\.?"
)
DATE = re.compile(
    r"\b\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)\b|\b(?:19|20)\d\d(?:-\d\d?-\d\d?)?\b|\b\d{1,2}[./]\d{1,2}\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|er|[.º°])?\s{{0,2}}(?:d[eio]\s|of\s)?{MONTH}\b"
    rf"|\b{MONTH}\s{{1,2}}\d{{1,2}}\b",
    re.IGNORECASE,
)

NAMED = r"(?:[^\W\d_][\w.'’-]{0,24}\s){1,4}"  # noqa: RUF001
HOUSE = r"\d{1,5}\s?[a-zA-Z]?\b"
TO_NUMBER = r",?\s{1,2}(?:n[.º°o]{0,2}\s?|nr\.?\s?)?\d{1,5}\b"
ADDRESSES = re.compile(
    # English: the number first.
    rf"\b{HOUSE},?\s{{1,2}}(?:[A-Z0-9][\w.'’-]{{0,24}}\s){{1,4}}"  # noqa: RUF001
    r"(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Place|Pl|Terrace|Close|Crescent|Square"
    r"|Sq|Parkway|Pkwy|Highway|Hwy|Gardens|Grove|Mews|Row)\b"
    r"|\bP\.?\s?O\.?\s?Box\s\d|\b[Pp]ostfach\s\d|\b(?:[Aa]partado|[Cc]aixa)\s[Pp]ostal\s\d|\b[Cc]asella\s[Pp]ostale\s\d"
    r"|\b[Bb]o[iî]te\s[Pp]ostale\s\d"
    # German: a name that ends like a street, then the number.
    r"|\b\w{0,24}(?:stra(?:ß|ss)e|Stra(?:ß|ss)e|str\.|Str\.|weg|Weg|gasse|Gasse|platz|Platz|allee|Allee|ufer|damm|markt|chaussee)"
    r"\s\d{1,4}\s?[a-z]?\b(?!\s*(?:km|Kilometer|Minuten|Stunden|Uhr|Meter|Euro|Prozent|Mal)\b)"
    r"|\b[A-Z][\w.'-]{0,24}\s(?:Street|Road|Avenue|Lane|Drive|Boulevard|Terrace|Close|Crescent|Square|Way)\s\d{1,5}\b"
    # The same in small letters: no words that only connect.
    r"|\b\d{1,5}[a-z]?\s(?:(?!(?:in|on|the|of|to|a|an|at|and|from|down|along|off|per|my|this|that)\s)[^\W\d][\w.'-]{1,24}\s){1,3}"
    r"(?:street|road|avenue|lane|drive|court|boulevard|terrace|crescent)\b"
    # French: the number, the kind, the name.
    r"|\b\d{1,4}(?:\s?(?:bis|ter))?,?\s(?:rue|avenue|av\.|boulevard|bd|chemin|impasse|all[ée]e|place|quai|cours|route)\s"
    r"(?:d[eu]s?\s|la\s|l['’]|d['’]|de\sla\s){0,2}[^\W\d]"  # noqa: RUF001
    # Spanish, Portuguese and Italian: the kind, a name, the number.
    r"|\b(?:[Cc]alle|[Cc]/|[Aa]venida|[Aa]vda?\.?|[Pp]aseo|[Pp]laza|[Cc]arrera|[Rr]ua|[Tt]ravessa|[Pp]raça|[Aa]lameda|[Ll]argo|[Rr]odovia"
    r"|[Ee]strada|[Vv]ia|[Vv]iale|[Pp]iazza|[Cc]orso|[Vv]icolo|[Ss]trada|Av\.|Gran)\s?(?:d[aeio](?:l|la|i|lla|s|os|as)?\s|las?\s|los\s|el\s){0,2}"
    rf"[A-ZÀ-Ý][\w.'’-]{{0,24}}(?:\s[\w.'’-]{{1,24}}){{0,3}}{TO_NUMBER}"  # noqa: RUF001
    r"|\b(?:calle|avenida|rua|piazza|viale|corso|in\svia)\s(?:[^\W\d]{2,24}\s){1,3}\d{1,4}\b"
    r"(?!\s(?:horas?|veces|minutos?|km|ore|volte|minuti|euros?|a[nñ]os|d[ií]as|vezes|metros?|metri)\b)"
)
AFTER_ADDRESS = re.compile(
    r"\s{0,2}(?:is|was|ist|lautet|est|es|é|è)?\s{0,2}:?\s{0,2}"
    r"(?:\d{1,5}[a-zA-Z]?,?\s[^\W\d]{3}|[^\W\d][\w.]{2,24}\s(?:[^\W\d][\w.]{1,24}\s){0,3}(?!(?:19|20)\d\d\b)\d{1,5}\b)"
)
"""Text that follows the word "address" if that is followed by an address."""


def national_ids(text: str) -> Iterator[tuple[int, int]]:
    """Places of numbers that are national identity numbers by their form."""
    for form, is_valid in FORMS:
        for match in form.finditer(text):
            if is_valid is None or is_valid(match[0]):
                yield match.span()


def addresses(text: str) -> Iterator[tuple[int, int]]:
    for match in ADDRESSES.finditer(text):
        yield match.span()


def _has_number(text: str) -> bool:
    """Whether there is a number of four digits or more that is not a year."""
    return any(
        sum(sign.isdigit() for sign in match[0]) >= FEWEST_DIGITS and not YEAR.fullmatch(match[0])
        for match in NUMBER.finditer(text)
    )


def _has_document(text: str) -> bool:
    return any(sum(sign.isdigit() for sign in match[0]) >= FEWEST_DIGITS for match in DOCUMENT.finditer(text))


def _has_date(text: str) -> bool:
    return bool(DATE.search(text))


ANNOUNCED = {
    "national_id": lambda text, start, end: _has_number(text[end : end + AFTER]),
    "passport": lambda text, start, end: _has_document(text[end : end + AFTER]),
    "address": lambda text, start, end: bool(AFTER_ADDRESS.match(text, end)),
    "birth_date": lambda text, start, end: _has_date(text[max(0, start - BEFORE) : end + AFTER]),
}
"""Conditions on the text around the words of these risks, given the text and the span of the words."""
