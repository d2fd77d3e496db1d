"""``annotate``: the words of a table with their surprisals and other predictors, beside what was measured."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acceptability import __version__
from acceptability.api.interface.arguments import ModelLike, as_model
from acceptability.api.interface.prediction_columns import PredictionColumns
from acceptability.api.psycholinguistics.published_tokens import read_published_tokens, sign_published
from acceptability.api.psycholinguistics.word_tables import TableWord, WordTable, make_word_table, read_word_table
from acceptability.api.scoring import ProgressCallback, iter_model_outputs
from acceptability.display import Table, TableRow
from acceptability.errors import ScoreError, SpecError, SuiteError
from acceptability.protocols import Engine
from acceptability.reductions import UnigramTable, load_unigrams
from acceptability.specs import build_signature
from acceptability.suites.frames import is_pandas
from acceptability.text.words import assign_tokens
from acceptability.types import LabelScores, ModelOutput, Span, TokenScores

if TYPE_CHECKING:
    import pandas as pd

_PUNCTUATION = string.punctuation + "“”‘’«»„‚…–—¡¿"


class AnnotatedWords(Table):
    """The rows of a table of words, with columns for what was computed.

    Args:
        rows: The rows.
        signature: What is needed to compute the columns again.
        notes: Remarks for the reader.
    """

    def __init__(self, rows: Iterable[TableRow] = (), signature: str = "", notes: tuple[str, ...] = ()) -> None:
        super().__init__(rows)
        self.signature, self.notes = signature, notes

    def footnotes(self) -> list[str]:
        """Return what stands below the table in a notebook."""
        return list(self.notes)


@dataclass(frozen=True)
class WordPredictors:
    """What else a row gets besides the surprisal.

    Args:
        unigrams: The table of the log frequency, such as ``wordfreq:en``; None for no length and frequency.
        spillover: How many words before each one its row has the predictors of.
        suffix: What the names of all new columns end in, such as ``_gpt2``.
        region: The column that says which words are a region; the rows then are regions.
    """

    unigrams: str | None = None
    spillover: int = 0
    suffix: str = ""
    region: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.spillover, bool) or not isinstance(self.spillover, int) or not 0 <= self.spillover <= 10:
            raise SpecError(f"spillover is {self.spillover!r}; expected a number of words, 0 to 10")


def annotate(
    table: WordTable | Path | str | pd.DataFrame,
    model: ModelLike | None = None,
    *,
    scores: Path | str | None = None,
    entropy: bool = False,
    rank: bool = False,
    top: int = 0,
    unigrams: str | None = None,
    spillover: int = 0,
    region: str | None = None,
    suffix: str = "",
    drop_missing: bool = False,
    columns: Mapping[str, str] | None = None,
    score_columns: Mapping[str, str] | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> AnnotatedWords:
    """Return the rows of a table with a word a row, with the surprisal of each word, and all columns that it has.

    The words of an item are one text, joined by spaces. Tokens are joined to words: the surprisal of a word is the sum
    over the tokens that end in it; ``tokens`` is their number.

    Args:
        table: A path, a data frame, or what ``read_word_table`` returns: a column ``word``, perhaps ``item`` (or
            ``story``, …) and ``zone`` (or ``position``, …), by which words are ordered.
        model: A language model or its spec; ``mini-causal(stride=128)`` reads texts longer than its window.
        scores: Instead of a model, a file with the log-probabilities of tokens that somebody published.
        entropy, rank, top: Further columns, see ``words``.
        unigrams: Add ``length`` (characters) and ``log_frequency`` (natural log) by this table, such as
            ``wordfreq:en``, without the punctuation around the word.
        spillover: Add the surprisal, length and frequency of so many words before: ``surprisal_bits_previous1``, ….
        region: A column that says which words are a region: the result has a row for each region of each item.
        suffix: What the names of the new columns end in, so that a table can have those of several models.
        drop_missing: Leave out rows without a value in a new column, such as words that no other precedes with
            ``spillover``, since a regression needs all values. A note says how many.
        columns: The names of the table's columns by their meaning: ``{"word": "token", "item": "story"}``.
        score_columns: The same for ``scores``: ``token``, ``logprob`` or ``surprisal``, ``item``.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.

    Raises:
        SuiteError: The table has no words, or their order is not known.
        ScoreError: The published tokens are of other texts.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"word": ["Cats", "sleep."], "RT": [310, 352]})
    >>> [(row["word"], row["RT"], round(row["surprisal_bits"], 2)) for row in annotate(frame, "uniform")]
    [('Cats', 310, 15.61), ('sleep.', 352, 15.61)]
    """
    words = as_word_table(table, columns)
    wanted, predictors = PredictionColumns(entropy, rank, top), WordPredictors(unigrams, spillover, suffix, region)
    if (model is None) == (scores is None):
        raise SpecError("annotate: give either a model or scores, a file of published log-probabilities")
    notes = words.describe()
    outputs: Mapping[str, ModelOutput]
    if scores is not None:
        if wanted.is_wanted:
            raise SpecError("published log-probabilities have no entropies, ranks or alternatives: leave them out")
        published = read_published_tokens(Path(scores), score_columns)
        outputs, remarks = published.align(words)
        notes, source = [*notes, *remarks], sign_published(published)
    else:
        assert model is not None
        chosen = wanted.adapt_model(model)
        outputs = {
            sentence.id: output
            for sentence, output in iter_model_outputs(words.suite, chosen, engine=engine, progress=progress)
        }
        source = as_model(chosen)[1].signature
        if unscored := sum(not own for item, output in outputs.items() for own in _list_tokens(words, item, output)):
            notes.append(f"{unscored} words have no surprisal, since no token of theirs was scored")
    builder = _RowBuilder(words, wanted, predictors)
    rows = builder.build(outputs)
    signature = build_signature(
        "annotate",
        {
            "suite": words.suite.signature,
            "model": source,
            **({"unigrams": load_unigrams(unigrams).signature} if unigrams else {}),
            "n": str(len(rows)),
            "acceptability": __version__,
        },
    )
    notes += builder.describe()
    if drop_missing:
        rows, dropped = _drop_missing(rows, words.header)
        if not rows:
            raise SuiteError(
                f"{words.name}: each of its {dropped} rows lacks a value in a new column, so that nothing is left; "
                "leave out drop_missing (--drop-missing) to see them"
            )
        notes += [f"{dropped} of {dropped + len(rows)} rows lack a value in a new column and are left out"]
    return AnnotatedWords(rows, signature, tuple(notes))


def _list_tokens(table: WordTable, item: str, output: ModelOutput) -> list[list[int]]:
    spans = [word.span for word in table.words[item]]
    return assign_tokens(output, spans) if isinstance(output, TokenScores) else []


def _drop_missing(rows: Sequence[TableRow], header: Sequence[str]) -> tuple[list[TableRow], int]:
    """Return the rows that have a value in every column but those of the table itself, and how many have not."""
    given = set(header)
    kept = [row for row in rows if all(cell is not None for name, cell in row.items() if name not in given)]
    return kept, len(rows) - len(kept)


def as_word_table(table: WordTable | Path | str | pd.DataFrame, columns: Mapping[str, str] | None = None) -> WordTable:
    """Return a table of words: itself, or read from a file or a data frame."""
    if isinstance(table, WordTable):
        return table
    if isinstance(table, str | Path):
        return read_word_table(Path(table), columns)
    if is_pandas(table, "DataFrame"):
        records: list[dict[str, Any]] = table.to_dict("records")
        return make_word_table("frame", list(table.columns), list(enumerate(records)), columns)
    raise SuiteError(f"expected a table with a word a row, and this is of type {type(table).__name__}")


@dataclass(frozen=True, eq=False)
class _Unit:
    """A word, or the words of a region.

    Args:
        text: Its text.
        span: Its characters in the text of the item.
        rows: Its rows in the table.
    """

    text: str
    span: Span
    rows: tuple[int, ...]


class _RowBuilder:
    """Builds the rows of the result from the outputs of a model."""

    def __init__(self, table: WordTable, wanted: PredictionColumns, predictors: WordPredictors) -> None:
        self._table, self._wanted, self._predictors = table, wanted, predictors
        self._unigrams = load_unigrams(predictors.unigrams) if predictors.unigrams else None
        self._cells: list[dict[str, object]] = []
        if predictors.region is not None and predictors.region not in table.header:
            raise SpecError(
                f"{table.name} has no column {predictors.region!r} for regions; it has {', '.join(table.header)}"
            )

    def build(self, outputs: Mapping[str, ModelOutput]) -> list[TableRow]:
        """Return the rows, in the order of the table."""
        added: dict[int, dict[str, object]] = {}
        for item, words in self._table.words.items():
            output = outputs[item]
            if isinstance(output, LabelScores):
                raise ScoreError("a classifier, or a function that scores whole sentences, has no scores of words")
            units = self._list_units(words)
            cells = [
                self._list_cells(unit, output, own) for unit, own in zip(units, _assign(output, units), strict=True)
            ]
            for number, unit in enumerate(units):
                earlier = self._list_earlier(cells, number)
                for row in unit.rows if self._predictors.region is None else unit.rows[:1]:
                    added[row] = {"text": unit.text} if self._predictors.region else {}
                    added[row] |= self._rename(cells[number] | earlier)
            self._cells += cells
        return [self._join(number, added[number]) for number in sorted(added)]

    def describe(self) -> tuple[str, ...]:
        """Return what the reader has to know about the columns."""
        notes = list(self._wanted.describe(self._cells))
        if unlisted := sum(cells.get("log_frequency", 0.0) is None for cells in self._cells):
            notes.append(f"{unlisted} rows have no frequency: they are punctuation alone")
        return tuple(notes)

    def _list_units(self, words: Sequence[TableWord]) -> list[_Unit]:
        region = self._predictors.region
        if region is None:
            return [_Unit(word.text, word.span, word.rows) for word in words]
        units: list[_Unit] = []
        names: list[object] = []
        for word in words:
            name = self._table.rows[word.rows[0]].get(region)
            if names and names[-1] == name:
                before = units.pop()
                word_span = (before.span[0], word.span[1])
                units.append(_Unit(f"{before.text} {word.text}", word_span, (*before.rows, *word.rows)))
            else:
                units.append(_Unit(word.text, word.span, word.rows))
                names.append(name)
        return units

    def _list_cells(self, unit: _Unit, output: TokenScores, tokens: Sequence[int]) -> dict[str, object]:
        logprobs = output.logprobs.tolist()
        bits = -math.fsum(logprobs[at] for at in tokens) / math.log(2) if tokens else None
        cells: dict[str, object] = {"surprisal_bits": bits, "tokens": len(tokens)}
        if output.unknown is not None:
            cells["unknown"] = any(at in output.unknown for at in tokens)
        cells |= self._wanted.list_cells(output, tokens, unit.span)
        if self._unigrams is not None:
            cells |= {"length": len(unit.text), "log_frequency": _find_log_frequency(unit.text, self._unigrams)}
        return cells

    def _list_earlier(self, cells: Sequence[Mapping[str, object]], number: int) -> dict[str, object]:
        """Return the predictors of the words before one."""
        names = ["surprisal_bits", *(["length", "log_frequency"] if self._unigrams else [])]
        return {
            f"{name}_previous{lag}": cells[number - lag][name] if number >= lag else None
            for lag in range(1, self._predictors.spillover + 1)
            for name in names
        }

    def _rename(self, cells: Mapping[str, object]) -> dict[str, object]:
        return {f"{name}{self._predictors.suffix}": cell for name, cell in cells.items()}

    def _join(self, number: int, added: Mapping[str, object]) -> TableRow:
        row = self._table.rows[number]
        if taken := [name for name in added if name in row]:
            raise SpecError(
                f"{self._table.name} has a column {taken[0]!r} already: give the new columns another ending, such as "
                "--suffix _2"
            )
        return TableRow({**row, **added})


def _assign(output: TokenScores, units: Sequence[_Unit]) -> list[list[int]]:
    return assign_tokens(output, [unit.span for unit in units])


def _find_log_frequency(text: str, unigrams: UnigramTable) -> float | None:
    """Return the log frequency of a word without the punctuation around it; None for punctuation alone."""
    bare = [word.strip(_PUNCTUATION) for word in text.split()]
    return math.fsum(unigrams.logprob(word) for word in bare if word) if any(bare) else None
