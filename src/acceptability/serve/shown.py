"""What models say, as people and programs see it: scores, surprisals of tokens, which sentence is better."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from acceptability.errors import AcceptabilityError
from acceptability.scoring import Judgement
from acceptability.serve.judging import Judge, Judges
from acceptability.types import TokenScores

_BITS_A_SHADE = 2.0
_SHADES = 10


@dataclass(frozen=True)
class Token:
    """A token as it stands in the text, how surprising it is, and how dark it is shown: 0 to 9."""

    token: str
    surprisal_bits: float
    shade: int


@dataclass(frozen=True)
class Sentence:
    """A sentence with its score; a classifier has no tokens to show."""

    text: str
    score: float
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Verdict:
    """What one model makes of sentences.

    Args:
        scale: What the scores are: "log-probability", in nats, or "log-odds".
        better: Which sentence has the highest score, counted from 1; None for a tie or a single one.
        by: How much higher it is than the next.
        problem: Why there is no answer.
    """

    model: str
    about: str
    sentences: tuple[Sentence, ...] = ()
    scale: str = ""
    better: int | None = None
    by: float | None = None
    problem: str = ""


async def verdicts(judges: Judges, names: Sequence[str], sentences: Sequence[str]) -> list[Verdict]:
    """Return what each model makes of the sentences; all are asked at the same time."""
    asked = [judges[name] for name in names]
    return list(await asyncio.gather(*(_verdict(judge, sentences) for judge in asked)))


def summary(found: Sequence[Verdict]) -> str:
    """Return in one sentence what the models make of a pair; nothing for a single sentence.

    >>> summary([Verdict("a", "", better=1, by=2.0), Verdict("b", "", better=2, by=1.0), Verdict("c", "", better=1)])
    '2 of 3 models find the first sentence better, 1 the second.'
    """
    if not any(len(each.sentences) > 1 or each.better for each in found):
        return ""
    first, second = (sum(each.better == place for each in found) for place in (1, 2))
    answered = sum(not each.problem for each in found)
    ties = answered - first - second
    text = f"{first} of {answered} models find the first sentence better, {second} the second"
    return text + (f"; for {ties} they are equal." if ties else ".")


async def _verdict(judge: Judge, sentences: Sequence[str]) -> Verdict:
    try:
        found = await asyncio.wrap_future(judge.ask(sentences))
    except AcceptabilityError as error:
        return Verdict(judge.name, judge.about, problem=" ".join(str(error).split()))
    is_language_model = isinstance(found[0].said, TokenScores)
    return Verdict(
        judge.name,
        judge.about,
        tuple(Sentence(each.text, each.score, _tokens(each)) for each in found),
        "log-probability" if is_language_model else "log-odds",
        *_better([each.score for each in found]),
    )


def _better(scores: Sequence[float]) -> tuple[int | None, float | None]:
    """Return which score is highest, from 1, and by how much."""
    if len(scores) < 2:
        return None, None
    first, second = sorted(scores, reverse=True)[:2]
    return (None, 0.0) if first == second else (list(scores).index(first) + 1, first - second)


def _tokens(judgement: Judgement) -> tuple[Token, ...]:
    said = judgement.said
    if not isinstance(said, TokenScores):
        return ()
    rows = zip(said.tokens, said.offsets, said.logprobs.tolist(), strict=True)
    return tuple(_token(said.text[start:end].strip() or token, logprob) for token, (start, end), logprob in rows)


def _token(text: str, logprob: float) -> Token:
    # A probability of 1 is a surprisal of 0, not of -0.
    bits = -logprob / math.log(2) + 0.0
    return Token(text, bits, min(_SHADES - 1, max(0, int(bits / _BITS_A_SHADE))))
