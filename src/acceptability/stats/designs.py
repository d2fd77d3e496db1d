"""Ready-made regression designs of this field: a table in, formulas and prepared columns out.

A `Design` says which columns a table needs, derives what the analysis needs from them (standardised predictors,
spill-over of earlier words, items nested in paradigms), and gives two formulas for `regress`: the full model and the
reduced one, which lacks only the effect that is tested. ``fit_design`` fits both and compares them by likelihood ratio.
The random effects are the maximal ones that such data support in practice (Barr et al. 2013): slopes of the tested
predictor by every kind of group within which it varies, except by items that have one row for each of its values.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from acceptability.errors import MeasureError, Undefined, suggest_name
from acceptability.stats.mixed.mixed_regression import MixedRegression, regress
from acceptability.stats.mixed.model_comparison import ModelComparison, compare_models

if TYPE_CHECKING:
    import pandas as pd

# Fewer groups than this give a poor estimate of how groups differ, and p values that are too small.
_FEW_GROUPS = 10


@dataclass(frozen=True, eq=False)
class PreparedDesign:
    """The table and the formulas of a design.

    Args:
        frame: The columns of the formulas.
        formula: The full model.
        reduced: The model without the effect that is tested; empty if nothing is tested.
        family: "gaussian", "binomial" or "ordinal".
        tested: What the comparison of the two models tests, in words.
        notes: What was left out of the table, and what to be careful about.
    """

    frame: pd.DataFrame
    formula: str
    reduced: str
    family: str
    tested: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """An analysis that this field needs again and again.

    Args:
        name: Its name, for ``regress --design``.
        question: The question that it answers.
        columns: The columns that the table needs, and what they hold.
        prepare: The function from the checked table to formulas and columns.
        optional: Columns that are used if the table has them.
    """

    name: str
    question: str
    columns: Mapping[str, str]
    prepare: Callable[[pd.DataFrame], PreparedDesign] = field(repr=False)
    optional: Mapping[str, str] = field(default_factory=dict)


def prepare_design(name: str, table: Mapping[str, Sequence[object]] | pd.DataFrame) -> PreparedDesign:
    """Return the formulas of a design, and a table with the columns that they use.

    Args:
        name: "models", "seeds", "ratings", "reading-times" or "learning-curve".
        table: The data, with the columns that the design needs under the names it gives them. Rows in which one of
            them is missing are left out, with a note that counts them.

    Raises:
        MeasureError: There is no such design, or the table lacks a column of it.

    >>> table = {"model": ["a", "b"] * 4, "item": [1, 1, 2, 2, 3, 3, 4, 4], "correct": [1, 0, 1, 1, 0, 0, 1, 0]}
    >>> prepare_design("models", table).formula
    'correct ~ model + (1 | item)'
    """
    import pandas as pd

    if name not in DESIGNS:
        raise MeasureError(
            f"there is no design {name!r}; the designs are {', '.join(DESIGNS)}.{suggest_name(name, DESIGNS)}"
        )
    design, frame = DESIGNS[name], pd.DataFrame(table)
    if missing := [column for column in design.columns if column not in frame]:
        raise MeasureError(
            f"the design {name!r} needs the column {missing[0]!r} ({design.columns[missing[0]]}); "
            f"the table has {', '.join(map(str, frame.columns))}. Rename a column, or add it"
        )
    used = [column for column in (*design.columns, *design.optional) if column in frame]
    complete = frame[used].dropna().reset_index(drop=True)
    if complete.empty:
        raise Undefined(f"no row of the table has a value in each of the columns {', '.join(used)}")
    prepared = design.prepare(complete)
    if dropped := len(frame) - len(complete):
        note = f"{dropped} of {len(frame)} rows lack a value and are left out"
        prepared = _add_notes(prepared, [note])
    return prepared


def _prepare_models(frame: pd.DataFrame) -> PreparedDesign:
    """Prepare the comparison of models over items, which may lie in paradigms."""
    outcome, family = _find_outcome(frame)
    _require_levels(frame, "model", 2)
    frame, notes = _nest_items(frame), _note_few_groups(frame, ("paradigm",))
    random = "(1 | item)"
    if "paradigm" in frame:
        _require_levels(frame, "paradigm", 2)
        random = f"(1 + model | paradigm) + {random}"
    return PreparedDesign(
        frame, f"{outcome} ~ model + {random}", f"{outcome} ~ 1 + {random}", family, "whether the models differ", notes
    )


def _prepare_seeds(frame: pd.DataFrame) -> PreparedDesign:
    """Prepare an analysis whose models were trained from several seeds, which are a sample of all seeds."""
    outcome, family = _find_outcome(frame)
    _require_levels(frame, "seed", 2)
    # A seed of one model has nothing in common with the same number of another.
    several = "model" in frame and frame["model"].nunique() > 1
    frame = _nest_items(frame)
    if several:
        frame["seed"] = frame["model"].astype(str) + ":" + frame["seed"].astype(str)
    random = "(1 | seed) + (1 | item)"
    if "paradigm" in frame and several:
        random = f"(1 + model | paradigm) + {random}"
    elif "paradigm" in frame:
        random = f"(1 | paradigm) + {random}"
    return PreparedDesign(
        frame,
        f"{outcome} ~ {'model' if several else '1'} + {random}",
        f"{outcome} ~ 1 + {random}" if several else "",
        family,
        "whether the models differ, over all seeds that they might be trained from" if several else "",
        _note_few_groups(frame, ("seed", "paradigm")),
    )


def _prepare_ratings(frame: pd.DataFrame) -> PreparedDesign:
    """Prepare the regression of single ratings on the scores of a model, beside length and frequency."""
    controls = [column for column in ("length", "frequency") if column in frame]
    frame = _standardise(frame, ["score", *controls])
    _require_levels(frame, "participant", 2)
    random = "(1 + score | participant) + (1 | item)"
    others = " + ".join([*controls, random])
    beyond = f" beyond {' and '.join(controls)}" if controls else ""
    return PreparedDesign(
        frame,
        f"rating ~ score + {others}",
        f"rating ~ {others}" if controls else f"rating ~ 1 + {others}",
        "gaussian",
        f"whether scores predict ratings{beyond}",
        (
            *_note_few_groups(frame, ("participant", "item")),
            "predictors are in standard deviations; for ratings on few points see family='ordinal'",
        ),
    )


_SPILL_OVER = 2
"""How many earlier words can still slow down the reading of a word: two, the usual choice for self-paced reading."""


def _prepare_reading_times(frame: pd.DataFrame) -> PreparedDesign:
    """Prepare the regression of reading times on surprisal, with the spill-over of the two words before."""
    controls = [column for column in ("length", "frequency") if column in frame]
    properties = ["surprisal", *controls]
    lagged, first_words = _add_earlier_words(frame, properties)
    predictors = [f"{name}{suffix}" for name in properties for suffix in _SUFFIXES]
    prepared = _standardise(lagged, [*predictors, "position"])
    # What all readers share is the word that they read: an item at a position.
    prepared["word"] = prepared["item"].astype(str) + ":" + lagged["position"].astype(int).astype(str)
    surprisals = [name for name in predictors if name.startswith("surprisal")]
    others = [name for name in predictors if name not in surprisals]
    random = "(1 + surprisal | subject) + (1 | word)"
    reduced = " + ".join(["position", *others, random])
    return PreparedDesign(
        prepared,
        f"rt ~ {' + '.join(surprisals)} + {reduced}",
        f"rt ~ {reduced}",
        "gaussian",
        f"whether surprisal, of a word or of the {_SPILL_OVER} before it, predicts reading times",
        (
            *_note_few_groups(frame, ("subject", "item")),
            f"{first_words} rows of words without {_SPILL_OVER} words before them are left out",
            "predictors are in standard deviations",
        ),
    )


_SUFFIXES = ("", *(f"_previous{lag}" for lag in range(1, _SPILL_OVER + 1)))


def _add_earlier_words(frame: pd.DataFrame, properties: Sequence[str]) -> tuple[pd.DataFrame, int]:
    """Return the table with the properties of the words before, and how many rows have too few words before them."""
    words = frame.groupby(["item", "position"], sort=False)[list(properties)]
    spread = words.agg(lambda values: values.max() - values.min())
    if (spread > 0).any(axis=None):
        item, position = spread.index[(spread > 0).any(axis=1)][0]
        raise MeasureError(
            f"item {item}, position {position}: the word has different values of "
            f"{', '.join(properties)} for different subjects; expected one surprisal a word"
        )
    # From the words of the item, not from the reader's previous row: readers skip words, or lose trials.
    table, joined = words.first().reset_index(), frame
    for lag in range(1, _SPILL_OVER + 1):
        earlier = table.rename(columns={name: f"{name}_previous{lag}" for name in properties})
        earlier["position"] = earlier["position"] + lag
        joined = joined.merge(earlier, on=["item", "position"], how="left")
    complete = joined.dropna().reset_index(drop=True)
    if complete.empty:
        raise Undefined(f"no word has {_SPILL_OVER} words before it; are positions counted 1, 2, 3 within each item?")
    return complete, len(joined) - len(complete)


def _prepare_learning_curve(frame: pd.DataFrame) -> PreparedDesign:
    """Prepare the growth of accuracy over training steps, perhaps by phenomenon."""
    import numpy as np

    outcome, family = _find_outcome(frame)
    _require_levels(frame, "step", 3)
    frame = frame.assign(log_step=np.log(frame["step"].astype(float) + 1))
    frame = _standardise(frame, ["log_step"])
    random = "(1 + log_step | item)"
    if "seed" in frame:
        random += " + (1 + log_step | seed)"
    full, reduced, tested = "log_step", "1", "whether accuracy changes with training"
    if "phenomenon" in frame and frame["phenomenon"].nunique() > 1:
        full, reduced = "log_step * phenomenon", "log_step + phenomenon"
        tested = "whether phenomena are learned at different rates"
    return PreparedDesign(
        frame,
        f"{outcome} ~ {full} + {random}",
        f"{outcome} ~ {reduced} + {random}",
        family,
        tested,
        (*_note_few_groups(frame, ("seed", "item")), "log_step is the logarithm of step + 1, in standard deviations"),
    )


_ITEM = "the sentence, pair or set"
_OUTCOME = {"correct": "1 if right, 0 if not", "difference": "used if there is no column correct: a number"}
_PARADIGM = {"paradigm": "the paradigm of the item"}

DESIGNS: Mapping[str, Design] = {
    design.name: design
    for design in (
        Design(
            "models",
            "Do models differ, over items and paradigms?",
            {"model": "the model", "item": _ITEM},
            _prepare_models,
            {**_OUTCOME, **_PARADIGM},
        ),
        Design(
            "seeds",
            "How good is a model, or which is better, over the seeds that it might be trained from?",
            {"seed": "the seed or restart", "item": _ITEM},
            _prepare_seeds,
            {**_OUTCOME, "model": "the model that was trained", **_PARADIGM},
        ),
        Design(
            "ratings",
            "Do a model's scores predict people's ratings, beyond length and frequency?",
            {"rating": "one person's rating", "score": "the model's score", "participant": "the person", "item": _ITEM},
            _prepare_ratings,
            {"length": "the length of the sentence", "frequency": "its mean log frequency"},
        ),
        Design(
            "reading-times",
            "Does surprisal predict reading times, of the word or of those after it?",
            {
                "rt": "the reading time in milliseconds, or its logarithm",
                "surprisal": "the surprisal of the word",
                "subject": "the reader",
                "item": "the text",
                "position": "the number of the word in the text: 1, 2, 3",
            },
            _prepare_reading_times,
            {"length": "the length of the word", "frequency": "its log frequency"},
        ),
        Design(
            "learning-curve",
            "How does accuracy grow in training, and does it differ between phenomena?",
            {"step": "the training step of the checkpoint", "item": _ITEM},
            _prepare_learning_curve,
            {**_OUTCOME, "phenomenon": "the phenomenon of the item", "seed": "the seed or restart"},
        ),
    )
}
"""The designs, by name."""


def _find_outcome(frame: pd.DataFrame) -> tuple[str, str]:
    """Return the column of the outcome, and its family."""
    if "correct" in frame:
        return "correct", "binomial"
    if "difference" in frame:
        return "difference", "gaussian"
    raise MeasureError(
        "the table has neither a column 'correct' (1 if right, 0 if not) nor 'difference' (a number); add one of them"
    )


def _nest_items(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with items named within their paradigms: item 1 of one is not item 1 of another."""
    if "paradigm" not in frame:
        return frame.copy()
    return frame.assign(item=frame["paradigm"].astype(str) + ":" + frame["item"].astype(str))


def _standardise(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return the table with some columns in standard deviations from their mean."""
    frame = frame.copy()
    for name in columns:
        values = frame[name].astype(float)
        if not (spread := float(values.std(ddof=0))) > 0:
            raise Undefined(f"column {name!r} has the same value in all rows: it predicts nothing. Leave it out")
        frame[name] = (values - values.mean()) / spread
    return frame


def _require_levels(frame: pd.DataFrame, column: str, least: int) -> None:
    if (count := frame[column].nunique()) < least:
        raise Undefined(f"column {column!r} has {count} different values; this design needs {least} or more")


def _note_few_groups(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[str, ...]:
    counts = {column: int(frame[column].nunique()) for column in columns if column in frame}
    return tuple(
        f"there are only {count} values of {column!r}: how they vary is poorly known, and Wald's p is too small; "
        f"prefer a parametric bootstrap"
        for column, count in counts.items()
        if count < _FEW_GROUPS
    )


def _add_notes(prepared: PreparedDesign, notes: Sequence[str]) -> PreparedDesign:
    values: dict[str, Any] = vars(prepared) | {"notes": (*prepared.notes, *notes)}
    return PreparedDesign(**values)


@dataclass(frozen=True, eq=False)
class DesignFit:
    """The regression of a design, and the test of the effect that it is about.

    Args:
        prepared: The table and the formulas.
        model: The full model; a linear one fitted by REML, whose t tests have Satterthwaite's degrees of freedom.
        comparison: The likelihood-ratio test against the reduced model, both fitted by maximum likelihood; None if the
            design tests nothing.
    """

    prepared: PreparedDesign
    model: MixedRegression
    comparison: ModelComparison | None

    def __str__(self) -> str:
        return f"{self.model}\n\n{self.describe()}"

    def describe(self) -> str:
        """Return the test and the notes in lines of at most 80 characters."""
        lines = [f"Note: {note}." for note in self.prepared.notes]
        if self.comparison is not None:
            test = self.comparison
            lines.insert(0, f"Test of {self.prepared.tested}: {test.test}, {test.statistic:.4g}, df {test.df}, ")
            lines[0] += f"p = {test.p:.4g}{'; ' if test.note else ''}{test.note}."
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)

    def to_dict(self) -> dict[str, object]:
        """Return the formulas, the test and the notes, for JSON."""
        return {
            "formula": self.prepared.formula,
            "reduced": self.prepared.reduced,
            "tested": self.prepared.tested,
            "comparison": self.comparison and asdict(self.comparison),
            "notes": list(self.prepared.notes),
        }


def fit_design(
    name: str, table: Mapping[str, Sequence[object]] | pd.DataFrame, *, draws: int = 0, seed: int = 0
) -> DesignFit:
    """Return the regression of a design with its test.

    Args:
        name: "models", "seeds", "ratings", "reading-times" or "learning-curve".
        table: The data, with the columns that the design needs.
        draws: How many data sets a parametric bootstrap simulates for p; 0 for the chi-squared distribution, which
            assumes many groups.
        seed: The seed of the bootstrap.

    >>> import numpy as np
    >>> generator = np.random.default_rng(1)
    >>> item = np.repeat(np.arange(40), 2)
    >>> table = {"item": item, "model": ["a", "b"] * 40}
    >>> table["difference"] = generator.normal(size=40)[item] + np.tile([0.0, 1.0], 40) + generator.normal(size=80) / 2
    >>> fit = fit_design("models", table)
    >>> fit.comparison.test, fit.comparison.df, fit.comparison.p < 0.001
    ('likelihood-ratio test, chi-squared', 1, True)
    """
    prepared = prepare_design(name, table)
    model = regress(prepared.formula, prepared.frame, family=prepared.family)
    if not prepared.reduced:
        return DesignFit(prepared, model, None)
    full, reduced = (
        regress(formula, prepared.frame, family=prepared.family, reml=False)
        for formula in (prepared.formula, prepared.reduced)
    )
    method = "bootstrap" if draws else "chi-squared"
    return DesignFit(prepared, model, compare_models(full, reduced, method=method, draws=draws or 1, seed=seed))
