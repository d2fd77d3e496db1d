"""The eight BLiMP counts and twenty-four ADC counts of Vázquez Martínez (2021), Table 1, from the published scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability.cli import app

TABLE_1 = {
    "bert-base-uncased_mlm": (2016, 862, 1493, 2008),
    "bert-large-uncased_mlm": (2049, 894, 1555, 2031),
    "bert-large-cased_mlm": (2061, 890, 1563, 2053),
    "bert-base-uncased_acc": (2163, 677, 1272, 2133),
    "bert-large-uncased_acc": (2169, 735, 1333, 2145),
    "bert-large-cased_acc": (2213, 726, 1326, 2187),
    "slor": (1781, 712, 1230, 1759),
    "logProb": (1586, 390, 778, 1580),
}


def counts(*arguments: str) -> tuple[int, ...]:
    done = CliRunner().invoke(app, ["measure", "li_adger", *arguments, "--json", "--resamples", "0"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {row["n"] for row in rows} == {2365}
    results = [row["value"] * row["n"] for row in rows]
    assert results == pytest.approx([round(count) for count in results], abs=1e-6)
    return tuple(round(count) for count in results)


def measure_options(extra: str = "") -> list[str]:
    measures = ["PairAccuracy", *(f"ADC(delta={delta}{extra})" for delta in (0.5, 1, 5))]
    return [part for measure in measures for part in ("--measure", measure)]


@pytest.mark.parametrize("model", [name for name in TABLE_1 if name.startswith("bert")])
def test_bert(model: str, data: Path) -> None:
    kind = model.rpartition("_")[2]
    path = data / "li_adger" / "output" / f"bert_{kind}_results_li-adger_sentences.csv"
    assert (
        counts("--scores", str(path), "--score-columns", f"id=id,score={model}", *measure_options()) == TABLE_1[model]
    )


@pytest.mark.parametrize("model", ["slor", "logProb"])
def test_trigram_from_the_published_z_columns(model: str, data: Path) -> None:
    path = data / "li_adger" / "output" / "li-adger_min_pairs_all_models.csv"
    columns = [
        part
        for member in ("gramm", "ungramm")
        for part in ("--score-columns", f"id={member}_id,score={model}_zscores_{member}")
    ]
    results = counts("--scores", str(path), *columns, *measure_options(", standardise=False"))
    assert results == TABLE_1[model]


def test_the_literal_sign_loses_the_two_identical_pairs(data: Path) -> None:
    path = data / "li_adger" / "output" / "bert_mlm_results_li-adger_sentences.csv"
    literal = [part for delta in (0.5, 1, 5) for part in ("--measure", f"ADC(delta={delta}, tie='literal')")]
    model = "bert-base-uncased_mlm"
    results = counts("--scores", str(path), "--score-columns", f"id=id,score={model}", *literal)
    assert results == tuple(count - 2 for count in TABLE_1[model][1:])
