"""The wordings in which models are asked for judgements: a TOML file, ours or a user's, read and checked.

The first lines of ``asking.toml`` say how such a file is written.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from acceptability.errors import ModelError, suggestion
from acceptability.signature import fingerprint

OURS = Path(__file__).with_name("asking.toml")
_HOLE = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"[\w-]+\Z")
_RESERVED = ("auto", "all")


@dataclass(frozen=True)
class Ask:
    """One wording of a template, with holes for sentences.

    Args:
        good: The spellings of the answer that speaks for the sentence, or names the first of two.
        bad: The spellings of the answer that speaks against it, or names the second.
    """

    text: str
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()

    def filled(self, **sentences: str) -> str:
        """Return the text with sentences in its holes.

        >>> Ask("A: {first} B: {second}").filled(first="Odd {second}.", second="Cats sleep.")
        'A: Odd {second}. B: Cats sleep.'
        """
        return _HOLE.sub(lambda hole: sentences.get(hole[1], hole[0]), self.text)


@dataclass(frozen=True)
class Template:
    """A way to ask, perhaps in several wordings that are averaged."""

    method: str
    language: str
    name: str
    asks: tuple[Ask, ...]


@dataclass(frozen=True)
class _Form:
    """What the wordings of a method look like: their holes, and where the answers stand."""

    holes: tuple[str, ...]
    answers: tuple[str, ...]


_FORMS = {
    "yes_no": _Form(("sentence",), ("good", "bad")),
    "which": _Form(("first", "second"), ("first", "second")),
    "in_template_lp": _Form(("sentence",), ()),
}


def chosen(path: Path, methods: Sequence[str], language: str, names: str) -> tuple[Template, ...]:
    """Return the templates of some methods in a language that a text such as ``plain+labels`` names.

    ``auto`` is the first template of a single method, or all of several; ``all`` is all of
    them. What follows an ``@`` is the fingerprint that they must have.

    >>> [each.name for each in chosen(OURS, ["yes_no"], "en", "plain+labels")]
    ['plain', 'labels']
    """
    names, _, version = names.partition("@")
    there = [each for each in read_templates(path) if each.method in methods and each.language == language]
    if not there:
        raise ModelError(_none_there(path, methods, language))
    if names in _RESERVED:
        found = there[:1] if names == "auto" and len(methods) == 1 else there
    else:
        found = list(dict.fromkeys(each for name in names.split("+") for each in _named(name, there, path)))
    if version and version != templates_hash(found):
        raise ModelError(
            f"the templates {names} in {path.name} have the fingerprint {templates_hash(found)}, not {version}: "
            "they have other wordings"
        )
    return tuple(found)


def _named(name: str, there: Sequence[Template], path: Path) -> list[Template]:
    found = [each for each in there if each.name == name]
    if not found:
        known = list(dict.fromkeys(each.name for each in there))
        raise ModelError(
            f"no template named {name!r} in {path.name}.{suggestion(name, known)} For this method and language "
            f"there are: {', '.join(known)}; 'all' takes them all, and 'a+b' several."
        )
    return found


def _none_there(path: Path, methods: Sequence[str], language: str) -> str:
    known = sorted({each.language for each in read_templates(path) if each.method in methods})
    return (
        f"{path.name} has no template of {' or '.join(methods)} for language {language!r}; "
        f"its languages: {', '.join(known) or 'none'}. Write a file with your own and name it: templates='FILE.toml'."
    )


def templates_hash(templates: Sequence[Template]) -> str:
    """Return a short hash of all that templates say."""
    return fingerprint(json.dumps(astuple(each)).encode() for each in templates)


def read_templates(path: Path) -> tuple[Template, ...]:
    """Return the templates in a file, all checked."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"cannot read the templates {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is no TOML file: {error}") from error
    tables = content.get("template")
    if not isinstance(tables, list) or not tables or set(content) != {"template"}:
        raise ModelError(f"{path}: expected [[template]] tables and nothing else; found {', '.join(content) or 'none'}")
    templates = tuple(_template(table, f"{path}, template {place}") for place, table in enumerate(tables, start=1))
    seen: set[tuple[str, str, str]] = set()
    for each in templates:
        title = (each.method, each.language, each.name)
        if title in seen:
            raise ModelError(f"{path}: two templates of {each.method} in {each.language!r} have the name {each.name!r}")
        seen.add(title)
    return templates


def _template(table: object, where: str) -> Template:
    found = _fields(table, ("method", "language", "name", "ask"), where)
    method, language, name = (_text(found[key], key, where) for key in ("method", "language", "name"))
    if method not in _FORMS:
        raise ModelError(f"{where}: method is {method!r}; expected one of {', '.join(map(repr, _FORMS))}")
    if not _NAME.match(name) or name in _RESERVED:
        raise ModelError(f"{where}: name is {name!r}; expected letters, digits, - and _, and neither 'auto' nor 'all'")
    asks = found["ask"]
    if not isinstance(asks, list) or not asks:
        raise ModelError(f"{where}: ask is {asks!r}; expected [[template.ask]] tables")
    if method == "in_template_lp" and len(asks) > 1:
        raise ModelError(f"{where}: in_template_lp takes one wording a template; give the others names of their own")
    return Template(method, language, name, tuple(_ask(each, method, f"{where} ({name})") for each in asks))


def _ask(table: object, method: str, where: str) -> Ask:
    form = _FORMS[method]
    found = _fields(table, ("text", *form.answers), where)
    text = _text(found["text"], "text", where)
    if sorted(_HOLE.findall(text)) != sorted(form.holes):
        wanted = " and ".join(f"{{{hole}}}" for hole in form.holes)
        raise ModelError(f"{where}: the text of {method} must hold {wanted} once each, and nothing else in braces")
    if method == "in_template_lp" and not re.search(r"(\A|\s)\{sentence\}\Z", text):
        raise ModelError(f"{where}: the text must end in {{sentence}}, after a space or a new line")
    answers = [_answers(found[key], key, where) for key in form.answers]
    if len({each for spellings in answers for each in spellings}) < sum(map(len, answers)):
        raise ModelError(f"{where}: an answer stands there twice")
    return Ask(text, *answers)


def _fields(table: object, names: Sequence[str], where: str) -> Mapping[str, object]:
    """Return a table that has all these fields and no others."""
    if not isinstance(table, dict):
        raise ModelError(f"{where}: found {table!r}; expected a table with {', '.join(names)}")
    if unknown := next((key for key in table if key not in names), None):
        raise ModelError(
            f"{where}: unknown field {unknown!r}.{suggestion(unknown, names)} Expected {', '.join(names)}."
        )
    if lacking := next((name for name in names if name not in table), None):
        raise ModelError(f"{where}: it has no {lacking}; expected {', '.join(names)}")
    return table


def _text(value: object, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"{where}: {key} is {value!r}; expected a text")
    return value


def _answers(value: object, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ModelError(f"{where}: {key} is {value!r}; expected a list of answers, such as ['Yes', 'yes']")
    answers = tuple(_text(each, key, where) for each in value)
    if padded := next((each for each in answers if each != each.strip()), None):
        raise ModelError(f"{where}: the answer {padded!r} has spaces around it; the space before an answer is added")
    return answers
