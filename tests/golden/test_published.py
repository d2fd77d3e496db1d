"""Published numbers, recomputed from the authors' own files: Niu and Penn (2020), Warstadt et al. (2019)."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from acceptability import MCC, PBC, Scores, Suite, load_suite


@pytest.mark.parametrize(
    ("model", "pronoun", "expected"), [("grnn", "herself", 0.2532), ("trans", "themselves", 0.7315)]
)
def test_aggregated_pbc_of_exp1b(model: str, pronoun: str, expected: float, data: Path) -> None:
    suite = load_suite(f"hu_reflexive/exp1b-ml-comp/{pronoun}")
    path = data / "hu_reflexive" / "data" / "surprisal" / model / "exp1b-ml-comp" / f"{pronoun}_{model}.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if row and row[0] == pronoun]
    assert len(rows) == len(suite.sentences)
    scores = Scores({sentence.id: -float(row[1]) for sentence, row in zip(suite.sentences, rows, strict=True)}, model)
    assert PBC().value(PBC().units(suite, scores)) == pytest.approx(expected, abs=5e-5)


def test_human_judgements_of_cola(data: Path) -> None:
    """The out-of-domain human row of CoLA's Table 4 (Warstadt et al. 2019): the mean MCC of five annotators."""
    human = load_suite("cola/human")
    part = Suite("out", tuple(sentence for sentence in human.sentences if sentence.tags["domain"] == "out"))
    measure = MCC(threshold=0.5)
    mccs = [
        measure.value(
            measure.units(part, Scores({sentence.id: float(sentence.tags[name]) for sentence in part.sentences}, name))
        )
        for name in (f"annotator_{number}" for number in range(1, 6))
    ]
    assert sum(mccs) / 5 == pytest.approx(0.7384, abs=5e-5)
