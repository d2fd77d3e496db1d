"""Judgement by asking: a language model is put a question about a sentence, and its answer is read off.

``asking:MODEL(method='yes_no')`` asks the model of any other spelling: the last brackets belong
to ``asking``, those before them to the model, as in ``asking:causal:DIR(bos=None)(method='which')``.
Answers are read from the log-probabilities of their tokens, never from generated text.

- ``yes_no`` asks of each sentence whether it is acceptable; its score is the log-odds of the answers.
- ``which`` asks which sentence of a contrast is the better one, in both orders.
- ``in_template_lp`` gives the log-probability of the sentence after a text that calls it acceptable.
- ``ensemble`` lets every template of yes_no and in_template_lp vote on the two sentences of a contrast.

``which`` follows the metalinguistic prompts of Hu and Levy (2023), the others Ide et al. (2025); the wordings are ours.
``template`` names one template or several to be averaged (``plain+labels``, ``all``), ``templates`` a
TOML file with other ones; ``chat=True`` puts a question as the user's turn of the model's chat template.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from acceptability.errors import ModelError, QueryError, shorten
from acceptability.models import load_model
from acceptability.models.files import checked_bool, checked_choice
from acceptability.models.templates import OURS, Ask, Template, chosen, templates_hash
from acceptability.protocols import Encoded, Model
from acceptability.spelling import write
from acceptability.types import Floats, LabelScores, Query, Said, TokenScores

_METHODS = {
    "yes_no": ("yes_no",),
    "which": ("which",),
    "in_template_lp": ("in_template_lp",),
    "ensemble": ("yes_no", "in_template_lp"),
}
"""Whose templates each method takes."""

_SOME_DAY = "01 Jan 2025"

Heard = Mapping[Query, TokenScores]
Wrap = Callable[[str], str]


@dataclass(frozen=True)
class Question:
    """A prompt, and the spellings of the answers that speak against a sentence and for it."""

    prompt: str
    bad: tuple[str, ...]
    good: tuple[str, ...]

    @property
    def queries(self) -> list[Query]:
        """Each answer after the prompt."""
        return [_answered(self.prompt, answer) for answer in (*self.bad, *self.good)]

    def logprobs(self, heard: Heard) -> list[float]:
        """Return the log-probability of being answered against the sentence, and for it."""
        return [
            float(np.logaddexp.reduce([_total(heard[_answered(self.prompt, answer)]) for answer in answers]))
            for answers in (self.bad, self.good)
        ]


class Way(Protocol):
    """A method of asking, with its templates."""

    def queries(self, query: Query) -> list[Query]:
        """Return what the model is asked instead of the query."""
        ...

    def said(self, query: Query, heard: Heard) -> Said:
        """Return what its answers come to."""
        ...


@dataclass(frozen=True)
class Answers:
    """Judges a sentence by the answers to questions; wordings are averaged, then templates.

    Args:
        put: Makes the questions of one wording.
    """

    templates: tuple[Template, ...]
    put: Callable[[Ask, Query], list[Question]]

    def queries(self, query: Query) -> list[Query]:
        """Return every answer to every question."""
        return [
            each for template in self.templates for question in self._of(template, query) for each in question.queries
        ]

    def said(self, query: Query, heard: Heard) -> LabelScores:
        """Return the mean log-probabilities of the answers against the sentence and for it."""
        means = [_mean([each.logprobs(heard) for each in self._of(template, query)]) for template in self.templates]
        bad, good = _mean(means).tolist()
        return LabelScores(query.text, (bad, good))

    def _of(self, template: Template, query: Query) -> list[Question]:
        return [question for ask in template.asks for question in self.put(ask, query)]


def about_one(wrap: Wrap, ask: Ask, query: Query) -> list[Question]:
    """Return the question whether a sentence is acceptable."""
    return [Question(wrap(ask.filled(sentence=query.text)), ask.bad, ask.good)]


def about_two(wrap: Wrap, ask: Ask, query: Query) -> list[Question]:
    """Return the question which of two sentences is better, with either in the first place."""
    first = wrap(ask.filled(first=query.text, second=query.rival))
    second = wrap(ask.filled(first=query.rival, second=query.text))
    return [Question(first, bad=ask.bad, good=ask.good), Question(second, bad=ask.good, good=ask.bad)]


@dataclass(frozen=True)
class InTemplate:
    """Gives the tokens of a sentence after each frame; their log-probabilities are averaged over frames."""

    templates: tuple[Template, ...]

    def queries(self, query: Query) -> list[Query]:
        """Return the sentence after each frame; a context of its own comes between the two."""
        frames = [ask.filled(sentence="") for template in self.templates for ask in template.asks]
        return [replace(query, context=frame + query.context, rival="") for frame in frames]

    def said(self, query: Query, heard: Heard) -> TokenScores:
        """Return the sentence's tokens, which must be the same in every frame."""
        found = [heard[each] for each in self.queries(query)]
        if len({each.offsets for each in found}) > 1:
            raise ModelError(
                f"the model cuts {shorten(query.text)!r} into other tokens after one frame than after another, so "
                "that they have no mean. Take one template, or end all frames in the same way."
            )
        return replace(found[0], logprobs=_mean([each.logprobs for each in found]).astype(np.float32))


@dataclass(frozen=True)
class Votes:
    """Lets several ways vote on which of two sentences is better: one vote each, the majority wins."""

    voters: tuple[Way, ...]

    def queries(self, query: Query) -> list[Query]:
        """Return what each voter asks of either sentence."""
        return [each for voter in self.voters for one in _both(query) for each in voter.queries(one)]

    def said(self, query: Query, heard: Heard) -> LabelScores:
        """Return the share of the voters against the sentence, and for it; a tie is for neither."""
        numbers = np.array([[_number(voter.said(one, heard)) for one in _both(query)] for voter in self.voters])
        gaps = numbers[:, 0] - numbers[:, 1]
        return LabelScores(query.text, (float((gaps < 0).mean()), float((gaps > 0).mean())))


@dataclass(frozen=True)
class Asked:
    """A query as the inner model reads it: everything it is asked instead."""

    query: Query
    parts: Mapping[Query, Encoded]

    @property
    def size(self) -> int:
        """The tokens of all that is asked."""
        return sum(part.size for part in self.parts.values())


@dataclass(frozen=True)
class Asking:
    """A language model that is asked for its judgement.

    Args:
        inner: The model that is asked.
        method: ``yes_no``, ``which``, ``in_template_lp`` or ``ensemble``.
        chat: Whether questions are put as the user's turn of the inner model's chat template.
    """

    inner: Model
    method: str
    language: str
    templates: tuple[Template, ...]
    chat: bool

    @property
    def signature(self) -> str:
        """The inner model, the method, and the templates with a hash of their wordings."""
        names = "+".join(dict.fromkeys(each.name for each in self.templates))
        options = {
            "method": self.method,
            "language": self.language,
            "template": f"{names}@{templates_hash(self.templates)}",
            "chat": self.chat,
        }
        return write(f"asking:{self.inner.signature}", options)

    @property
    def needs_rival(self) -> bool:
        """Whether a sentence is weighed against the other one of its contrast."""
        return self.method in ("which", "ensemble")

    @property
    def budget(self) -> int:
        """As many token positions at once as suit the inner model."""
        return int(getattr(self.inner, "budget", 1024))

    @cached_property
    def way(self) -> Way:
        """The method, with its templates."""
        if self.method == "ensemble":
            return Votes(tuple(self._way(each.method, (each,)) for each in self.templates))
        return self._way(self.method, self.templates)

    def _way(self, method: str, templates: tuple[Template, ...]) -> Way:
        if method == "in_template_lp":
            return InTemplate(templates)
        put = about_two if method == "which" else about_one
        return Answers(templates, lambda ask, query: put(self._wrapped, ask, query))

    def _wrapped(self, prompt: str) -> str:
        return _as_turn(self.inner, prompt) if self.chat else prompt

    def encode(self, queries: Sequence[Query]) -> list[Asked]:
        """Return all that the inner model is asked instead of each query."""
        asked = [self._asked(index, query) for index, query in enumerate(queries)]
        distinct = list(dict.fromkeys(part for parts in asked for part in parts))
        try:
            coded = dict(zip(distinct, self.inner.encode(distinct), strict=True))
        except QueryError as error:
            owner = next(index for index, parts in enumerate(asked) if distinct[error.index] in parts)
            raise QueryError(owner, f"asked by {self.method}, {error.problem}") from error
        return [
            Asked(query, {part: coded[part] for part in parts}) for query, parts in zip(queries, asked, strict=True)
        ]

    def _asked(self, index: int, query: Query) -> list[Query]:
        if self.method != "in_template_lp" and (query.target or query.context):
            raise QueryError(index, "questions are about whole sentences, not regions or continuations")
        if self.needs_rival and not query.rival:
            raise QueryError(index, f"{self.method} weighs it against another sentence, and there is none")
        return self.way.queries(query)

    def run(self, batch: Sequence[Asked]) -> list[Said]:
        """Return what the inner model's answers come to; what several queries ask is asked once."""
        parts = {part: coded for each in batch for part, coded in each.parts.items()}
        heard: dict[Query, TokenScores] = {}
        for part, said in zip(parts, self.inner.run(list(parts.values())), strict=True):
            if not isinstance(said, TokenScores):
                raise ModelError(f"{self.inner.signature} gives no log-probabilities of tokens, so it cannot be asked")
            heard[part] = said
        return [self.way.said(each.query, heard) for each in batch]


def open_model(
    place: str,
    *,
    method: str = "yes_no",
    language: str = "en",
    template: str = "auto",
    templates: str | None = None,
    chat: bool = False,
) -> Asking:
    """Return the model of another spelling, to be asked for judgements."""
    if not place:
        raise ModelError("asking: which model? Write asking:MODEL(method='yes_no'), such as asking:smollm2-135m")
    checked_choice("method", method, tuple(_METHODS))
    given = {"language": language, "template": template} | ({} if templates is None else {"templates": templates})
    for name, value in given.items():
        if not isinstance(value, str):
            raise ModelError(f"asking: {name} is {value!r}; expected a text")
    path = OURS if templates is None else Path(templates).expanduser()
    found = chosen(path, _METHODS[method], language, template)
    inner = load_model(place)
    if checked_bool("chat", chat):
        if method == "in_template_lp":
            raise ModelError("asking: in_template_lp asks no question, so chat=True has nothing to wrap; leave it away")
        _causal(inner)
    return Asking(inner, method, language, found, chat)


def _as_turn(inner: Model, prompt: str) -> str:
    """Return a prompt as the user's turn, up to where the answer begins."""
    model = _causal(inner)
    tokenizer = model.files.tokenizer
    if not tokenizer.chat_template:
        raise ModelError(f"{model.files.name} has no chat template; leave chat=True away")
    turns = [{"role": "user", "content": prompt}]
    # Some chat templates tell the model what day it is, unless they are given one; an answer must not depend on it.
    options = {"tokenize": False, "add_generation_prompt": True, "date_string": _SOME_DAY}
    text: str = tokenizer.apply_chat_template(turns, **options)
    # The model adds the start token itself.
    return text.removeprefix(model.bos or "")


def _causal(inner: Model) -> Any:
    """Return a model whose tokenizer may have a chat template."""
    from acceptability.models.causal import Causal

    if not isinstance(inner, Causal):
        raise ModelError(f"asking: chat=True needs the chat template of a causal model; {inner.signature} has none")
    return inner


def _answered(prompt: str, answer: str) -> Query:
    """Return the query for an answer together with the space before it, which may be a token of its own."""
    text = Query(answer, prompt).full
    return Query(text, target=(len(prompt), len(text)))


def _both(query: Query) -> tuple[Query, Query]:
    return Query(query.text), Query(query.rival)


def _number(said: Said) -> float:
    """Return what the sentences of a vote are compared by: log-odds, or the log-probability."""
    return said.logits[1] - said.logits[0] if isinstance(said, LabelScores) else _total(said)


def _total(said: TokenScores) -> float:
    return float(said.logprobs.sum(dtype=np.float64))


def _mean(rows: Sequence[ArrayLike]) -> Floats:
    """Return the mean of each column."""
    means: Floats = np.asarray(rows, dtype=np.float64).mean(axis=0)
    return means
