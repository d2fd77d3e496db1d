"""Tables of ratings: from a file of participants' responses to ratings, reliability, agreement and noise ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from acceptability import __version__
from acceptability.api.interface.arguments import SuiteLike, as_suite
from acceptability.display import Table, TableRow, format_html
from acceptability.errors import MeasureError
from acceptability.models.files import hash_file
from acceptability.people import RatingRules, Responses, rate, read_responses
from acceptability.people.choices import build_choice_rows, read_choices, summarise_choices
from acceptability.people.ratings import Ratings, build_rating_rows, parse_outlier_rule
from acceptability.people.reliability import (
    SummaryRow,
    build_agreement_rows,
    build_ceiling_rows,
    build_reliability_rows,
)
from acceptability.specs import build_signature, format_spec
from acceptability.store.scorefile import read_scores
from acceptability.suites import load_suite
from acceptability.suites.frames import hash_frame, is_pandas
from acceptability.suites.table_files import is_table_file
from acceptability.types import Scores, Suite

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = RatingRules().level


@dataclass(frozen=True)
class ResponseOptions:
    """How a file of responses is read and rated.

    Args:
        kind: "magnitude", "likert" or "yes-no".
        columns: The names of its columns by their meaning.
        raters: For a file with a row per sentence: the columns of participants.
        other: How to treat an answer that is neither yes nor no: "refuse", "no", or "missing".
        scale, min_responses, min_catch: As in ``RatingRules``.
        outliers: The spec of the rule for outliers.
        splits: The number of random splits of the split-half reliability.
        seed: Their seed.
    """

    kind: str
    columns: Mapping[str, str] = field(default_factory=dict)
    raters: str = ""
    other: str = "refuse"
    scale: str = ""
    outliers: str = "none"
    min_responses: int = 1
    min_catch: float = 0.0
    splits: int = 1000
    seed: int = 0

    @property
    def rules(self) -> RatingRules:
        """The rules for computing ratings from the answers."""
        return RatingRules(
            scale=self.scale,
            outliers=parse_outlier_rule(self.outliers),
            min_responses=self.min_responses,
            min_catch=self.min_catch,
        )

    @property
    def spec(self) -> str:
        """The options that change a number, but for the names of columns, which belong to the file."""
        names = ("kind", "raters", "other", "scale", "outliers", "min_responses", "min_catch", "splits", "seed")
        return format_spec("ratings", {name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class ScoreFile:
    """A file of model scores that is compared with the noise ceiling.

    Args:
        path: The file.
        columns: The names of its columns by their meaning.
        partial: Whether sentences without a score are left out.
        where: Values of tags: only this part of the sentences is compared.
    """

    path: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RatingTables:
    """The tables of the command ``ratings``.

    Args:
        tables: The rows of each table, by its name; the first is that of the ratings, or of the pairs.
        signature: What is needed to compute them again.
        notes: Remarks for the reader.
        left_out: The excluded participants, with the reason.
    """

    tables: Mapping[str, list[SummaryRow]]
    signature: str
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        """Return one of the tables by its name."""
        if name not in self.tables:
            raise MeasureError(f"there is no table {name!r}; there are {', '.join(self.tables)}")
        return Table(TableRow(row) for row in self.tables[name])

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} ({len(rows)} rows)" for name, rows in self.tables.items() if rows)
        return f"RatingTables({counts})"

    def _repr_html_(self) -> str:
        return "".join(format_html(rows, caption=name) for name, rows in self.tables.items() if rows) + format_html(
            [], notes=self.notes
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the ratings, or the pairs, as a pandas data frame; ``self[name].to_frame()`` is that of another table.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return self[next(iter(self.tables))].to_frame()

    def rows(self) -> list[dict[str, object]]:
        """Return the rows of all tables as flat rows, for the record of a run."""
        return [
            {"in_table": name, **row, "signature": self.signature} for name, rows in self.tables.items() for row in rows
        ]


def ratings(
    file: str | Path | pd.DataFrame,
    kind: str,
    *,
    columns: Mapping[str, str] | None = None,
    raters: str = "",
    suite: SuiteLike | None = None,
    other: str = "refuse",
    scale: str = "",
    outliers: str = "none",
    min_responses: int = 1,
    min_catch: float = 0.0,
    splits: int = 1000,
    seed: int = 0,
    scores: ScoreFile | str | Path | None = None,
) -> RatingTables:
    """Return ratings from participants' responses: means with intervals, reliability, agreement with labels.

    Args:
        file: A CSV, TSV, JSONL or Parquet file of responses, a data frame, or the name of a suite with responses.
        kind: "magnitude", "likert", "yes-no" or "choice".
        columns: The names of its columns by their meaning: participant, sentence, response, and perhaps label.
        raters: For a file with a row per sentence: the columns of participants, such as ``rater_*``.
        suite: The suite of the sentences, which are matched by id or text.
        other: What a response other than yes or no counts as: "refuse" (an error), "no" or "missing".
        scale: "z" (standardised within participants) or "raw"; by default z, but raw for yes-no.
        outliers: The outlier rule: "none", "sd(3)" or "mad(3.5)".
        min_responses: Exclude participants with fewer responses.
        min_catch: Exclude participants who got a smaller share of the catch items right.
        splits: The number of random splits for the split-half reliability.
        seed: Their seed.
        scores: A file of model scores to compare with the noise ceiling.
    """
    source = file if is_pandas(file, "DataFrame") else str(file)
    if kind == "choice":
        return build_choice_tables(source, columns)
    options = ResponseOptions(
        kind, columns or {}, raters, other, scale, outliers, min_responses, min_catch, splits, seed
    )
    loaded = None if suite is None else as_suite(suite)
    score_file = ScoreFile(Path(scores)) if isinstance(scores, str | Path) else scores
    return build_rating_tables(source, options, suite=loaded, scores=score_file)


def build_rating_tables(
    file: str | pd.DataFrame,
    options: ResponseOptions,
    *,
    suite: Suite | str | None = None,
    scores: ScoreFile | None = None,
) -> RatingTables:
    """Return ratings from responses, with their reliability, agreement with labels, and models' share of the ceiling.

    Args:
        file: A table of responses, as a file or a data frame, or the name of a suite with responses.
        options: How it is read and rated.
        suite: The suite of the sentences, which are matched by id or text.
        scores: A file of model scores.
    """
    # First, since a wrong option is an error of the user's, whatever is in the file.
    rules, rated_suite = options.rules, load_suite(suite) if isinstance(suite, str) else suite
    responses = read_responses(
        file,
        kind=options.kind,
        columns=options.columns,
        raters=options.raters,
        suite=rated_suite,
        other=options.other,
    )
    ratings = rate(responses, rules)
    # The ids and texts of the scores are checked against the rated sentences.
    rated_sentences = ratings.to_suite()
    model_scores: list[Scores] = []
    compared = ratings
    if scores:
        columns = [scores.columns]
        model_scores = read_scores(scores.path, rated_sentences, columns, partial=scores.partial, where=scores.where)
        # Only the comparison is restricted: answers are standardised over all that a participant gave.
        compared = ratings.restrict(rated_sentences.filter(**scores.where).by_id)
    splitting = {"splits": options.splits, "seed": options.seed}
    tables = {
        "ratings": build_rating_rows(ratings),
        "reliability": build_reliability_rows(ratings, **splitting),
        "agreement": build_agreement_rows(responses) if _has_judgement_labels(responses) else [],
        "ceiling": build_ceiling_rows(compared, model_scores, **splitting),
    }
    notes = dict.fromkeys((*ratings.notes, *(note for given in model_scores for note in given.notes)))
    signature = _sign_ratings(file, options, rated_suite, model_scores, ratings)
    return RatingTables(tables, signature, tuple(notes), ratings.left_out)


def build_choice_tables(file: str | pd.DataFrame, columns: Mapping[str, str] | None = None) -> RatingTables:
    """Return the choices between the two sentences of pairs, by pair and overall.

    Args:
        file: A table of choices, as a file or a data frame, or the name of a suite with choices.
        columns: The names of its columns by their meaning.
    """
    choices = read_choices(file, columns=columns, level=_LEVEL)
    fields = {
        "data": _sign_source(file, columns or {}),
        "n": str(len(choices.pairs)),
        "ci": f"clopper-pearson({_LEVEL:g})",
        "test": "sign,two-sided,ties dropped",
        "acceptability": __version__,
    }
    notes = (*choices.notes, f"intervals at {_LEVEL:g}: exact binomial; p: sign test, two-sided")
    tables = {"pairs": build_choice_rows(choices), "overall": [summarise_choices(choices)]}
    return RatingTables(tables, build_signature("choices()", fields), notes)


def _sign_ratings(
    file: str | pd.DataFrame, options: ResponseOptions, suite: Suite | None, scores: Sequence[Scores], ratings: Ratings
) -> str:
    fields = {"data": _sign_source(file, options.columns)}
    fields |= {"suite": suite.signature} if suite else {}
    # All columns of a file of scores share its name and hash; each has its own model behind them.
    fields |= {"models": " and ".join(given.signature for given in scores)} if scores else {}
    interval = "clopper-pearson" if ratings.unit == "share" else "student-t"
    return build_signature(
        options.spec,
        fields
        | {
            "n": str(len(ratings.rows)),
            "ci": f"{interval}({_LEVEL:g})",
            "reliability": f"split-half(spearman-brown,splits={options.splits},seed={options.seed},by=participant)",
            "reliability_ci": f"alpha feldt({_LEVEL:g}),icc mcgraw-wong({_LEVEL:g})"
            + (f",kappa jackknife({_LEVEL:g})" if ratings.unit == "share" else ""),
            "test": "kappa z,two-sided" if ratings.unit == "share" else "none",
            "acceptability": __version__,
        },
    )


def _sign_source(file: str | pd.DataFrame, columns: Mapping[str, str]) -> str:
    """Return the name and hash of a file of responses with its column mapping, or the signature of a suite."""
    if isinstance(file, str) and not is_table_file(file):
        return load_suite(file).signature
    named = ",".join(f"{meaning}={column}" for meaning, column in columns.items())
    source = f"{Path(file).name}@{hash_file(Path(file))}" if isinstance(file, str) else f"frame@{hash_frame(file)}"
    return source + (f"({named})" if named else "")


def _has_judgement_labels(responses: Responses) -> bool:
    # Agreement compares yes or no with labels of 1 or 0; graded responses have nothing to compare.
    return responses.kind == "yes-no" and any(sentence.label is not None for sentence in responses.sentences)
