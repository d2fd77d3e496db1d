"""Prompt templates: a TOML file, ours or a user's, read and checked.

The first lines of ``prompts.toml`` describe the format.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from acceptability.errors import ModelError, suggest_name
from acceptability.specs import fingerprint

DEFAULT_TEMPLATES = Path(__file__).with_name("prompts.toml")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Neither "+" nor "@", which join names and precede a fingerprint in the option ``template``.
_NAME = re.compile(r"[\w-]+\Z")
_RESERVED_NAMES = ("auto", "all")


@dataclass(frozen=True)
class Wording:
    """One wording of a template, with placeholders for sentences.

    Args:
        good: The spellings of the answer for the sentence, or that names the first of two.
        bad: The spellings of the answer against it, or that names the second.
    """

    text: str
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()

    def fill(self, **sentences: str) -> str:
        """Return the text with sentences for its placeholders.

        >>> Wording("A: {first} B: {second}").fill(first="Odd {second}.", second="Cats sleep.")
        'A: Odd {second}. B: Cats sleep.'
        """
        # In one pass: replacing one placeholder after the other would also replace those within a sentence.
        return _PLACEHOLDER.sub(lambda match: sentences.get(match[1], match[0]), self.text)


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt of a method in a language, perhaps in several wordings that are averaged."""

    method: str
    language: str
    name: str
    wordings: tuple[Wording, ...]


@dataclass(frozen=True)
class _MethodFormat:
    """The format of a method's wordings: their placeholders, and the fields that list the answers."""

    placeholders: tuple[str, ...]
    answers: tuple[str, ...]


_METHOD_FORMATS = {
    "yes_no": _MethodFormat(("sentence",), ("good", "bad")),
    "which": _MethodFormat(("first", "second"), ("first", "second")),
    "in_template_lp": _MethodFormat(("sentence",), ()),
}


def choose_templates(path: Path, methods: Sequence[str], language: str, names: str) -> tuple[PromptTemplate, ...]:
    """Return the templates of some methods in a language, by their names.

    Args:
        path: The TOML file.
        names: Names joined by "+", such as "plain+labels"; "auto" for the first template of a single method, or all of
            several methods; "all" for all of them. After an "@", the fingerprint that the templates must have.

    >>> [template.name for template in choose_templates(DEFAULT_TEMPLATES, ["yes_no"], "en", "plain+labels")]
    ['plain', 'labels']
    """
    names, _, version = names.partition("@")
    available = [
        template for template in read_templates(path) if template.method in methods and template.language == language
    ]
    if not available:
        raise ModelError(_no_template_message(path, methods, language))
    if names in _RESERVED_NAMES:
        templates = available[:1] if names == "auto" and len(methods) == 1 else available
    else:
        templates = list(
            dict.fromkeys(template for name in names.split("+") for template in _find_templates(name, available, path))
        )
    if version and version != hash_templates(templates):
        raise ModelError(
            f"the templates {names} in {path.name} have the fingerprint {hash_templates(templates)}, not {version}: "
            "their wordings differ"
        )
    return tuple(templates)


def _find_templates(name: str, available: Sequence[PromptTemplate], path: Path) -> list[PromptTemplate]:
    matches = [template for template in available if template.name == name]
    if not matches:
        known = list(dict.fromkeys(template.name for template in available))
        raise ModelError(
            f"no template named {name!r} in {path.name}.{suggest_name(name, known)} For this method and language "
            f"there are: {', '.join(known)}; 'all' uses all of them, 'a+b' several."
        )
    return matches


def _no_template_message(path: Path, methods: Sequence[str], language: str) -> str:
    known = sorted({template.language for template in read_templates(path) if template.method in methods})
    return (
        f"{path.name} has no template of {' or '.join(methods)} for language {language!r}; "
        f"its languages: {', '.join(known) or 'none'}. Write your own in a file: templates='FILE.toml'."
    )


def hash_templates(templates: Sequence[PromptTemplate]) -> str:
    """Return a short hash of the templates' content."""
    return fingerprint(json.dumps(astuple(template)).encode() for template in templates)


def read_templates(path: Path) -> tuple[PromptTemplate, ...]:
    """Return the templates in a file; a mistake in any of them is an error."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"cannot read the templates {path}: {error.strerror}") from error
    # Deeply nested brackets exhaust the parser's recursion.
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid TOML: {error}") from error
    tables = content.get("template")
    if not isinstance(tables, list) or not tables or set(content) != {"template"}:
        raise ModelError(f"{path}: expected [[template]] tables and nothing else; found {', '.join(content) or 'none'}")
    templates = tuple(
        _parse_template(table, f"{path}, template {number}") for number, table in enumerate(tables, start=1)
    )
    seen: set[tuple[str, str, str]] = set()
    for template in templates:
        title = (template.method, template.language, template.name)
        if title in seen:
            raise ModelError(
                f"{path}: two templates of {template.method} in {template.language!r} have the name {template.name!r}"
            )
        seen.add(title)
    return templates


def _parse_template(table: object, where: str) -> PromptTemplate:
    fields = _check_fields(table, ("method", "language", "name", "ask"), where)
    method, language, name = (_check_text(fields[key], key, where) for key in ("method", "language", "name"))
    if method not in _METHOD_FORMATS:
        raise ModelError(f"{where}: method is {method!r}; expected one of {', '.join(map(repr, _METHOD_FORMATS))}")
    if not _NAME.match(name) or name in _RESERVED_NAMES:
        raise ModelError(f"{where}: name is {name!r}; expected letters, digits, - and _, and neither 'auto' nor 'all'")
    wordings = fields["ask"]
    if not isinstance(wordings, list) or not wordings:
        raise ModelError(f"{where}: ask is {wordings!r}; expected [[template.ask]] tables")
    if method == "in_template_lp" and len(wordings) > 1:
        raise ModelError(
            f"{where}: in_template_lp has one wording per template; make the others templates of their own"
        )
    return PromptTemplate(
        method, language, name, tuple(_parse_wording(wording, method, f"{where} ({name})") for wording in wordings)
    )


def _parse_wording(table: object, method: str, where: str) -> Wording:
    method_format = _METHOD_FORMATS[method]
    fields = _check_fields(table, ("text", *method_format.answers), where)
    text = _check_text(fields["text"], "text", where)
    if sorted(_PLACEHOLDER.findall(text)) != sorted(method_format.placeholders):
        expected = " and ".join(f"{{{name}}}" for name in method_format.placeholders)
        raise ModelError(f"{where}: the text of {method} must have {expected} once each, and nothing else in braces")
    # The sentence is scored as a continuation, so that nothing may follow it, and its first token must start a word.
    if method == "in_template_lp" and not re.search(r"(\A|\s)\{sentence\}\Z", text):
        raise ModelError(f"{where}: the text must end in {{sentence}}, after a space or a new line")
    answers = [_parse_answers(fields[key], key, where) for key in method_format.answers]
    if len({spelling for spellings in answers for spelling in spellings}) < sum(map(len, answers)):
        raise ModelError(f"{where}: an answer is listed twice")
    return Wording(text, *answers)


def _check_fields(table: object, names: Sequence[str], where: str) -> Mapping[str, object]:
    """Return a TOML table; it must have all these fields and no others."""
    if not isinstance(table, dict):
        raise ModelError(f"{where}: found {table!r}; expected a table with {', '.join(names)}")
    # A misspelled field would otherwise be ignored silently.
    if unknown := next((key for key in table if key not in names), None):
        raise ModelError(
            f"{where}: unknown field {unknown!r}.{suggest_name(unknown, names)} Expected {', '.join(names)}."
        )
    if missing := next((name for name in names if name not in table), None):
        raise ModelError(f"{where}: it has no {missing}; expected {', '.join(names)}")
    return table


def _check_text(value: object, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"{where}: {key} is {value!r}; expected a text")
    return value


def _parse_answers(value: object, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ModelError(f"{where}: {key} is {value!r}; expected a list of answers, such as ['Yes', 'yes']")
    answers = tuple(_check_text(answer, key, where) for answer in value)
    # Together with the space that is added, there would be two, a sequence of tokens that is rare in running text.
    if padded := next((answer for answer in answers if answer != answer.strip()), None):
        raise ModelError(f"{where}: the answer {padded!r} has spaces around it; the space before an answer is added")
    return answers
