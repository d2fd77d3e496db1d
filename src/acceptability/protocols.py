"""The interfaces of models, engines, reductions and measures, as structural types.

Any object with these attributes and methods will do; nothing needs to inherit from these classes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from acceptability.types import Floats, ModelOutput, Query, Scores, Suite, Units


class NextTokenModel(Protocol):
    """The distributions of a model over the token that follows a text."""

    @property
    def token_texts(self) -> Sequence[str]:
        """Each token of the vocabulary as it would stand in a text, with a space before it; empty for a special one."""
        ...

    @property
    def tokens_are_words(self) -> bool:
        """Whether each token is a whole word, so that spaces are not part of tokens."""
        ...

    @property
    def fills_mask(self) -> bool:
        """Whether it predicts the token at a mask within the text, and not the one after it."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end a text."""
        ...

    def encode_prefix(self, text: str) -> list[int]:
        """Return the tokens of the beginning of a text, with those that the model puts before it."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without spaces around it."""
        ...

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the log-probability of every token after each prefix, (prefixes, tokens)."""
        ...


class EncodedQuery(Protocol):
    """A tokenized query; its ``size`` lets the plan estimate the work."""

    @property
    def size(self) -> int:
        """The number of token positions that a forward pass over it computes."""
        ...


class Model(Protocol):
    """A scorer of texts. It knows nothing of suites or stores.

    A model has to have ``signature``, ``encode`` and ``run``. The other attributes are optional: a class that
    inherits from this one gets the defaults below, and ``complete_model`` adds them to an object that does not.
    """

    @property
    def signature(self) -> str:
        """The spec with everything that can change an output, such as file hashes; computed without loading weights."""
        ...

    def encode(self, queries: Sequence[Query]) -> Sequence[EncodedQuery]:
        """Return the queries, tokenized; raise QueryError for one that the model cannot score."""
        ...

    # Any, since each model has an encoding of its own, and is only given back what its ``encode`` returned.
    def run(self, batch: Sequence[Any]) -> Sequence[ModelOutput]:
        """Return the output of each encoded query, in the same order."""
        ...

    def begin(self, batch: Sequence[Any]) -> Callable[[], Sequence[ModelOutput]]:
        """Start a forward pass, and return the function that waits for its outputs.

        A model that computes on a GPU overrides it, so that the next batch is prepared meanwhile.
        """
        return lambda: self.run(batch)

    @property
    def display_name(self) -> str:
        """The name in tables of a model that is given as an object; by default its signature."""
        return self.signature

    @property
    def budget(self) -> int:
        """The maximal number of token positions in a batch."""
        return 1024

    @property
    def packing(self) -> str:
        """Which queries share a batch: those of similar "size", of the same "length", or with a common "prefix".

        With "length", encoded queries need an attribute ``length``; with "prefix", the token ids ``ids``.
        """
        return "size"

    @property
    def encodes_in_background(self) -> bool:
        """Whether ``encode`` may run in another thread while a batch is running, as is useful if a GPU runs it."""
        return False

    @property
    def needs_rival(self) -> bool:
        """Whether it weighs a sentence against the other one of its contrast; queries then carry a ``rival``."""
        return False

    @property
    def is_unknown(self) -> Callable[[str], bool] | None:
        """The function that returns whether a token is outside the vocabulary; None if the model cannot tell."""
        return None

    @property
    def device_class(self) -> str | None:
        """The class of device that it computes on, such as "cuda", if it computes in half precision; None otherwise.

        Devices round half precision so differently that their outputs are stored apart.
        """
        return None

    @property
    def omits_unknown(self) -> bool:
        """Whether sentences with unknown words have no score, and are left out of results."""
        return False

    @property
    def word_rule(self) -> str:
        """The rule by which it splits text into words, which perplexity by word counts: a key of ``SPLIT_RULES``."""
        return "spaces"

    @property
    def improper(self) -> bool:
        """Whether its probabilities sum to more than 1, so that it has no perplexity."""
        return False

    def as_lenient(self) -> Model:
        """Return a variant that also scores texts in which every word is unknown; by default the model itself."""
        return self

    def as_predictor(self, top: int) -> Model | None:
        """Return a variant whose outputs are ``TokenPredictions``: also entropies, ranks and alternatives.

        By default None: the model has no distribution over the next token.

        Args:
            top: How many alternatives each token gets, at least.
        """
        return None

    @property
    def next_tokens(self) -> NextTokenModel | None:
        """The distribution over all tokens after a text, for completions; None if the model has none."""
        return None


class _Completed:
    """A view of a user's object in which everything is there that a protocol declares: its own, or the default.

    A subclass names the protocol as its second base class, and what an object has to have itself, since protocols have
    no default of that. What the subclass itself defines comes first.
    """

    inner: Any
    _required: ClassVar[tuple[str, ...]]

    def __getattribute__(self, name: str) -> Any:
        # The names of Python itself are those of the view, so that it can be copied, compared and sent to a process.
        if name == "inner" or name.startswith("_") or name in vars(type(self)):
            return object.__getattribute__(self, name)
        try:
            return getattr(self.inner, name)
        except AttributeError:
            if name in self._required:
                raise
            return object.__getattribute__(self, name)


class _CompletedModel(_Completed, Model):
    """An object with the required attributes of a model, and defaults for the optional ones that it lacks."""

    _required = ("signature", "encode", "run")

    def __init__(self, inner: Any) -> None:
        self.inner = inner


def complete_model(model: Any) -> Model:
    """Return a model with every optional attribute: itself if it inherits from ``Model``, else a view with defaults.

    Models enter through ``load_model`` and ``as_model``, which call this; everything behind them reads the
    attributes of ``Model`` as they are declared.

    >>> class Uppercase:
    ...     signature = "uppercase"
    >>> complete_model(Uppercase()).packing
    'size'
    """
    # Not isinstance: a structural check would compare names and miss where the defaults come from.
    return model if Model in type(model).__mro__ else _CompletedModel(model)  # type: ignore[abstract]


class Engine(Protocol):
    """Where models run: this machine, or a cluster."""

    def answers(
        self, model: Model, spec: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[Sequence[tuple[int, ModelOutput]], None, None]:
        """Yield batches of (query index, output) for the queries without a stored output, each index once.

        Args:
            spec: The model's spec, for an engine that loads it in another process; None for a model object
                that was built in Python and has none.
            is_known: Whether the output of the query at an index is already stored, so that it can be skipped.
        """
        ...


class Reduction(Protocol):
    """A function from a model's output to one number, where higher is more acceptable."""

    @property
    def signature(self) -> str:
        """The spec, with whatever else can change the number."""
        ...

    def __call__(self, output: ModelOutput) -> float:
        """Return the score of one sentence."""
        ...


@dataclass(frozen=True, eq=False)
class Moments:
    """A value that follows from sums over the rows, as means and linear correlations do.

    The bootstrap adds up the rows of each sampling unit once. All resamples together are then one product, of how often
    each of them has each unit, with these sums.

    Args:
        of_rows: What is summed, an array of (moments, rows).
        combine: From the sums over the rows of several resamples, (moments, resamples), to the value of each; nan where
            it is undefined.
        are_precise: From the same sums to which of the values they give to the last digits; None for all of them. The
            other resamples are evaluated by ``value``.
    """

    of_rows: Floats
    combine: Callable[[Floats], Floats]
    are_precise: Callable[[Floats], NDArray[np.bool_]] | None = None


RowWeighting: TypeAlias = Callable[[Floats], Floats]
"""From how often several resamples have each row, (resamples, rows), to the value of each; nan where undefined."""


class Statistic(Protocol):
    """A function of rows: all that intervals and tests need, which resample the rows of a measure and compute it again.

    A class that inherits from this one gets the defaults of the optional attributes.
    """

    def value(self, units: Units) -> float:
        """Return the statistic of these rows; raise Undefined if it is undefined."""
        ...

    def weigh(self, units: Units) -> Moments | RowWeighting | None:
        """Return how the value follows from weights of the rows, for many resamples at a time.

        By default it is the mean of the column ``mean_of``. None if there is none: then ``value`` gets the rows of each
        resample in turn, which gives the same numbers, and takes much longer.

        Args:
            units: The rows, of which each resample has some several times, and others not at all.
        """
        if self.mean_of is None:
            return None
        column = units[self.mean_of]
        return Moments(np.stack([column, np.ones(len(column))]), _divide_sums)

    @property
    def mean_of(self) -> str | None:
        """The name of the column whose mean is the value, which makes intervals and tests much faster; or None."""
        return None

    @property
    def statistic(self) -> str | None:
        """What statistic the value is, if it has an interval of its own; or None.

        "correlation", "rank correlation", "auc" (of rows with a ``label``, or with ``better_share`` and
        ``worse_share``) or "mcc" (of rows with ``predicted`` and ``label``).
        """
        return None


class Measure(Statistic, Protocol):
    """A statistic of scores, as a value whose ``repr`` can be parsed back.

    Computing it takes two steps, ``units`` and ``value``, so that the bootstrap and permutation tests can resample
    the rows of any measure.

    A measure has to have ``needs``, ``units`` and ``value``. The other attributes are optional: a class that
    inherits from this one gets the defaults, also those of `Statistic`, and ``complete_measure`` adds them to an object
    that does not.
    """

    @property
    def needs(self) -> str:
        """What a suite must contain: "contrasts", "labels", "ratings", "rated contrasts", "sets" or "predictions"."""
        ...

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return the rows that the measure counts, of the whole suite; they are grouped and resampled afterwards."""
        ...

    def resolve(self, scores: Sequence[Scores], by: str) -> Measure:
        """Return the measure with what it leaves open, such as a threshold, as it applies to scores.

        Args:
            scores: The scores that it will be computed of; those of both models for a comparison.
            by: The tag of the sampling units, which stay together where sentences are divided; empty for rows.
        """
        return self

    @property
    def chance(self) -> float | None:
        """The share of rows that random scores get right, if the value is a share of right rows; else None."""
        return None

    @property
    def needs_tags(self) -> tuple[str, ...]:
        """The tags that some sentence of the suite has to carry."""
        return ()

    @property
    def gathered_by(self) -> str:
        """The tag that groups sentences into one row; empty if a row is one sentence or one contrast."""
        return ""


def _divide_sums(sums: Floats) -> Floats:
    return np.asarray(sums[0] / sums[1])


@dataclass(frozen=True, repr=False)
class _CompletedMeasure(_Completed, Measure):
    """An object with the required attributes of a measure, and defaults for the optional ones that it lacks."""

    inner: Any
    _required = ("needs", "units", "value")

    # Signatures and tables show a measure by its repr, which has to parse back to the measure itself.
    def __repr__(self) -> str:
        return repr(self.inner)

    def resolve(self, scores: Sequence[Scores], by: str) -> Measure:
        # What an object returns need not be complete either.
        return complete_measure(self.inner.resolve(scores, by)) if hasattr(self.inner, "resolve") else self


def complete_measure(measure: Any) -> Measure:
    """Return a measure with every optional attribute: itself if it inherits from ``Measure``, else a view of it.

    Measures enter through ``load_measure`` and ``resolve_measures``, which call this; everything behind them reads
    the attributes of ``Measure`` as they are declared.

    >>> class Sum:
    ...     needs = "labels"
    >>> complete_measure(Sum()).needs_tags
    ()
    """
    # Not isinstance, for the same reason as in ``complete_model``.
    return measure if Measure in type(measure).__mro__ else _CompletedMeasure(measure)  # type: ignore[abstract]
