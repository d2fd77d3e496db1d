"""The command ``acceptability probe``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import SpecError, SuiteError


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """Six items, each in the singular and in the plural."""
    rows = ["text\titem\tnumber"]
    for item, noun in enumerate(["cat", "dog", "boy", "girl", "man", "king"]):
        rows += [f"The {noun} sleeps.\t{item}\tone", f"The {noun}s sleep.\t{item}\tmany"]
    path = tmp_path / "number.tsv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return str(path)


def test_baselines_are_shown_and_factors_are_inferred(suite: str) -> None:
    done = CliRunner().invoke(app, ["probe", suite, "--json", "--resamples", "0"], catch_exceptions=False)
    rows = json.loads(done.stdout)
    assert [(row["encoder"], row["factor"], row["mcc"]) for row in rows] == [
        ("majority", "number", 0.0),
        ("bag-of-words", "number", 1.0),
    ]
    assert rows[1]["signature"].startswith("probe|factor:number|model:bag-of-words(least=2)|layer:0|group:all")


def test_the_table_explains_the_majority(suite: str) -> None:
    done = CliRunner().invoke(app, ["probe", suite], catch_exceptions=False)
    assert "selectivity" in done.stdout
    assert "its MCC is 0 by definition" in done.stderr


def test_invalid_options_are_refused(suite: str) -> None:
    for arguments, error, message in (
        (["--layers", "last"], SpecError, "--layers 'last': expected all, or numbers"),
        (["--factor", "numbr"], SuiteError, "Did you mean 'number'"),
        (["--held-out", "items"], SuiteError, "no sentence of suite 'number' has the tag 'items'"),
    ):
        with pytest.raises(error, match=message):
            CliRunner().invoke(app, ["probe", suite, *arguments], catch_exceptions=False)
