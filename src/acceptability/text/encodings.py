"""The encoding of a text file: UTF-8, UTF-16 or UTF-32, or one of the old 8-bit code pages of Europe if it is certain.

An 8-bit file does not say which code page it is in: the same byte is è in Western Europe and č in the east of it. So
the text is decoded by each code page, and a decoding counts only if its letters beyond ASCII all belong to the alphabet
of one language that was written in that code page. If one text remains, it is that; otherwise the user has to say.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from acceptability.errors import SuiteError, shorten

# Longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig", ""),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)

# The lower-case letters beyond ASCII of the languages of each code page.
_ALPHABETS = {
    "cp1252": (
        "äöüß", "äöüé", "åäöé", "æøåéóòôü", "ëïéèöüáíóúêç", "àâæçéèêëîïôœùûü", "áéíñóúü", "áâãàçéêíóôõúü",
        "àèéìíîòóù", "àçèéíïòóúü", "áðéíóúýþæö", "äöõüšž", "áéíóú", "áàâäéèêëíìîïóòôöúùûüŵŷ",
    ),
    "cp1250": (
        "äöüß", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ąćęłńóśźż", "ăâîşţ", "čćđšž", "äöüé",
    ),
    "cp1257": ("āčēģīķļņšūž", "ąčęėįšųūž", "äöõüšž"),
    "cp1254": ("çğıöşüâî",),
    "cp1251": ("абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя"),
    "koi8-r": ("абвгдеёжзийклмнопрстуфхцчшщъыьэюя",),
    "cp1253": ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",),
    "mac_roman": ("äöüß", "åäöé", "æøåé", "àâæçéèêëîïôœùûü", "áéíñóúü", "áâãàçéêíóôõúü", "àèéìíîòóù"),
}  # fmt: skip

# Their names in messages.
_TITLES = {
    "cp1252": "Windows-1252 (Latin-1)",
    "cp1250": "Windows-1250",
    "cp1257": "Windows-1257",
    "cp1254": "Windows-1254",
    "cp1251": "Windows-1251",
    "koi8-r": "KOI8-R",
    "cp1253": "Windows-1253",
    "mac_roman": "Mac Roman",
}

# What may stand beside letters of any language: quotation marks, dashes, an ellipsis, signs that follow a number.
_SIGNS = frozenset("‘’“”‚„«»‹›–—…•·°§£€©®™²³½\xa0\xad")
# Signs that begin a Spanish sentence; elsewhere they are letters of another code page.
_OPENING_SIGN = re.compile(r"(?<!\w)[¿¡]")

_FOREIGN = re.compile(r"[^\x00-\x7f]")
_FOREIGN_WORD = re.compile(r"[\w³¹¿ª]*[^\x00-\x7f][\w³¹¿ª]*")
# Of scripts other than Latin, no word has Latin letters too.
_MIXED_SCRIPT = re.compile(r"[A-Za-z][Ͱ-ӿ]|[Ͱ-ӿ][A-Za-z]")

# A sign between letters, where another code page has a letter.
_INNER_SIGN = re.compile(r"[^\W\d_][‚„«»‹›…•§£€©®™²³½][^\W\d_]")


def decode_text(content: bytes, where: str, encoding: str = "") -> tuple[str, str]:
    """Return the text of a file, and the name of its encoding; the name is empty for UTF-8, which needs no remark.

    Args:
        content: The file.
        where: Its name, for the error.
        encoding: The encoding, if the user named it.

    >>> decode_text("Mädchen schliefen".encode("latin-1"), "a.csv")
    ('Mädchen schliefen', 'Windows-1252 (Latin-1)')
    """
    if encoding:
        return _decode_as(content, where, encoding), encoding
    for mark, name, title in _MARKS:
        if content.startswith(mark):
            return _decode_as(content, where, name), title
    if name := _find_utf16(content):
        return _decode_as(content, where, name), "UTF-16"
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        return _decode_old(content, where, error)


def _decode_as(content: bytes, where: str, encoding: str) -> str:
    try:
        text = content.decode(codecs.lookup(encoding).name)
    except LookupError as error:
        raise SuiteError(
            f"{where}: no encoding is named {encoding!r}; usual ones are utf-8, utf-16, cp1252 (Latin-1), cp1250, "
            "cp1251, shift_jis, gb18030"
        ) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SuiteError(
            f"{where}, line {line}: byte {error.start} is not {encoding.removesuffix('-sig')}. Name the encoding that "
            "the file was saved in: --encoding cp1252"
        ) from error
    return text.removeprefix("\ufeff")


def _find_utf16(content: bytes) -> str:
    """Return the kind of UTF-16 of a file without a mark; empty if it is none."""
    # ASCII has a zero in every second byte there. The file of a table has ASCII in it, if only its separators.
    sample = content[:4096]
    if len(sample) < 4 or len(content) % 2:
        return ""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if odd > 0.2 * len(sample) / 2 and not even:
        return "utf-16-le"
    return "utf-16-be" if even > 0.2 * len(sample) / 2 and not odd else ""


def _decode_old(content: bytes, where: str, error: UnicodeDecodeError) -> tuple[str, str]:
    """Return the text of an 8-bit file and its code page, if only one text is possible."""
    texts: dict[str, str] = {}
    for name, text in _iter_possible(content):
        texts.setdefault(text, name)
    if len(texts) == 1:
        ((text, name),) = texts.items()
        return text, _TITLES[name]
    line = content.count(b"\n", 0, error.start) + 1
    found = f"{where}, line {line}: byte {error.start} is not UTF-8"
    if not texts:
        raise SuiteError(
            f"{found}, and no other encoding is certain. Save the file as UTF-8, or name its encoding: --encoding "
            "cp1252 for Western Europe, cp1250, cp1251, shift_jis, gb18030, …"
        )
    options = " or ".join(f"{shorten(word)!r} (--encoding {name})" for word, name in _show_difference(texts) if word)
    raise SuiteError(f"{found}. It has {options}: save the file as UTF-8, or say which by that option")


def _iter_possible(content: bytes) -> Iterator[tuple[str, str]]:
    """Yield the name of each code page in which the file is text of one language, and the text."""
    for name, alphabets in _ALPHABETS.items():
        try:
            text = content.decode(name)
        except UnicodeDecodeError:
            continue
        letters = {character.lower() for character in _FOREIGN.findall(_OPENING_SIGN.sub("", text))} - _SIGNS
        is_one_language = any(letters <= set(alphabet) for alphabet in alphabets)
        if is_one_language and not (_MIXED_SCRIPT.search(text) or _INNER_SIGN.search(text) or _has_inner_capital(text)):
            yield name, text


def _has_inner_capital(text: str) -> bool:
    """Tell whether a capital beyond ASCII follows a small letter, as it does in no word."""
    starts = (match.start() for match in _FOREIGN.finditer(text))
    return any(start and text[start].isupper() and text[start - 1].islower() for start in starts)


def _show_difference(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the first word that differs between the possible texts, with the code page of each text."""
    words = {name: _FOREIGN_WORD.findall(text) for text, name in texts.items()}
    # The same bytes are words in all of them, as long as no byte is a letter in one and a sign in another.
    rows = zip(*words.values(), strict=False)
    first = next((row for row in rows if len(set(row)) > 1), tuple(found[0] for found in words.values()))
    yield from zip(first, words, strict=True)
