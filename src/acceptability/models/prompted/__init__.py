"""Acceptability judgements by prompting a language model, read from the log-probabilities of possible answers.

``prompted:MODEL(method='yes_no')`` prompts the model of any other spec: the last brackets belong to ``prompted``, those
before them to the model, as in ``prompted:causal:DIR(bos=None)(method='which')``. No text is generated.

- ``yes_no`` asks whether a sentence is acceptable; its score is the log-odds of the answers.
- ``which`` asks which sentence of a contrast is better, in both orders.
- ``in_template_lp`` is the log-probability of the sentence after a text that calls it acceptable.
- ``ensemble`` lets every template of yes_no and in_template_lp vote on the two sentences of a contrast.

``which`` follows the metalinguistic prompts of Hu and Levy (2023), the others Ide et al. (2025), with our own wordings.
``template`` names one template or several to be averaged (``plain+labels``, ``all``), ``templates`` a TOML file with
others, in the format that the first lines of ``prompts.toml`` describe; ``chat=True`` puts a question into the user's
turn of the model's chat template.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from acceptability.errors import ModelError, QueryError, shorten, suggest_name
from acceptability.models import load_model
from acceptability.models.files import validate_bool, validate_choice
from acceptability.protocols import EncodedQuery, Model
from acceptability.specs import fingerprint, format_spec
from acceptability.types import Floats, LabelScores, ModelOutput, Query, TokenScores

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


_TEMPLATE_METHODS = {
    "yes_no": ("yes_no",),
    "which": ("which",),
    "in_template_lp": ("in_template_lp",),
    "ensemble": ("yes_no", "in_template_lp"),
}
"""The kinds of templates that each method uses."""

# Part of the prompt: another date would change scores.
_FIXED_DATE = "01 Jan 2025"

InnerScores = Mapping[Query, TokenScores]
PromptWrapper = Callable[[str], str]


@dataclass(frozen=True)
class Question:
    """A prompt with its possible answers.

    Args:
        bad: The spellings of the answer against the sentence.
        good: The spellings of the answer for it.
    """

    prompt: str
    bad: tuple[str, ...]
    good: tuple[str, ...]

    @property
    def queries(self) -> list[Query]:
        """One query per answer: the answer as a continuation of the prompt."""
        return [_make_answer_query(self.prompt, answer) for answer in (*self.bad, *self.good)]

    def logprobs(self, inner_scores: InnerScores) -> list[float]:
        """Return the log-probabilities of the answer against the sentence and of the one for it."""
        # The probabilities of an answer's spellings ("Yes", "yes") are summed.
        return [
            float(
                np.logaddexp.reduce(
                    [_sum_logprobs(inner_scores[_make_answer_query(self.prompt, answer)]) for answer in answers]
                )
            )
            for answers in (self.bad, self.good)
        ]


class PromptMethod(Protocol):
    """A prompting method with its templates."""

    def build_queries(self, query: Query) -> list[Query]:
        """Return the queries for the inner model that replace a query."""
        ...

    def combine_scores(self, query: Query, inner_scores: InnerScores) -> ModelOutput:
        """Return the output for a query, from the inner model's scores of ``build_queries``."""
        ...


@dataclass(frozen=True)
class QuestionMethod:
    """Judges a sentence by the answers to questions, averaged over wordings, then over templates.

    Args:
        build_questions: Returns the questions of one wording for a query.
    """

    templates: tuple[PromptTemplate, ...]
    build_questions: Callable[[Wording, Query], list[Question]]

    def build_queries(self, query: Query) -> list[Query]:
        """Return every answer to every question."""
        return [
            answer_query
            for template in self.templates
            for question in self._questions_for_template(template, query)
            for answer_query in question.queries
        ]

    def combine_scores(self, query: Query, inner_scores: InnerScores) -> LabelScores:
        """Return the mean log-probabilities of the answers against the sentence and for it, as logits."""
        means = [
            _average_columns(
                [question.logprobs(inner_scores) for question in self._questions_for_template(template, query)]
            )
            for template in self.templates
        ]
        bad, good = _average_columns(means).tolist()
        return LabelScores(query.text, (bad, good))

    def _questions_for_template(self, template: PromptTemplate, query: Query) -> list[Question]:
        return [question for wording in template.wordings for question in self.build_questions(wording, query)]


def build_yes_no_questions(wrap: PromptWrapper, wording: Wording, query: Query) -> list[Question]:
    """Return the question whether a sentence is acceptable, as a list of one."""
    return [Question(wrap(wording.fill(sentence=query.text)), wording.bad, wording.good)]


def build_which_questions(wrap: PromptWrapper, wording: Wording, query: Query) -> list[Question]:
    """Return the question which of two sentences is better, in both orders."""
    # Models prefer one of two positions whatever its sentence; over both orders, this preference cancels out.
    first = wrap(wording.fill(first=query.text, second=query.rival))
    second = wrap(wording.fill(first=query.rival, second=query.text))
    return [Question(first, bad=wording.bad, good=wording.good), Question(second, bad=wording.good, good=wording.bad)]


@dataclass(frozen=True)
class InTemplateMethod:
    """Scores the tokens of a sentence after a framing text; their log-probabilities are averaged over templates."""

    templates: tuple[PromptTemplate, ...]

    def build_queries(self, query: Query) -> list[Query]:
        """Return the sentence after each frame; the sentence's own context comes between the two."""
        frames = [wording.fill(sentence="") for template in self.templates for wording in template.wordings]
        return [replace(query, context=frame + query.context, rival="") for frame in frames]

    def combine_scores(self, query: Query, inner_scores: InnerScores) -> TokenScores:
        """Return the scores of the sentence's tokens, which must be the same after every frame."""
        frame_scores = [inner_scores[frame_query] for frame_query in self.build_queries(query)]
        if len({scores.offsets for scores in frame_scores}) > 1:
            raise ModelError(
                f"the model tokenizes {shorten(query.text)!r} differently after different frames, so that there is no "
                "mean per token. Use one template, or end all frames in the same way."
            )
        means = _average_columns([scores.logprobs for scores in frame_scores])
        return replace(frame_scores[0], logprobs=means.astype(np.float32))


@dataclass(frozen=True)
class EnsembleMethod:
    """Lets several methods vote on which of two sentences is better, with one vote each."""

    voters: tuple[PromptMethod, ...]

    def build_queries(self, query: Query) -> list[Query]:
        """Return the queries of each voter for both sentences."""
        return [
            inner_query
            for voter in self.voters
            for sentence in _make_contrast_queries(query)
            for inner_query in voter.build_queries(sentence)
        ]

    def combine_scores(self, query: Query, inner_scores: InnerScores) -> LabelScores:
        """Return the shares of the voters against the sentence and for it; a tie counts for neither."""
        values = np.array(
            [
                [
                    _reduce_for_vote(voter.combine_scores(sentence, inner_scores))
                    for sentence in _make_contrast_queries(query)
                ]
                for voter in self.voters
            ]
        )
        gaps = values[:, 0] - values[:, 1]
        # A gap of exactly 0 is a vote for neither sentence, so that the shares may sum to less than 1.
        return LabelScores(query.text, (float((gaps < 0).mean()), float((gaps > 0).mean())))


@dataclass(frozen=True)
class PromptedEncoding:
    """A query, with the encodings of the inner queries that replace it."""

    query: Query
    parts: Mapping[Query, EncodedQuery]

    @property
    def size(self) -> int:
        """The number of tokens of all inner queries."""
        return sum(part.size for part in self.parts.values())


@dataclass(frozen=True)
class PromptedModel(Model):
    """A language model that is prompted for its judgement.

    Args:
        inner: The model that is prompted.
        method: ``yes_no``, ``which``, ``in_template_lp`` or ``ensemble``.
        chat: Whether questions are put into the user's turn of the inner model's chat template.
    """

    inner: Model
    method: str
    language: str
    templates: tuple[PromptTemplate, ...]
    chat: bool

    @property
    def signature(self) -> str:
        """The inner model, the method, and the templates with a hash of their wordings."""
        # With "ensemble", templates of two methods can have the same name.
        names = "+".join(dict.fromkeys(template.name for template in self.templates))
        options = {
            "method": self.method,
            "language": self.language,
            "template": f"{names}@{hash_templates(self.templates)}",
            "chat": self.chat,
        }
        return format_spec(f"prompted:{self.inner.signature}", options)

    @property
    def needs_rival(self) -> bool:
        """Whether a sentence is compared with the other one of its contrast."""
        return self.method in ("which", "ensemble")

    @property
    def budget(self) -> int:
        """The inner model's maximum number of token positions in a batch."""
        return self.inner.budget

    @property
    def device_class(self) -> str | None:
        """The inner model's class of device, if that computes in half precision."""
        return self.inner.device_class

    @cached_property
    def prompt_method(self) -> PromptMethod:
        """The method, with its templates."""
        if self.method == "ensemble":
            return EnsembleMethod(
                tuple(self._build_method(template.method, (template,)) for template in self.templates)
            )
        return self._build_method(self.method, self.templates)

    def _build_method(self, method: str, templates: tuple[PromptTemplate, ...]) -> PromptMethod:
        if method == "in_template_lp":
            return InTemplateMethod(templates)
        build_questions = build_which_questions if method == "which" else build_yes_no_questions
        return QuestionMethod(templates, lambda wording, query: build_questions(self._wrap_prompt, wording, query))

    def _wrap_prompt(self, prompt: str) -> str:
        return _apply_chat_template(self.inner, prompt) if self.chat else prompt

    def encode(self, queries: Sequence[Query]) -> list[PromptedEncoding]:
        """Return the encodings of the inner queries of each query."""
        inner_queries = [self._build_inner_queries(index, query) for index, query in enumerate(queries)]
        # Queries share inner queries: with ``which``, both sentences of a contrast have the same questions.
        distinct = list(dict.fromkeys(part for parts in inner_queries for part in parts))
        try:
            encoded = dict(zip(distinct, self.inner.encode(distinct), strict=True))
        except QueryError as error:
            # The inner model's index is one of the distinct inner queries; the user knows his own sentences only.
            owner = next(index for index, parts in enumerate(inner_queries) if distinct[error.index] in parts)
            raise QueryError(owner, f"with the method {self.method}, {error.problem}") from error
        return [
            PromptedEncoding(query, {part: encoded[part] for part in parts})
            for query, parts in zip(queries, inner_queries, strict=True)
        ]

    def _build_inner_queries(self, index: int, query: Query) -> list[Query]:
        # Their templates present a sentence as a whole.
        if self.method != "in_template_lp" and (query.target or query.context):
            raise QueryError(index, "questions are about whole sentences, not regions or continuations")
        if self.needs_rival and not query.rival:
            raise QueryError(index, f"{self.method} compares it with another sentence, and there is none")
        return self.prompt_method.build_queries(query)

    def run(self, batch: Sequence[PromptedEncoding]) -> list[ModelOutput]:
        """Return the judgements; inner queries that several queries share are scored once."""
        parts = {part: encoded_part for encoded in batch for part, encoded_part in encoded.parts.items()}
        inner_scores: dict[Query, TokenScores] = {}
        for part, scores in zip(parts, self.inner.run(list(parts.values())), strict=True):
            # Known only now: the protocol of models does not say whether one is a classifier.
            if not isinstance(scores, TokenScores):
                raise ModelError(
                    f"{self.inner.signature} gives no log-probabilities of tokens, so it cannot be prompted"
                )
            inner_scores[part] = scores
        return [self.prompt_method.combine_scores(encoded.query, inner_scores) for encoded in batch]


def open_model(
    location: str,
    *,
    method: str = "yes_no",
    language: str = "en",
    template: str = "auto",
    templates: str | None = None,
    chat: bool = False,
) -> PromptedModel:
    """Return a model that is prompted for judgements.

    Args:
        location: The spec of the model that is prompted.
        method: ``yes_no``, ``which``, ``in_template_lp`` or ``ensemble``.
        language: The language of the templates, such as "en".
        template: The names of templates, joined by "+"; "auto" for the default, "all" for all of the method.
        templates: A TOML file with templates; None for those of this package.
        chat: Whether questions are put into the user's turn of the model's chat template.
    """
    if not location:
        raise ModelError("prompted: which model? Write prompted:MODEL(method='yes_no'), such as prompted:smollm2-135m")
    validate_choice("method", method, tuple(_TEMPLATE_METHODS))
    text_options = {"language": language, "template": template, "templates": "" if templates is None else templates}
    for name, value in text_options.items():
        if not isinstance(value, str):
            raise ModelError(f"prompted: {name} is {value!r}; expected a text")
    path = DEFAULT_TEMPLATES if templates is None else Path(templates).expanduser()
    chosen_templates = choose_templates(path, _TEMPLATE_METHODS[method], language, template)
    inner = load_model(location)
    if validate_bool("chat", chat):
        if method == "in_template_lp":
            raise ModelError("prompted: in_template_lp has no question that chat=True could wrap; remove it")
        _require_causal_model(inner)
    return PromptedModel(inner, method, language, chosen_templates, chat)


def _apply_chat_template(inner: Model, prompt: str) -> str:
    """Return a prompt as the user's turn of a chat, up to where the answer begins."""
    model = _require_causal_model(inner)
    tokenizer = model.files.tokenizer
    if not tokenizer.chat_template:
        raise ModelError(f"{model.files.name} has no chat template; remove chat=True")
    turns = [{"role": "user", "content": prompt}]
    # Some chat templates insert today's date unless they are given one, and scores must not depend on the day.
    options = {"tokenize": False, "add_generation_prompt": True, "date_string": _FIXED_DATE}
    text: str = tokenizer.apply_chat_template(turns, **options)
    # Templates begin with the start token, and so does the model's own encoding: it must not come twice.
    return text.removeprefix(model.bos or "")


def _require_causal_model(inner: Model) -> Any:
    """Return a causal model; no other kind has a chat template."""
    from acceptability.models.hf.causal import Causal

    if not isinstance(inner, Causal):
        raise ModelError(f"prompted: chat=True needs the chat template of a causal model; {inner.signature} has none")
    return inner


def _make_answer_query(prompt: str, answer: str) -> Query:
    """Return the query for an answer after a prompt.

    The target includes the space between the two, since tokenizers differ in whether it is a token of its own.
    """
    text = Query(answer, prompt).full_text
    return Query(text, target=(len(prompt), len(text)))


def _make_contrast_queries(query: Query) -> tuple[Query, Query]:
    return Query(query.text), Query(query.rival)


def _reduce_for_vote(scores: ModelOutput) -> float:
    """Return the value by which a voter compares sentences: the log-odds, or the log-probability."""
    return scores.logits[1] - scores.logits[0] if isinstance(scores, LabelScores) else _sum_logprobs(scores)


def _sum_logprobs(scores: TokenScores) -> float:
    # In float64, so that rounding neither makes nor breaks a tie between two sentences.
    return float(scores.logprobs.sum(dtype=np.float64))


def _average_columns(rows: Sequence[ArrayLike]) -> Floats:
    """Return the mean of each column."""
    means: Floats = np.asarray(rows, dtype=np.float64).mean(axis=0)
    return means
