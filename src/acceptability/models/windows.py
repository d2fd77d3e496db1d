"""Overlapping windows over texts that are longer than a model reads: the options ``stride`` and ``window``.

A window begins ``stride`` tokens after the one before it, and has the model's start token (and, of a masked model, its
other special tokens) around it. Each token is scored in one window. In a causal model that is the first that has the
token and the one after it, so that every token of the second window and later ones is scored after at least
window - stride - 1 others; in a masked model the window in which the token is farther from the edges. A text that fits
into one window has the same scores as without the option.

A window has as many tokens as the model reads; of a model that this package trained, as many as it was trained on
(``row`` in its ``recipe.json``), since predictions at positions that it has never seen are worthless. ``window`` is
another number. The signature has both.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from acceptability.errors import ModelError, QueryError
from acceptability.protocols import Model, NextTokenModel
from acceptability.specs import format_spec, parse_model_spec
from acceptability.types import Query, Span, TokenPredictions, TokenScores

_log = logging.getLogger(__name__)
_RECIPE_FILE = "recipe.json"


class LongTextModel(Protocol):
    """A model that can encode texts of any length, and cut them into windows."""

    @property
    def max_length(self) -> int:
        """The maximal number of tokens that the network reads."""
        ...

    def encode_long(self, queries: Sequence[Query]) -> Sequence[Any]:
        """Return encoded queries, of any length."""
        ...

    @property
    def trained_length(self) -> int | None:
        """The number of tokens in the longest text that it was trained on; None where nothing says so."""
        ...

    def split_windows(self, encoding: Any, window: int, stride: int) -> Sequence[Any]:
        """Return the windows of an encoded query, each encoded as a query by itself."""
        ...


@dataclass(frozen=True, slots=True)
class TokenSlice:
    """A part of a tokenizer's encoding: the ids of a window, and their places in the whole text."""

    ids: Sequence[int]
    spans: Sequence[Span]

    @property
    def offsets(self) -> list[Span]:
        """The places, as a list that may be changed."""
        return list(self.spans)


@dataclass(frozen=True, slots=True)
class WindowedEncoding:
    """A query in windows.

    Args:
        ids: All its tokens.
        size: The number of token positions that are computed; without those of overlaps.
        index: Its number among the queries that were encoded with it.
        windows: The windows, each encoded as a query.
    """

    ids: Sequence[int]
    size: int
    index: int
    windows: Sequence[Any]

    @property
    def length(self) -> int:
        """The number of tokens."""
        return len(self.ids)


@dataclass(frozen=True)
class Windowed(Model):
    """A model that reads long texts in overlapping windows.

    Args:
        model: The model, or the variant of it that predicts.
        splitter: The model itself, which encodes texts and cuts them.
        stride: The number of tokens from the beginning of a window to that of the next.
        given_window: The option ``window``; None for the default.
    """

    model: Any
    splitter: Any
    stride: int
    given_window: int | None

    @property
    def window(self) -> int:
        """The number of tokens in a window, with those that the model puts around a text."""
        longest: int = self.splitter.max_length
        trained: int | None = self.splitter.trained_length
        if self.given_window is not None and self.given_window > longest:
            raise ModelError(
                f"{self.splitter.files.name} reads {longest} tokens at a time: window={self.given_window} is too much"
            )
        return self.given_window or min(trained or longest, longest)

    @property
    def signature(self) -> str:
        """The signature of the model, with the window and the stride."""
        kind, location, options = parse_model_spec(self.model.signature)
        return format_spec(f"{kind}:{location}", options | {"window": self.window, "stride": self.stride})

    @property
    def packing(self) -> str:
        """Which queries share a batch."""
        return str(self.model.packing)

    @property
    def budget(self) -> int:
        """The maximal number of token positions in a batch."""
        return int(self.model.budget)

    @property
    def device_class(self) -> str | None:
        """The class of device, if the model computes in half precision."""
        name: str | None = self.model.device_class
        return name

    def as_predictor(self, top: int) -> Model | None:
        """Return the variant that also predicts, in the same windows."""
        return replace(self, model=self.model.as_predictor(top))

    @property
    def next_tokens(self) -> NextTokenModel | None:
        """The distribution over the token after a text, which is that of the model."""
        found: NextTokenModel | None = self.splitter.next_tokens
        return found

    def encode(self, queries: Sequence[Query]) -> list[WindowedEncoding]:
        """Return the queries, cut into windows where they are too long for the model."""
        encodings = self.splitter.encode_long(queries)
        return [
            WindowedEncoding(one.ids, one.size, index, self._split(one, index)) for index, one in enumerate(encodings)
        ]

    def _split(self, encoding: Any, index: int) -> Sequence[Any]:
        if len(encoding.ids) <= self.window:
            return [encoding]
        windows: Sequence[Any] = self.splitter.split_windows(encoding, self.window, self.stride)
        if not windows:
            raise QueryError(index, "its region has more tokens than the model reads at a time")
        return windows

    def run(self, batch: Sequence[WindowedEncoding]) -> list[TokenScores]:
        """Return the scores of each query."""
        return self.begin(batch)()

    def begin(self, batch: Sequence[WindowedEncoding]) -> Callable[[], list[TokenScores]]:
        """Start the forward passes of all windows, and return the function that waits for the scores of each query."""
        windows = [window for encoding in batch for window in encoding.windows]
        # A single text may have more windows than fit into one pass.
        pending = [self.model.begin(part) for part in _cut_to_budget(windows, self.model.budget)]

        def collect() -> list[TokenScores]:
            outputs = (output for wait in pending for output in wait())
            return [join_windows([next(outputs) for _ in encoding.windows]) for encoding in batch]

        return collect


def _cut_to_budget(windows: Sequence[Any], budget: int) -> Iterator[list[Any]]:
    """Yield windows in groups whose sizes add up to the budget at most; a larger window is alone."""
    group: list[Any] = []
    used = 0
    for window in windows:
        if group and used + window.size > budget:
            yield group
            group, used = [], 0
        group.append(window)
        used += window.size
    if group:
        yield group


def join_windows(parts: Sequence[TokenScores]) -> TokenScores:
    """Return the scores of a text, from those of its windows, none of whose tokens is scored twice."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(len(part.tokens) for part in parts)]).tolist()
    unknown = None
    if all(part.unknown is not None for part in parts):
        unknown = tuple(start + at for start, part in zip(starts, parts, strict=False) for at in part.unknown or ())
    scores = TokenScores(
        parts[0].text,
        tuple(token for part in parts for token in part.tokens),
        tuple(span for part in parts for span in part.offsets),
        np.concatenate([part.logprobs for part in parts]),
        unknown,
    )
    predictions = [part for part in parts if isinstance(part, TokenPredictions)]
    if len(predictions) < len(parts):
        return scores
    return TokenPredictions(
        scores.text,
        scores.tokens,
        scores.offsets,
        scores.logprobs,
        scores.unknown,
        (),
        np.concatenate([part.entropies for part in predictions]),
        np.concatenate([part.entropies_after for part in predictions]),
        np.concatenate([part.ranks for part in predictions]),
        np.concatenate([part.cumulative for part in predictions]),
        tuple(row for part in predictions for row in part.top_tokens),
        np.concatenate([part.top_logprobs for part in predictions]),
    )


def list_window_starts(count: int, capacity: int, stride: int) -> list[int]:
    """Return where windows begin, in tokens: as many as it takes to reach the end of a text.

    >>> list_window_starts(10, 5, 2)
    [0, 2, 4, 5]
    """
    starts = list(range(0, max(count - capacity, 0), stride))
    # The last window ends with the text, so that its tokens have as much context as they can.
    return [*starts, max(count - capacity, 0)]


def make_windowed(model: Any, stride: object, window: object) -> Model:
    """Return a model that reads long texts in windows; the model itself if no stride is given.

    Args:
        model: A model with ``encode_long`` and ``split_windows``.
        stride: The option ``stride``.
        window: The option ``window``.
    """
    for name, number in (("stride", stride), ("window", window)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise ModelError(f"{name} is {number!r}; expected a number of tokens, from 1")
    if not isinstance(stride, int):
        if window is not None:
            raise ModelError(f"window={window} needs a stride, the number of tokens from one window to the next")
        return model  # type: ignore[no-any-return]
    return Windowed(model, model, stride, window if isinstance(window, int) else None)


def read_trained_length(folder: Path) -> int | None:
    """Return how many tokens the longest texts had that a model of this package was trained on; None for other models.

    Args:
        folder: The folder of the model.
    """
    try:
        recipe = json.loads((folder / _RECIPE_FILE).read_text(encoding="utf-8"))["recipe"]
        row = recipe["row"]
    # Any other folder may have a file of this name.
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return row if isinstance(row, int) and row > 0 else None


@cache
def warn_of_long_text(name: str, trained_length: int) -> None:
    """Log that texts are longer than those that a model was trained on; once for each model."""
    _log.warning(
        "%s was trained on texts of up to %d tokens, and predicts badly behind them: read longer texts in windows, "
        "such as stride=%d",
        name,
        trained_length,
        trained_length // 4,
    )


def check_stride(stride: int, capacity: int, name: str) -> None:
    """Raise an error if windows would not overlap.

    Args:
        stride: The stride.
        capacity: The number of tokens of the text in a window.
        name: The name of the model.
    """
    if stride > capacity - 2:
        raise ModelError(
            f"{name}: stride={stride} leaves no context, since a window has {capacity} tokens of the text; choose at "
            f"most {capacity - 2}, such as {capacity // 2}"
        )
