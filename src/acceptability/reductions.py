"""Reductions: from the token log-probabilities or logits of a sentence to one number, its score.

Every reduction takes a model's output and returns a number where higher means more
acceptable; logs are natural. Names and formulas follow Lau, Clark and Lappin (2017),
Pauls and Klein (2012) for SLOR, Lau et al. (2020) for pen_lp, Liu et al. (2024) for slln_lp, Tjuatja
et al. (2025) for MORCELA, and Vázquez Martínez (2021) for signed confidence. A reduction is a value:
its ``repr`` is the spec that creates it again. A new one is a class here, with
``repr=False`` and its name in the registry as a class attribute without annotation, a name in
``registry.py``, and a case in ``tests/test_reductions.py``.

SLOR and its relatives subtract unigram log-probabilities, the probabilities of words or
tokens by themselves. Their table is an option, ``slor(unigrams='wordfreq:en')`` or
``slor(unigrams='counts.tsv')``, and its unit, word or token, is the unit that SLOR counts.

A unigram file has two tab-separated columns under a header: ``word`` or ``token``, and
``count`` (with add-one smoothing, also for units missing from the file) or ``logprob``
(natural logs; a missing unit is an error). Words are looked up in lower case unless the
file itself has capitals. A row ``<unk>`` (or ``<UNK>``) stands for all units missing from the
file. It holds the share of all of them together, which is right for a model that reads them as
``<unk>``, and is shared out by their spelling where the model's own is (``unknown='spelling'``), but
makes each of them too probable for a model that distinguishes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from acceptability.errors import MissingExtra, ScoreError, SuiteError, shorten
from acceptability.outputs import TokenColumns
from acceptability.protocols import Reduction
from acceptability.specs import fingerprint, format_spec
from acceptability.text.io import parse_number, read_lines
from acceptability.types import Floats, LabelScores, ModelOutput, TokenScores

_SUM_BUFFER = 8192
"""The number of elements that NumPy converts to float64 at once for a sum; longer rows are summed in such pieces."""


def _require_tokens(output: ModelOutput, reduction: object) -> TokenScores:
    if isinstance(output, TokenScores):
        return output
    raise ScoreError(
        f"{reduction!r} reduces token log-probabilities, which a classifier does not give. "
        "Use log_odds, p_acceptable or signed_confidence."
    )


def _require_logits(output: ModelOutput, reduction: object) -> tuple[float, float]:
    if isinstance(output, LabelScores):
        return output.logits
    raise ScoreError(f"{reduction!r} reads a classifier's logits; this is a language model. Use lp, mean_lp, slor, ...")


class NamedReduction:
    """The base of reductions, plug-ins' too: gives a ``repr`` that is the spec, and a signature that is the same.

    A class that derives from it is a frozen dataclass with ``repr=False``, and has ``name``, its name in the registry.
    A reduction that reads a file overrides ``signature``, to which it adds a hash of the content.
    """

    name: ClassVar[str]

    def __repr__(self) -> str:
        options = {option.name: getattr(self, option.name) for option in fields(self)}  # type: ignore[arg-type]
        return format_spec(self.name, options)

    @property
    def signature(self) -> str:
        """The spec, with whatever else can change the number."""
        return repr(self)


@dataclass(frozen=True, repr=False)
class LP(NamedReduction):
    """The log-probability of the whole sentence.

    >>> LP()(TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1, -3], dtype=np.float32)))
    -4.0
    """

    name = "lp"

    def __call__(self, output: ModelOutput) -> float:
        # Log-probabilities are stored as float32, whose rounding would add up over the tokens of a sentence.
        return float(_require_tokens(output, self).logprobs.sum(dtype=np.float64))


@dataclass(frozen=True, repr=False)
class MeanLP(NamedReduction):
    """The mean log-probability of the sentence's tokens ("norm" in Niu and Penn 2020)."""

    name = "mean_lp"

    def __call__(self, output: ModelOutput) -> float:
        return float(_require_tokens(output, self).logprobs.mean(dtype=np.float64))


@dataclass(frozen=True, repr=False)
class PenLP(NamedReduction):
    """The log-probability divided by ((5 + n) / 6) ^ 0.8, a softer penalty on length."""

    name = "pen_lp"

    def __call__(self, output: ModelOutput) -> float:
        logprobs = _require_tokens(output, self).logprobs
        return float(logprobs.sum(dtype=np.float64)) / _length_penalty(len(logprobs))


def _length_penalty(length: int) -> float:
    return float(((5 + length) / 6) ** 0.8)


@dataclass(frozen=True, repr=False)
class SllnLP(NamedReduction):
    """SLLN-LP, the log-probability divided by n ^ alpha: a sub-linear normalisation for length (Liu et al. 2024).

    Args:
        alpha: The exponent of the number of tokens, between 0 (the same as ``lp``) and 1 (``mean_lp``);
            `acceptability link --fit slln_lp` fits it to ratings.

    >>> output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1, -3], dtype=np.float32))
    >>> round(SllnLP(alpha=0.5)(output), 6)
    -2.828427
    """

    name = "slln_lp"
    # Without a default: which exponent is right is what the paper asks, and any would be taken for the paper's.
    alpha: float

    def __post_init__(self) -> None:
        alpha = self.alpha
        # bool is a subclass of int; the comparison is also False for NaN.
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
            raise ScoreError(f"slln_lp: alpha is {alpha!r}; expected a number from 0 (as lp) to 1 (as mean_lp)")

    def __call__(self, output: ModelOutput) -> float:
        logprobs = _require_tokens(output, self).logprobs
        return float(logprobs.sum(dtype=np.float64) / len(logprobs) ** self.alpha)


@dataclass(frozen=True, repr=False)
class Exp(NamedReduction):
    """The exponential of another reduction, which Niu and Penn (2020) correlate with acceptability.

    Args:
        of: The reduction to exponentiate, such as ``lp`` or ``mean_lp``.
    """

    name = "exp"
    of: Reduction

    def __post_init__(self) -> None:
        # The class itself is a frequent slip in Python, exp(lp) for exp(lp()), and means the same in a spec.
        if isinstance(self.of, type) and issubclass(self.of, NamedReduction):
            object.__setattr__(self, "of", self.of())
        if not callable(self.of):
            raise ScoreError(f"exp: {self.of!r} is not a reduction; write exp(lp), exp(mean_lp), ...")

    @property
    def signature(self) -> str:
        """The spec, with the full signature of the inner reduction."""
        return f"exp({self.of.signature})"

    def __call__(self, output: ModelOutput) -> float:
        power = self.of(output)
        # Beyond ±708 exp overflows, or falls below the smallest normal float64, where scores lose their precision.
        if not -700 < power < 700:
            raise ScoreError(f"{shorten(output.text)!r}: e to the power of {power:.0f} is outside the range of float64")
        return math.exp(power)


@dataclass(frozen=True, repr=False)
class LogOdds(NamedReduction):
    """A classifier's log-odds of "acceptable"; 0 is undecided.

    >>> LogOdds()(LabelScores("a b", (-1.0, 2.0)))
    3.0
    """

    name = "log_odds"

    def __call__(self, output: ModelOutput) -> float:
        bad, good = _require_logits(output, self)
        return good - bad


@dataclass(frozen=True, repr=False)
class _TemperatureReduction(NamedReduction):
    """Rescales a classifier's log-odds by temperature scaling: divides them by a temperature."""

    temperature: float = 1.0

    def __post_init__(self) -> None:
        temperature = self.temperature
        if isinstance(temperature, bool) or not isinstance(temperature, (int, float)) or not 0 < temperature < math.inf:
            raise ScoreError(f"{self.name}: temperature is {temperature!r}; expected a number above 0")

    def __repr__(self) -> str:
        # A temperature of 1 changes nothing, and without it signatures are the same as those without the option.
        return format_spec(self.name, {} if self.temperature == 1 else {"temperature": self.temperature})

    def log_odds(self, output: ModelOutput) -> float:
        """Return the log-odds of "acceptable" at the temperature."""
        bad, good = _require_logits(output, self)
        return (good - bad) / self.temperature


@dataclass(frozen=True, repr=False)
class PAcceptable(_TemperatureReduction):
    """A classifier's probability of "acceptable".

    Args:
        temperature: The divisor of the log-odds; `acceptability calibrate` fits it.

    >>> PAcceptable(temperature=2.0)(LabelScores("a b", (0.0, 0.0)))
    0.5
    """

    name = "p_acceptable"

    def __call__(self, output: ModelOutput) -> float:
        # The logistic function as exp(-log(1 + e^-x)): 1 / (1 + exp(-x)) would overflow for large negative log-odds.
        return float(np.exp(-np.logaddexp(0.0, -self.log_odds(output))))


@dataclass(frozen=True, repr=False)
class SignedConfidence(_TemperatureReduction):
    """The label, +1 or -1, times the classifier's largest probability.

    Args:
        temperature: The divisor of the log-odds; `acceptability calibrate` fits it.

    >>> SignedConfidence()(LabelScores("a b", (0.0, 0.0)))
    0.5
    """

    name = "signed_confidence"

    def __call__(self, output: ModelOutput) -> float:
        bad, good = _require_logits(output, self)
        # The sign follows the logits themselves: dividing tiny log-odds by a temperature can round them to zero.
        confidence = float(np.exp(-np.logaddexp(0.0, -abs(self.log_odds(output)))))
        return confidence if good >= bad else -confidence


@dataclass(frozen=True, repr=False)
class UnigramReduction(NamedReduction):
    """Compares log-probabilities with unigram log-probabilities.

    Args:
        unigrams: The unigram table: ``wordfreq:LANGUAGE``, or the path of a file.
    """

    unigrams: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.unigrams, str):
            raise ScoreError(f"{self.name}: unigrams is {self.unigrams!r}; expected a text. {_UNIGRAM_CHOICES}")

    @cached_property
    def table(self) -> UnigramTable:
        """The unigram table; an error that lists the choices if none is given."""
        # Loaded on first use and then kept, since the words of every sentence are looked up in it.
        if not self.unigrams:
            raise ScoreError(f"{self.name} needs a table of unigram probabilities. {_UNIGRAM_CHOICES}")
        return load_unigrams(self.unigrams)

    @property
    def signature(self) -> str:
        """The spec, with the table's content and unit."""
        return f"{self!r}[{self.table.signature},per {self.table.unit}]"

    def unit_logprobs(self, output: ModelOutput) -> tuple[Floats, Floats]:
        """Return the model's and the unigram log-probabilities of each unit."""
        return compute_unit_logprobs(_require_tokens(output, self), self.table)

    def count_unlisted(self, output: ModelOutput) -> tuple[int, int]:
        """Return the number of units that the table does not list, and the number of all units."""
        return count_unlisted_units(_require_tokens(output, self), self.table)


@dataclass(frozen=True, repr=False)
class SLOR(UnigramReduction):
    """SLOR, the syntactic log-odds ratio: (l - u) / n, the mean gain over unigrams per unit."""

    name = "slor"

    def __call__(self, output: ModelOutput) -> float:
        return compute_slor(*self.unit_logprobs(output))


def compute_slor(logprobs: Floats, unigrams: Floats) -> float:
    """Return SLOR, the mean difference of the model's and the unigram log-probabilities.

    >>> compute_slor(np.array([-1.0, -3.0]), unigrams=np.array([-2.0, -6.0]))
    2.0
    """
    # Subtracted element by element rather than as two sums, so that NumPy raises an error for two tokenisations of
    # different lengths.
    return float((logprobs - unigrams).mean())


@dataclass(frozen=True, repr=False)
class NormLPSub(UnigramReduction):
    """The log-probability minus the unigram log-probability: l - u."""

    name = "norm_lp_sub"

    def __call__(self, output: ModelOutput) -> float:
        logprobs, unigrams = self.unit_logprobs(output)
        return float((logprobs - unigrams).sum())


@dataclass(frozen=True, repr=False)
class NormLPDiv(UnigramReduction):
    """The log-probability divided by the unigram log-probability: -(l / u)."""

    name = "norm_lp_div"

    def __call__(self, output: ModelOutput) -> float:
        logprobs, unigrams = self.unit_logprobs(output)
        return -float(logprobs.sum() / unigrams.sum())


@dataclass(frozen=True, repr=False)
class Morcela(UnigramReduction):
    """MORCELA, SLOR with fitted weights: (l - beta * u + gamma) / n.

    Args:
        beta: The weight of the unigram log-probability; `acceptability link` fits both.
        gamma: The correction for length.
    """

    name = "morcela"
    beta: float = 1.0
    gamma: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("beta", self.beta), ("gamma", self.gamma)):
            # bool is a subclass of int; the comparison is also False for NaN, and the bound keeps products finite.
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e30:
                raise ScoreError(f"morcela: {name} is {value!r}; expected a number")

    def __call__(self, output: ModelOutput) -> float:
        logprobs, unigrams = self.unit_logprobs(output)
        return float((logprobs.sum() - self.beta * unigrams.sum() + self.gamma) / len(logprobs))


@dataclass(frozen=True, repr=False)
class _WordRatioReduction(UnigramReduction):
    """Combines the ratios of the words of a sentence, -log p(w) / log p_u(w), starting with the lowest."""

    def ratios(self, output: ModelOutput) -> Floats:
        """Return the ratio of each word, in ascending order: the least expected word comes first."""
        logprobs, unigrams = self.unit_logprobs(output)
        return np.sort(-logprobs / unigrams)


@dataclass(frozen=True, repr=False)
class WordLPMin(_WordRatioReduction):
    """The k-th lowest ratio of a word.

    Args:
        k: The rank; 1 is the least expected word.
    """

    name = "word_lp_min"
    k: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ScoreError(f"word_lp_min: k is {self.k!r}; expected a whole number from 1")

    def __call__(self, output: ModelOutput) -> float:
        ratios = self.ratios(output)
        if self.k > len(ratios):
            raise ScoreError(f"{output.text!r} has {len(ratios)} words; word_lp_min(k={self.k}) needs {self.k}")
        return float(ratios[self.k - 1])


@dataclass(frozen=True, repr=False)
class WordLPMean(_WordRatioReduction):
    """The mean ratio over all words."""

    name = "word_lp_mean"

    def __call__(self, output: ModelOutput) -> float:
        return float(self.ratios(output).mean())


@dataclass(frozen=True, repr=False)
class WordLPMeanQ1(_WordRatioReduction):
    """The mean ratio over the lowest quarter of the words."""

    name = "word_lp_mean_q1"

    def __call__(self, output: ModelOutput) -> float:
        return _mean_of_lowest(self.ratios(output), 1)


@dataclass(frozen=True, repr=False)
class WordLPMeanQ2(_WordRatioReduction):
    """The mean ratio over the lowest two quarters of the words."""

    name = "word_lp_mean_q2"

    def __call__(self, output: ModelOutput) -> float:
        return _mean_of_lowest(self.ratios(output), 2)


def _mean_of_lowest(ratios: Floats, quarters: int) -> float:
    # Rounded up, so that the lowest quarter of a sentence of one to four words is one word.
    count = max(1, math.ceil(len(ratios) * quarters / 4))
    return float(ratios[:count].mean())


def reduce_outputs(reduction: Reduction, outputs: Sequence[ModelOutput]) -> Floats:
    """Return the score of each output, for reductions of sums without making an object for any.

    >>> from acceptability.outputs import make_columns
    >>> output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1, -3], dtype=np.float32))
    >>> reduce_outputs(LP(), make_columns([output, output])).tolist()
    [-4.0, -4.0]
    """
    # By the class itself: one that inherits from it may compute something else.
    if not isinstance(outputs, TokenColumns) or type(reduction) not in (LP, MeanLP, PenLP, SllnLP):
        return np.array([reduction(output) for output in outputs], np.float64)
    sums, counts = _sum_by_query(outputs), outputs.counts.astype(np.float64)
    if isinstance(reduction, MeanLP):
        return sums / counts
    if isinstance(reduction, (PenLP, SllnLP)):
        # Python's power for each length, which NumPy's differs from in the last digit.
        lengths, inverse = np.unique(outputs.counts, return_inverse=True)
        powers = [
            length**reduction.alpha if isinstance(reduction, SllnLP) else _length_penalty(length)
            for length in lengths.tolist()
        ]
        penalties: Floats = np.array(powers)[inverse]
        return sums / penalties
    return sums


def _sum_by_query(columns: TokenColumns) -> Floats:
    """Return the sum of the log-probabilities of each query, to the last bit as ``logprobs.sum(dtype=np.float64)``."""
    if columns.counts.max(initial=0) > _SUM_BUFFER:
        return np.array([output.logprobs.sum(dtype=np.float64) for output in columns])
    # A sum starts with 0 and adds to it the sum of all elements in pairs; ``reduceat`` starts with the first element.
    # With a 0 before each sentence, both add the same numbers in the same order.
    padded = np.zeros(len(columns.logprobs) + len(columns))
    padded[np.arange(len(columns.logprobs)) + np.repeat(np.arange(1, len(columns) + 1), columns.counts)] = (
        columns.logprobs
    )
    sums: Floats = np.add.reduceat(padded, columns.starts + np.arange(len(columns)))
    return sums


def find_unigram_reduction(reduction: Reduction) -> UnigramReduction | None:
    """Return the reduction that reads a unigram table: this one or the one inside ``exp``; None if neither does."""
    while isinstance(reduction, Exp):
        reduction = reduction.of
    return reduction if isinstance(reduction, UnigramReduction) else None


def compute_unit_logprobs(token_scores: TokenScores, table: UnigramTable) -> tuple[Floats, Floats]:
    """Return the model's and the unigram log-probabilities of the same units, words or tokens."""
    units, logprobs = split_units(token_scores, table)
    unigrams = np.array([table.logprob(unit) for unit in units])
    if token_scores.spelling_logprobs and table.shares_unknown:
        # What a table has for all units that it does not list is shared out by their spelling too. Otherwise the
        # model's log-probability of one word would be compared with the unigram one of all unknown words together.
        is_unlisted = np.array([not table.contains(unit) for unit in units])
        unigrams += is_unlisted * _spelling_logprobs_by_unit(token_scores, table, len(units))
    return logprobs, unigrams


def _spelling_logprobs_by_unit(token_scores: TokenScores, table: UnigramTable, count: int) -> Floats:
    """Return the log-probability of the spelling of each unit; 0 for those without an unknown token."""
    by_token = np.zeros(len(token_scores.tokens), np.float32)
    by_token[list(token_scores.unknown or ())] = token_scores.spelling_logprobs
    _, by_unit = split_units(replace(token_scores, logprobs=by_token), table)
    assert len(by_unit) == count
    return by_unit


def split_units(token_scores: TokenScores, table: UnigramTable) -> tuple[Sequence[str], Floats]:
    """Return the units of a text, as a table would list them, and the model's log-probability of each."""
    if table.unit == "token":
        return token_scores.tokens, token_scores.logprobs.astype(np.float64)
    scored_words, logprobs = sum_logprobs_by_word(token_scores)
    # A word that is all punctuation would be stripped to nothing, so it stays as it is.
    return [word.strip(_EDGES) or word for word in scored_words], logprobs


def count_unlisted_units(token_scores: TokenScores, table: UnigramTable) -> tuple[int, int]:
    """Return the number of units of a text that a table does not list, and the number of all units."""
    units, _ = split_units(token_scores, table)
    return sum(not table.contains(unit) for unit in units), len(units)


# Chunks between spaces still carry quotation marks and commas, which frequency lists do not.
_EDGES = " \t\n\"'“”‘’.,;:!?()[]{}…–—-"


def sum_logprobs_by_word(token_scores: TokenScores) -> tuple[list[str], Floats]:
    """Return the fully scored words of a text, and the log-probability of each.

    Words are separated by spaces. A chunk without a letter or digit (a full stop with a space
    before it) belongs to the word before it, or else to the one after, so that every token counts
    once. A word of which only a part was scored, as the first one without a start token, is left out.

    >>> token_scores = TokenScores("The cat .", ("the", "c", "at", "."), ((0, 3), (4, 5), (5, 7), (8, 9)),
    ...     np.array([-1, -2, -3, -4], dtype=np.float32))
    >>> sum_logprobs_by_word(token_scores)
    (['The', 'cat .'], array([-1., -9.]))
    """
    starts = _find_word_starts(token_scores.text)
    ends = [*starts[1:], len(token_scores.text)]
    sums: dict[int, float] = {}
    # Only letters and digits have to be scored: models may skip punctuation, and no model scores spaces.
    unscored = np.array([character.isalnum() for character in token_scores.text], dtype=bool)
    for (start, end), logprob in zip(token_scores.offsets, token_scores.logprobs.tolist(), strict=True):
        letters = token_scores.text[start:end]
        # Byte-level BPE tokens include the space before a word, which would place them in the word before it.
        first = start + len(letters) - len(letters.lstrip())
        word = max(int(np.searchsorted(starts, first, side="right")) - 1, 0)
        sums[word] = sums.get(word, 0.0) + logprob
        unscored[start:end] = False
    fully_scored = [word for word in sorted(sums) if not unscored[starts[word] : ends[word]].any()]
    if not fully_scored:
        raise ScoreError(f"{shorten(token_scores.text)!r}: no word of it was scored as a whole")
    return [token_scores.text[starts[word] : ends[word]].strip() for word in fully_scored], np.array(
        [sums[word] for word in fully_scored]
    )


def _find_word_starts(text: str) -> list[int]:
    starts: list[int] = []
    position = 0
    for chunk in text.split():
        position = text.index(chunk, position)
        if any(character.isalnum() for character in chunk):
            # The first word starts at 0, so that an opening quotation mark of its own belongs to it.
            starts.append(position if starts else 0)
        position += len(chunk)
    return starts or [0]


_UNIGRAM_CHOICES = "Choose unigrams='wordfreq:LANGUAGE' or unigrams='FILE.tsv' (word or token, with count or logprob)."

WORDFREQ_FLOOR = 1e-9
"""The frequency assumed for a word that wordfreq, which ends at one in 10^8, does not list."""


# Vocabularies of older toolkits write the unknown word in capitals.
_UNKNOWN = ("<unk>", "<UNK>")


class UnigramTable(Protocol):
    """Unigram log-probabilities, in nats, of words or tokens."""

    @property
    def unit(self) -> str:
        """What the table lists: "word" or "token"."""
        ...

    @property
    def shares_unknown(self) -> bool:
        """Whether all units that it does not list have one probability together, rather than one each."""
        ...

    @property
    def signature(self) -> str:
        """The table's name, with a hash of its content if that can change."""
        ...

    def contains(self, unit: str) -> bool:
        """Return whether a word or token is listed itself, rather than covered by a value for unknown units."""
        ...

    def logprob(self, unit: str) -> float:
        """Return the log-probability of one word or token."""
        ...


@dataclass(frozen=True)
class WordFreq:
    """Word frequencies of a language, from the package wordfreq."""

    language: str
    unit: str = "word"
    shares_unknown: bool = False

    @property
    def signature(self) -> str:
        """The table's name; wordfreq's data are fixed since its version 3.1."""
        return f"wordfreq:{self.language}(floor={WORDFREQ_FLOOR:g})"

    def contains(self, unit: str) -> bool:
        """Return whether the language's word list contains a word."""
        from wordfreq import word_frequency

        return bool(word_frequency(unit, self.language) > 0)

    def logprob(self, unit: str) -> float:
        """Return the log of a word's relative frequency in the language."""
        from wordfreq import word_frequency

        return math.log(word_frequency(unit, self.language, minimum=WORDFREQ_FLOOR))


@dataclass(frozen=True)
class UnigramFileTable:
    """A unigram table read from a file.

    Args:
        name: The name of the file.
        unit: "word" or "token".
        logprobs: The log-probability of each listed unit.
        unknown: That of all other units together; None if there is none.
        is_lower: Whether all listed words are in lower case.
        signature: The name with a hash of the content.
    """

    name: str
    unit: str
    logprobs: dict[str, float]
    unknown: float | None
    is_lower: bool
    signature: str
    shares_unknown: bool = True

    def contains(self, unit: str) -> bool:
        """Return whether the file has a row for a word or token."""
        return self._key(unit) in self.logprobs

    def _key(self, unit: str) -> str:
        return unit.lower() if self.is_lower and self.unit == "word" else unit

    def logprob(self, unit: str) -> float:
        """Return the log-probability of a word or token, or that of an unknown one."""
        key = self._key(unit)
        logprob = self.logprobs.get(key, self.unknown)
        # Counts can be smoothed, but finished log-probabilities leave no mass for a missing unit.
        if logprob is None:
            raise ScoreError(f"{self.name} has no {self.unit} {key!r}, and log-probabilities cannot be smoothed")
        return logprob


def load_unigrams(name: str) -> UnigramTable:
    """Return the unigram table of a name: ``wordfreq:en`` or the path of a file."""
    if not isinstance(name, str):
        raise ScoreError(f"unigrams is {name!r}; expected a text. {_UNIGRAM_CHOICES}")
    if name.startswith("wordfreq:"):
        return _load_wordfreq(name.removeprefix("wordfreq:"))
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise ScoreError(f"cannot read the unigram table {name!r}: {error.strerror}. {_UNIGRAM_CHOICES}") from error
    return _read_table(name, content)


def _load_wordfreq(language: str) -> WordFreq:
    try:
        from wordfreq import available_languages
    except ImportError as error:
        raise MissingExtra(f"wordfreq:{language}", "the package wordfreq", "wordfreq") from error
    if language not in available_languages():
        known = ", ".join(sorted(available_languages()))
        raise ScoreError(f"wordfreq has no language {language!r}; it has {known}")
    return WordFreq(language)


# Cached by content rather than by path: several reductions share one parsed table, and a file that was changed in
# the meantime is parsed again.
@cache
def _read_table(name: str, content: bytes) -> UnigramFileTable:
    rows = list(read_lines(content, name))
    header = rows[0][1].split("\t") if rows else []
    if len(header) != 2 or header[0] not in ("word", "token") or header[1] not in ("count", "logprob"):
        raise SuiteError(f"{name}, line 1: expected a header 'word' or 'token', TAB, 'count' or 'logprob'")
    unit, kind = header
    numbers: dict[str, float] = {}
    for line, row in rows[1:]:
        key, _, cell = row.partition("\t")
        number = parse_number(cell)
        is_valid = number is not None and math.isfinite(number) and (number >= 0 if kind == "count" else number < 0)
        if number is None or not is_valid:
            expected = "a count from 0" if kind == "count" else "a natural log below 0"
            raise SuiteError(f"{name}, line {line}: {cell!r} is not {expected}")
        if key in numbers:
            raise SuiteError(f"{name}, line {line}: the {unit} {key!r} is listed twice")
        numbers[key] = number
    unknown_key = next((key for key in _UNKNOWN if key in numbers), None)
    unknown = None
    if kind == "count":
        # Add-one smoothing; without a row for unknown units, they get one pseudo-count together.
        total = sum(numbers.values()) + len(numbers) + (unknown_key is None)
        numbers = {key: math.log((count + 1) / total) for key, count in numbers.items()}
        unknown = math.log(1 / total)
    unknown = numbers[unknown_key] if unknown_key else unknown
    # Looking up "The" in a list of lower-case words would make every first word of a sentence unknown.
    is_lower = all(key == key.lower() for key in numbers if key not in _UNKNOWN)
    title = Path(name).name
    return UnigramFileTable(title, unit, numbers, unknown, is_lower, f"{title}#{fingerprint([content])}")
