"""Regions and predictions from the command line."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
from pathlib import Path

import pytest

import program

SUITE = {
    "meta": {"name": "number"},
    "predictions": [{"formula": "(2;%short%) < (2;%long%)"}],
    "items": [
        {
            "item_number": item,
            "conditions": [
                {
                    "condition_name": name,
                    "regions": [{"region_number": 1, "content": "Cats"}, {"region_number": 2, "content": end}],
                }
                for name, end in (("short", "sleep."), ("long", "sleep a lot." if item < 3 else "doze."))
            ],
        }
        for item in (1, 2, 3)
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.json").write_text(json.dumps(SUITE), encoding="utf-8")
    return tmp_path


def typed(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = program.typed(arguments, folder, os.environ)
    assert done.returncode == code, done.stderr
    return done


def test_regions_are_scored_written_and_measured_again(folder: Path) -> None:
    rows = json.loads(typed(folder, "score", "mine.json", "uniform(vocabulary=4)", "--regions", "--json").stdout)
    assert [row["sentence_id"] for row in rows[:4]] == [
        "number/1/short#1",
        "number/1/short#2",
        "number/1/long#1",
        "number/1/long#2",
    ]
    assert [row["surprisal_bits"] for row in rows[:4]] == pytest.approx([2, 2, 2, 6])
    assert rows[3]["score"] == pytest.approx(-3 * math.log(4))
    typed(folder, "score", "mine.json", "uniform(vocabulary=4)", "--regions", "--out", "regions.csv")
    with (folder / "regions.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 12
    (again,) = json.loads(typed(folder, "measure", "mine.json", "--scores", "regions.csv", "--json").stdout)
    (direct,) = json.loads(typed(folder, "evaluate", "mine.json", "--model", "uniform", "--json").stdout)
    assert again["value"] == direct["value"] == pytest.approx(2 / 3)
    assert (direct["n"], direct["measure"]) == (3, "Predictions(per='prediction', tolerance=0.001)")


def test_two_models_are_compared_by_their_predictions(folder: Path) -> None:
    models = ["--model", "uniform", "--model", "uniform(vocabulary=9)"]
    (row,) = json.loads(typed(folder, "compare", "mine.json", *models, "--json").stdout)
    assert (row["first_value"], row["difference"]) == (pytest.approx(2 / 3), 0)
    done = typed(folder, "compare", "mine.json", *models, "--reduce", "mean_lp", code=1)
    assert "omit the reduction mean_lp" in done.stderr


def test_options_that_exclude_regions_are_refused(folder: Path) -> None:
    done = typed(folder, "score", "mine.json", "uniform", "--regions", "--words", code=1)
    assert "choose one" in done.stderr
    (folder / "plain.csv").write_text("text,label\nCats sleep.,1\n", encoding="utf-8")
    assert "has no regions" in typed(folder, "score", "plain.csv", "uniform", "--regions", code=1).stderr
    assert typed(folder, "score", "mine.json", "uniform", "--regions", "--reduce", "lp", code=1).stdout == ""
