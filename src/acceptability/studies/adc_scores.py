"""The scores that Vázquez Martínez (2021) published: six BERTs and a trigram model on LI-Adger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from acceptability.errors import ScoreError
from acceptability.measures.delta import ADC
from acceptability.measures.rows import scores_z
from acceptability.studies.files import published
from acceptability.suites import load_suite
from acceptability.text import dict_rows
from acceptability.types import Floats, Scores, Suite

SOURCE = "published scores"
SIZES = ("base-uncased", "large-uncased", "large-cased")
COLA = tuple(f"BERT {size} CoLA" for size in SIZES)
MLM = tuple(f"BERT {size} MLM" for size in SIZES)
SLOR, LOGPROB = "trigram SLOR", "trigram log-prob"

_SENTENCES = "output/bert_{}_results_li-adger_sentences.csv"
_PAIRS = "output/li-adger_min_pairs_all_models.csv"


@dataclass(frozen=True, eq=False)
class Judge:
    """One of the paper's models: its scores, and whether they are in z units already."""

    scores: Scores
    in_z: bool

    def adc(self, delta: float) -> ADC:
        """Return the criterion as this model's scores need it."""
        return ADC(delta=delta, standardise=not self.in_z)


@dataclass(frozen=True, eq=False)
class Published:
    """LI-Adger, and what each of the paper's models makes of it."""

    suite: Suite
    judges: Mapping[str, Judge]
    deltas: Mapping[str, Floats]
    """People's gaps and each model's, as the paper's own file of pairs has them."""

    def z(self, name: str) -> Mapping[str, float]:
        """Return a model's scores in z units, by sentence."""
        judge = self.judges[name]
        return judge.scores.values if judge.in_z else scores_z(self.suite, judge.scores)

    def gaps(self) -> dict[str, Floats]:
        """Return people's gaps and each model's, in z units, from ratings and scores of sentences."""
        units = {name: judge.adc(5).units(self.suite, judge.scores) for name, judge in self.judges.items()}
        human = next(iter(units.values()))["human_gap"]
        return {"human": human} | {name: each["gap"] for name, each in units.items()}


def load() -> Published:
    """Return the suite and the published scores, models in the order of the paper's Table 1."""
    files = published("li_adger/published")
    judges = {
        name: judge for kind, names in (("mlm", MLM), ("acc", COLA)) for name, judge in _berts(files, kind, names)
    }
    # The trigram's z-scores were taken over sentences that are not published: they are used as they are.
    judges |= {
        SLOR: Judge(_trigram(files[_PAIRS], "slor"), True),
        LOGPROB: Judge(_trigram(files[_PAIRS], "logProb"), True),
    }
    return Published(load_suite("li_adger"), judges, _deltas(files[_PAIRS]))


def _berts(files: Mapping[str, bytes], kind: str, names: tuple[str, ...]) -> Iterator[tuple[str, Judge]]:
    path = _SENTENCES.format(kind)
    rows = [row for _, row in dict_rows(files[path], path)]
    for size, name in zip(SIZES, names, strict=True):
        column = f"bert-{size}_{kind}"
        yield name, Judge(Scores({row["id"]: float(row[column]) for row in rows}, column), False)


def _deltas(content: bytes) -> dict[str, Floats]:
    """Return the gaps that stand in the file with a row for each pair; two pairs were not rated, and have none."""
    columns = {"human": "human_judge_delta", SLOR: "slor_zscore-delta", LOGPROB: "logProb_zscore-delta"}
    for kind, names in (("mlm", MLM), ("acc", COLA)):
        columns |= {name: f"bert-{size}_{kind}_zscore-delta" for size, name in zip(SIZES, names, strict=True)}
    rows = [row for _, row in dict_rows(content, _PAIRS) if row[columns["human"]]]
    return {name: np.array([float(row[column]) for row in rows]) for name, column in columns.items()}


def _trigram(content: bytes, column: str) -> Scores:
    """Return the z-scores of the trigram model, from the file with a row for each pair."""
    values: dict[str, float] = {}
    for line, row in dict_rows(content, _PAIRS):
        for member in ("gramm", "ungramm"):
            given = row[f"{column}_zscores_{member}"]
            if not given:  # so for sentences of two pairs that nobody rated
                continue
            score = float(given)
            if values.setdefault(row[f"{member}_id"], score) != score:
                raise ScoreError(f"{_PAIRS}, line {line}: another score of {row[f'{member}_id']!r} than before")
    return Scores(values, column)
