"""From the log-probabilities of tokens to one number for a sentence.

Every reduction takes what a model said and returns a number where higher means
more acceptable; logs are natural. Names and formulas follow Lau, Clark and
Lappin (2017), Pauls and Klein (2012) for SLOR, Lau et al. (2020) for pen_lp,
Tjuatja et al. (2025) for MORCELA, and Vázquez Martínez (2021) for signed confidence.
A reduction is a value: ``repr`` gives the spelling that makes it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np

from acceptability.errors import ScoreError, shorten
from acceptability.protocols import Reduction
from acceptability.spelling import write
from acceptability.types import Floats, LabelScores, Said, TokenScores
from acceptability.unigrams import CHOICES, UnigramTable, by_unit, coverage, load_unigrams


def _tokens(said: Said, reduction: object) -> TokenScores:
    if isinstance(said, TokenScores):
        return said
    raise ScoreError(
        f"{reduction!r} reduces token log-probabilities, which a classifier does not give. "
        "Use log_odds, p_acceptable or signed_confidence."
    )


def _logits(said: Said, reduction: object) -> tuple[float, float]:
    if isinstance(said, LabelScores):
        return said.logits
    raise ScoreError(f"{reduction!r} reads a classifier's logits; this is a language model. Use lp, mean_lp, slor, ...")


class _Spelled:
    """Gives a reduction the ``repr`` that reads back."""

    name: ClassVar[str]

    def __repr__(self) -> str:
        options = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return write(self.name, options)

    @property
    def signature(self) -> str:
        """The spelling, with whatever else can change the number."""
        return repr(self)


@dataclass(frozen=True, repr=False)
class LP(_Spelled):
    """The log-probability of the whole sentence.

    >>> LP()(TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1, -3], dtype=np.float32)))
    -4.0
    """

    name = "lp"

    def __call__(self, said: Said) -> float:
        return float(_tokens(said, self).logprobs.sum(dtype=np.float64))


@dataclass(frozen=True, repr=False)
class MeanLP(_Spelled):
    """The mean log-probability of its tokens ("norm")."""

    name = "mean_lp"

    def __call__(self, said: Said) -> float:
        return float(_tokens(said, self).logprobs.mean(dtype=np.float64))


@dataclass(frozen=True, repr=False)
class PenLP(_Spelled):
    """The log-probability divided by ((5 + n) / 6) ^ 0.8, a softer penalty on length."""

    name = "pen_lp"

    def __call__(self, said: Said) -> float:
        logprobs = _tokens(said, self).logprobs
        return float(logprobs.sum(dtype=np.float64)) / float(((5 + len(logprobs)) / 6) ** 0.8)


@dataclass(frozen=True, repr=False)
class AgainstUnigrams(_Spelled):
    """Sets log-probabilities against those of single words or tokens."""

    unigrams: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.unigrams, str):
            raise ScoreError(f"{self.name}: unigrams is {self.unigrams!r}; expected a text. {CHOICES}")

    @cached_property
    def table(self) -> UnigramTable:
        """The unigram table; naming none is an error that tells the choices."""
        if not self.unigrams:
            raise ScoreError(f"{self.name} needs a table of unigram probabilities. {CHOICES}")
        return load_unigrams(self.unigrams)

    @property
    def signature(self) -> str:
        """The spelling, with the table's content and unit."""
        return f"{self!r}[{self.table.signature},per {self.table.unit}]"

    def units(self, said: Said) -> tuple[Floats, Floats]:
        """Return the log-probabilities by model and by unigrams."""
        return by_unit(_tokens(said, self), self.table)

    def coverage(self, said: Said) -> tuple[int, int]:
        """Return how many units the table does not list, and how many there are."""
        return coverage(_tokens(said, self), self.table)


@dataclass(frozen=True, repr=False)
class SLOR(AgainstUnigrams):
    """What the context adds to the words alone, per unit: (l - u) / n."""

    name = "slor"

    def __call__(self, said: Said) -> float:
        return slor(*self.units(said))


def slor(logprobs: Floats, unigrams: Floats) -> float:
    """Return what the context adds to the words alone, per unit.

    >>> slor(np.array([-1.0, -3.0]), unigrams=np.array([-2.0, -6.0]))
    2.0
    """
    # Subtract unit by unit: NumPy then refuses two different tokenisations.
    return float((logprobs - unigrams).mean())


@dataclass(frozen=True, repr=False)
class NormLPSub(AgainstUnigrams):
    """The log-probability minus that of the words alone: l - u."""

    name = "norm_lp_sub"

    def __call__(self, said: Said) -> float:
        logprobs, unigrams = self.units(said)
        return float((logprobs - unigrams).sum())


@dataclass(frozen=True, repr=False)
class NormLPDiv(AgainstUnigrams):
    """The log-probability divided by that of the words alone: -(l / u)."""

    name = "norm_lp_div"

    def __call__(self, said: Said) -> float:
        logprobs, unigrams = self.units(said)
        return -float(logprobs.sum() / unigrams.sum())


@dataclass(frozen=True, repr=False)
class Morcela(AgainstUnigrams):
    """SLOR with fitted weights: (l - beta * u + gamma) / n."""

    name = "morcela"
    beta: float = 1.0
    gamma: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("beta", self.beta), ("gamma", self.gamma)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e30:
                raise ScoreError(f"morcela: {name} is {value!r}; expected a number")

    def __call__(self, said: Said) -> float:
        logprobs, unigrams = self.units(said)
        return float((logprobs.sum() - self.beta * unigrams.sum() + self.gamma) / len(logprobs))


@dataclass(frozen=True, repr=False)
class _ByWord(AgainstUnigrams):
    """Reads the sentence's words one by one: -log p(w) / log p_u(w), lowest first."""

    def ratios(self, said: Said) -> Floats:
        """Return the ratio of each word, sorted from the least expected up."""
        logprobs, unigrams = self.units(said)
        return np.sort(-logprobs / unigrams)


@dataclass(frozen=True, repr=False)
class WordLPMin(_ByWord):
    """The k-th lowest word; 1 is the least expected of all."""

    name = "word_lp_min"
    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ScoreError(f"word_lp_min: k is {self.k!r}; expected a whole number from 1")

    def __call__(self, said: Said) -> float:
        ratios = self.ratios(said)
        if self.k > len(ratios):
            raise ScoreError(f"{said.text!r} has {len(ratios)} words; word_lp_min(k={self.k}) needs {self.k}")
        return float(ratios[self.k - 1])


@dataclass(frozen=True, repr=False)
class WordLPMean(_ByWord):
    """The mean over all words."""

    name = "word_lp_mean"

    def __call__(self, said: Said) -> float:
        return float(self.ratios(said).mean())


@dataclass(frozen=True, repr=False)
class WordLPMeanQ1(_ByWord):
    """The mean over the lowest quarter of the words."""

    name = "word_lp_mean_q1"

    def __call__(self, said: Said) -> float:
        return _lowest(self.ratios(said), 1)


@dataclass(frozen=True, repr=False)
class WordLPMeanQ2(_ByWord):
    """The mean over the lowest two quarters of the words."""

    name = "word_lp_mean_q2"

    def __call__(self, said: Said) -> float:
        return _lowest(self.ratios(said), 2)


def _lowest(ratios: Floats, quarters: int) -> float:
    count = max(1, math.ceil(len(ratios) * quarters / 4))
    return float(ratios[:count].mean())


@dataclass(frozen=True, repr=False)
class Exp(_Spelled):
    """e to the power of another reduction, as Niu and Penn (2020) correlate it."""

    name = "exp"
    of: Reduction

    def __post_init__(self) -> None:
        if not callable(self.of):
            raise ScoreError(f"exp: {self.of!r} is no reduction; write exp(lp), exp(mean_lp), ...")

    @property
    def signature(self) -> str:
        """That of the reduction inside, raised."""
        return f"exp({self.of.signature})"

    def __call__(self, said: Said) -> float:
        power = self.of(said)
        if not -700 < power < 700:
            raise ScoreError(f"{shorten(said.text)!r}: e to the power of {power:.0f} is beyond what numbers can tell")
        return math.exp(power)


def against_unigrams(reduction: Reduction) -> AgainstUnigrams | None:
    """Return the reduction that reads a unigram table: this one, or the one that it raises; None if neither does."""
    while isinstance(reduction, Exp):
        reduction = reduction.of
    return reduction if isinstance(reduction, AgainstUnigrams) else None


@dataclass(frozen=True, repr=False)
class LogOdds(_Spelled):
    """A classifier's log-odds of "acceptable": 0 is undecided.

    >>> LogOdds()(LabelScores("a b", (-1.0, 2.0)))
    3.0
    """

    name = "log_odds"

    def __call__(self, said: Said) -> float:
        bad, good = _logits(said, self)
        return good - bad


@dataclass(frozen=True, repr=False)
class _Tempered(_Spelled):
    """Reads a classifier's log-odds divided by a temperature; 1 leaves them as they are, and is not written."""

    temperature: float = 1.0

    def __post_init__(self) -> None:
        given = self.temperature
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
            raise ScoreError(f"{self.name}: temperature is {given!r}; expected a number above 0")

    def __repr__(self) -> str:
        return write(self.name, {} if self.temperature == 1 else {"temperature": self.temperature})

    def odds(self, said: Said) -> float:
        """Return the log-odds of "acceptable" at the temperature."""
        bad, good = _logits(said, self)
        return (good - bad) / self.temperature


@dataclass(frozen=True, repr=False)
class PAcceptable(_Tempered):
    """A classifier's probability of "acceptable".

    Args:
        temperature: What log-odds are divided by first; `acceptability calibrate` fits it.

    >>> PAcceptable(temperature=2.0)(LabelScores("a b", (0.0, 0.0)))
    0.5
    """

    name = "p_acceptable"

    def __call__(self, said: Said) -> float:
        return float(np.exp(-np.logaddexp(0.0, -self.odds(said))))


@dataclass(frozen=True, repr=False)
class SignedConfidence(_Tempered):
    """The label, +1 or -1, times the classifier's largest probability.

    Args:
        temperature: What log-odds are divided by first; `acceptability calibrate` fits it.

    >>> SignedConfidence()(LabelScores("a b", (0.0, 0.0)))
    0.5
    """

    name = "signed_confidence"

    def __call__(self, said: Said) -> float:
        bad, good = _logits(said, self)
        confidence = float(np.exp(-np.logaddexp(0.0, -abs(self.odds(said)))))
        return confidence if good >= bad else -confidence
