"""What a model predicted at tokens, words and regions, as columns of tables: entropy, rank, alternatives.

What is predicted is the next token. For a word or region of several tokens, entropy, rank, cumulative probability and
alternatives are therefore those of its first token; its entropy reduction is the entropy before its first token minus
that after its last. Surprisal alone is a sum over all tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptability.api.interface.arguments import ModelLike, as_model
from acceptability.errors import ModelError, SpecError
from acceptability.models import PREDICTIONS_OPTION, expand_named_model, make_predictor
from acceptability.specs import format_spec, parse_model_spec
from acceptability.types import ModelOutput, Span, TokenPredictions

# How many alternatives are computed and stored: the smallest of these numbers that is enough, so that a later request
# for a few more needs no model. A server of OpenAI gives 5, vLLM gives 20 by default.
_STORED_ALTERNATIVES = (5, 20, 100)


@dataclass(frozen=True)
class PredictionColumns:
    """Which columns about predictions a table gets.

    Args:
        entropy: The entropy before each token, and by how much the token reduces it.
        rank: The rank of the token among all tokens, and the probability of all tokens up to this rank.
        top: The number of alternatives, each with its probability.
    """

    entropy: bool = False
    rank: bool = False
    top: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.top, bool) or not isinstance(self.top, int) or not 0 <= self.top <= _STORED_ALTERNATIVES[-1]:
            raise SpecError(f"top is {self.top!r}; expected a number of alternatives, 0 to {_STORED_ALTERNATIVES[-1]}")

    @property
    def is_wanted(self) -> bool:
        """Whether there is any such column."""
        return self.entropy or self.rank or self.top > 0

    def adapt_model(self, model: ModelLike) -> ModelLike:
        """Return the variant of a model that predicts, if any column needs it; else the model as it is.

        Raises:
            ModelError: The model has no distributions over the next token.
        """
        if not self.is_wanted:
            return model
        stored = next(number for number in _STORED_ALTERNATIVES if number >= self.top)
        name, loaded = as_model(model)
        predictor = make_predictor(name, loaded, stored)
        if not isinstance(model, str):
            return predictor
        # As a spec, which an engine on other machines opens too.
        kind, location, options = parse_model_spec(expand_named_model(name))
        return format_spec(f"{kind}:{location}" if location else kind, options | {PREDICTIONS_OPTION: stored})

    def describe(self, rows: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
        """Return what the reader of a table has to know about its columns.

        Args:
            rows: The rows of the table.
        """
        several = sum(isinstance(count := row.get("tokens"), int) and count > 1 for row in rows)
        notes = []
        if self.is_wanted and several:
            notes.append(
                f"{several} of {len(rows)} rows have several tokens: their surprisal is that of all, and entropy, rank "
                "and alternatives are those of the first"
            )
        unknown = sum(row.get("unknown") is True for row in rows)
        if self.rank and unknown:
            notes.append(
                f"{unknown} of {len(rows)} rows have words that the model does not know: their rank and cumulative "
                "probability are those of the token for unknown words, which is more probable than any one such word"
            )
        if self.entropy and rows and all(row["entropy_bits"] is None for row in rows):
            notes.append("the model gives no entropies: a server lists only the most probable tokens")
        elif self.entropy and rows and all(row["entropy_reduction_bits"] is None for row in rows):
            notes.append("a masked model predicts nothing after a token: there is no entropy reduction")
        return tuple(notes)

    def list_cells(self, output: ModelOutput, tokens: Sequence[int], span: Span) -> dict[str, object]:
        """Return the cells of a token, word or region.

        Args:
            output: The model's output.
            tokens: The positions of its scored tokens.
            span: Its characters.
        """
        if not self.is_wanted:
            return {}
        if not isinstance(output, TokenPredictions):
            raise ModelError("this model has no entropies, ranks or alternatives")
        # Of a word whose first token was not scored, the distribution before it is unknown.
        first = tokens[0] if tokens and not output.text[span[0] : output.offsets[tokens[0]][0]].strip() else None
        cells: dict[str, object] = {}
        if self.entropy:
            before = None if first is None else output.entropies[first]
            after = None if first is None else output.entropies_after[tokens[-1]]
            cells["entropy_bits"] = _to_bits(before)
            cells["entropy_reduction_bits"] = None if before is None or after is None else _to_bits(before - after)
        if self.rank:
            known = first is not None and output.ranks[first] > 0
            cells["rank"] = int(output.ranks[first]) if known else None
            cells["cumulative_probability"] = float(output.cumulative[first]) if known else None
        names = output.top_tokens[first] if first is not None else ()
        for number in range(self.top):
            is_there = first is not None and number < len(names)
            cells[f"top_{number + 1}"] = names[number] if is_there else None
            cells[f"top_{number + 1}_probability"] = (
                math.exp(float(output.top_logprobs[first][number])) if is_there else None
            )
        return cells


def _to_bits(nats: float | None) -> float | None:
    """Return bits; None for nan, which stands for what a model does not give."""
    return None if nats is None or math.isnan(nats) else float(nats) / math.log(2)


NO_PREDICTIONS = PredictionColumns()
