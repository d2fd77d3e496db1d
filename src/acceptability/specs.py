"""Specs, names with options such as ``ADC(delta=0.5)``, and the signatures of results.

A spec is a name, optionally with options in brackets, and is written the same way in Python, in the
shell and in signatures. Options are literals (numbers, strings, True, False, None) or, as in
``exp(slor(unigrams='file.tsv'))``, another spec. A spec is parsed as data: nothing in it is executed.

A signature says how to compute a result again. It is one line of fields, printed below every table:

    PairAccuracy(ties=0.0)|suite:starter#3fa9c1d2|model:causal(...).lp()|n:336|ci:...|acceptability:0.1.0

It contains everything that can change a number, and nothing that must not (batch size, device, cache).
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from acceptability.errors import SpecError

# Percent-encoding of the field separator and of line breaks. "%" comes first and is decoded last, so that a text that
# already contains "%7C" survives.
_ESCAPES = {"%": "%25", "|": "%7C", "\n": "%0A", "\r": "%0D"}

# Model kinds that had another name in the version before. The old name is accepted for one release; stored outputs stay
# under it, so that no model has to score anything again.
RENAMED_MODEL_KINDS = {"asking": "prompted"}


def build_signature(measure: str, fields: Mapping[str, str]) -> str:
    """Return the signature of a measure and named fields.

    >>> build_signature("PBC()", {"suite": "mine", "n": "12"})
    'PBC()|suite:mine|n:12'
    """
    return "|".join([_escape(measure), *(f"{key}:{_escape(value)}" for key, value in fields.items())])


def parse_signature(signature: str) -> dict[str, str]:
    """Return the fields of a signature; the measure is the field 'measure'.

    >>> parse_signature("PBC()|suite:mine|n:12")
    {'measure': 'PBC()', 'suite': 'mine', 'n': '12'}
    """
    measure, *fields = signature.split("|")
    pairs = (field.partition(":") for field in fields)
    parsed = {"measure": _unescape(measure)} | {key: _unescape(value) for key, _, value in pairs}
    if "model" in parsed:
        parsed["model"] = to_current_kind(parsed["model"])
    return parsed


SHORT_DIGITS = 8
"""The length of the short form of a signature: enough to tell the results of one user apart."""


def shorten_signature(signature: str) -> str:
    """Return the short form of a signature: the first hexadecimal digits of its SHA-256.

    >>> shorten_signature("PBC()|suite:mine|n:12")
    '9da089c3'
    """
    return hashlib.sha256(signature.encode("utf-8", "surrogatepass")).hexdigest()[:SHORT_DIGITS]


def to_current_kind(model: str) -> str:
    """Return the spec or signature of a model with the present name of its kind.

    >>> to_current_kind("asking:uniform(method='which')")
    "prompted:uniform(method='which')"
    """
    kind, colon, rest = model.partition(":")
    return RENAMED_MODEL_KINDS.get(kind, kind) + colon + rest


def to_stored_kind(signature: str) -> str:
    """Return the signature of a model with the name of its kind in the version before, under which outputs are stored.

    >>> to_stored_kind("prompted:uniform(method='which')")
    "asking:uniform(method='which')"
    """
    former_names = {new: old for old, new in RENAMED_MODEL_KINDS.items()}
    kind, colon, rest = signature.partition(":")
    return former_names.get(kind, kind) + colon + rest


def fingerprint(parts: Iterable[bytes], *, digits: int = 12) -> str:
    """Return a short hash of byte strings that also depends on the boundaries between them.

    >>> fingerprint([b"ab", b"c"]) == fingerprint([b"a", b"bc"])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        # The length comes first, so that moving a boundary between parts changes the hash.
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:digits]


def fingerprint_lines(*texts: Callable[[], Iterable[str]], digits: int = 12) -> str:
    """Return the fingerprint of texts given by functions that yield their lines.

    Args:
        texts: Functions that yield the lines of a text; they may be called twice.
        digits: The length of the result in hexadecimal digits.

    >>> fingerprint_lines(lambda: ["a", "b"], lambda: ["c"]) == fingerprint([b"a\\nb", b"c"])
    True
    """
    digest = hashlib.sha256()
    for lines in texts:
        # `fingerprint` hashes the length of a part before its content. The blocks are kept until the length is known,
        # but only so many of them: of a larger suite, which would fill the memory, the lines are generated twice.
        blocks, size = [], 0
        for block in _join_lines(lines()):
            size += len(block)
            if size <= _MAX_KEPT_BYTES:
                blocks.append(block)
        digest.update(size.to_bytes(8, "big"))
        for block in blocks if size <= _MAX_KEPT_BYTES else _join_lines(lines()):
            digest.update(block)
    return digest.hexdigest()[:digits]


_LINES_PER_BLOCK = 1000
_MAX_KEPT_BYTES = 64 << 20


def _join_lines(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield lines as UTF-8 in blocks, with a line break between any two."""
    separator, remaining = "", iter(lines)
    while block := list(islice(remaining, _LINES_PER_BLOCK)):
        yield (separator + "\n".join(block)).encode()
        separator = "\n"


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _unescape(text: str) -> str:
    # In reverse order, so that "%25" is decoded after all other escapes.
    for character, escaped in reversed(_ESCAPES.items()):
        text = text.replace(escaped, character)
    return text


# Recipe and model names may contain dots and hyphens, which Python's grammar does not allow in a name.
_BARE_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z")
# A bracket that may start options: an empty pair, or one followed by "name=". Brackets in file names rarely look so.
_OPENING = re.compile(r"\((?=\s*(?:\)|[A-Za-z_]\w*\s*=))")
# Specs also come from files and from the network. Deep nesting exhausts the parser's recursion, and every opening
# bracket is a candidate start of options that has to be parsed to the end of the text, so both are limited.
_MAX_CHARACTERS = 10_000
_MAX_OPENINGS = 50

OptionValue = object
"""A literal, or the ParsedSpec of a nested spec."""


@dataclass(frozen=True)
class ParsedSpec:
    """A parsed spec: a name with its options, not yet looked up in the registry."""

    name: str
    args: tuple[OptionValue, ...] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict)


def parse_spec(text: str) -> ParsedSpec:
    """Return the name and the options of a spec.

    >>> parse_spec("ADC(delta=0.5)")
    ParsedSpec(name='ADC', args=(), options={'delta': 0.5})
    >>> parse_spec("lp").name
    'lp'
    """
    text = text.strip()
    if _BARE_NAME.match(text):
        return ParsedSpec(text)
    try:
        if len(text) > _MAX_CHARACTERS:
            raise SyntaxError("it is too long")
        # The text is parsed to a syntax tree and never evaluated: a spec may come from a stranger's file.
        tree = ast.parse(text, mode="eval").body
        if not isinstance(tree, ast.Call):
            raise SyntaxError("it is not a name")
        return _parse_call(tree)
    # Besides SyntaxError, the parser raises ValueError on NUL bytes and very long integers, TypeError on unhashable
    # literals such as {[]: 1}, and RecursionError or MemoryError on deep nesting, depending on the Python version.
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "it is too deep"
        raise SpecError(
            f"cannot read {text[:80]!r}: {reason}. Write a name, or a name with options: Name(option=value)."
        ) from error


def parse_model_spec(text: str) -> tuple[str, str, dict[str, OptionValue]]:
    """Return kind, location and options of a model spec, ``kind:location(option=value)``.

    A location is a path or a name on the Hugging Face Hub, and may itself contain brackets: only the last pair
    counts, and only if it contains options.

    >>> parse_model_spec("masked:bert (mine)/v1(variant='word_l2r')")
    ('masked', 'bert (mine)/v1', {'variant': 'word_l2r'})
    >>> parse_model_spec("uniform")
    ('uniform', '', {})
    """
    if len(text) > _MAX_CHARACTERS:
        raise SpecError(f"cannot read {text[:80]!r}: it has more than {_MAX_CHARACTERS:,} characters.")
    # Python decodes invalid bytes in command-line arguments to lone surrogates, which cannot be printed or hashed.
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise SpecError(f"cannot read {text[:80]!a}: it is not UTF-8. Rename the file and try again.")
    head, options = _split_options(text.strip())
    kind, colon, location = head.partition(":")
    if not colon and not _BARE_NAME.match(head):
        raise SpecError(f"cannot read {text[:80]!r}: write NAME, KIND:LOCATION or KIND:LOCATION(option=value).")
    for name, value in options.items():
        # Models take no nested specs, so an unquoted name is a forgotten pair of quotes.
        if isinstance(value, ParsedSpec):
            raise SpecError(f"cannot read {text[:80]!r}: put quotes round {value.name}: {name}='{value.name}'.")
    return kind, location, options


def _split_options(text: str) -> tuple[str, dict[str, OptionValue]]:
    """Return the text before the options, and the options: those of the last bracket that parses to the end."""
    starts = [match.start() for match in _OPENING.finditer(text)] if text.endswith(")") else []
    # Each candidate parses the rest of the text, so their number is limited; options never nest that deep.
    starts = starts[-_MAX_OPENINGS:]
    # Tried from the right, since the location comes first and may contain brackets itself. A bracket inside a quoted
    # value does not parse on its own, and then the next one to the left is tried. If none parses, the error of the
    # leftmost is raised, as it covers all options.
    for start in reversed(starts):
        try:
            return text[:start], dict(parse_spec("options" + text[start:]).options)
        except SpecError:
            if start == starts[0]:
                raise
    return text, {}


def format_spec(name: str, options: Mapping[str, object]) -> str:
    """Return the spec of a name with options, in the given order.

    >>> format_spec("ADC", {"delta": 0.5, "tie": "sign"})
    "ADC(delta=0.5, tie='sign')"
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})"


def format_parsed_spec(spec: ParsedSpec) -> str:
    """Return the text of a parsed spec.

    >>> format_parsed_spec(parse_spec("exp(slor(unigrams='counts.tsv'))"))
    "exp(slor(unigrams='counts.tsv'))"
    """

    def write(value: object) -> str:
        return format_parsed_spec(value) if isinstance(value, ParsedSpec) else repr(value)

    words = [*map(write, spec.args), *(f"{name}={write(value)}" for name, value in spec.options.items())]
    return f"{spec.name}({', '.join(words)})" if words else spec.name


def map_spec_texts(spec: ParsedSpec, function: Callable[[str], str]) -> ParsedSpec:
    """Return a parsed spec with a function applied to every text among its options, also those of nested specs.

    >>> format_parsed_spec(map_spec_texts(parse_spec("exp(slor('a.tsv'))"), str.upper))
    "exp(slor('A.TSV'))"
    """

    def replace(value: object) -> object:
        if isinstance(value, ParsedSpec):
            return map_spec_texts(value, function)
        return function(value) if isinstance(value, str) else value

    options = {name: replace(value) for name, value in spec.options.items()}
    return ParsedSpec(spec.name, tuple(map(replace, spec.args)), options)


def _parse_call(tree: ast.Call) -> ParsedSpec:
    if not isinstance(tree.func, ast.Name):
        raise SyntaxError("it is not a plain name")
    names = [keyword.arg for keyword in tree.keywords]
    if None in names:
        raise SyntaxError("** has no meaning here")
    # ast.parse accepts a repeated keyword, which only compile() would refuse.
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise SyntaxError(f"the option {duplicate} is given twice")
    args = tuple(_parse_option(argument) for argument in tree.args)
    options = {str(keyword.arg): _parse_option(keyword.value) for keyword in tree.keywords}
    return ParsedSpec(tree.func.id, args, options)


def _parse_option(tree: ast.expr) -> OptionValue:
    if isinstance(tree, ast.Call):
        return _parse_call(tree)
    if isinstance(tree, ast.Name):
        return ParsedSpec(tree.id)
    try:
        return ast.literal_eval(tree)
    except ValueError:
        raise SyntaxError("an option is neither a number, a text, True, False nor None") from None
