"""`acceptability regress`: tables and runs in, tables of 80 columns and JSON out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lme4_data
from acceptability.api.reproduction import reproduce
from acceptability.cli import app
from acceptability.errors import AcceptabilityError, StoreError
from acceptability.specs import parse_signature, parse_spec
from acceptability.stats import regress
from acceptability.store.run_tables import read_run_table

REACTION, DAYS, PERSON = lme4_data.sleepstudy()
FORMULA = "reaction ~ days + (days | person)"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "sleep.csv"
    rows = [f"{r},{d},{p}" for r, d, p in zip(REACTION, DAYS, PERSON, strict=True)]
    path.write_text("\n".join(["reaction,days,person", *rows]), encoding="utf-8")
    return path


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["regress", *map(str, arguments)], catch_exceptions=False)
    return result.stdout


def test_a_table_is_fitted_as_in_python(table: Path) -> None:
    expected = regress(FORMULA, {"reaction": REACTION, "days": DAYS, "person": PERSON})
    out = invoke(table, "--formula", FORMULA)
    assert out.startswith(str(expected))
    assert "F test, Satterthwaite df" in out
    assert max(map(len, out.splitlines())) <= 80
    shown = json.loads(invoke(table, "--formula", FORMULA, "--json"))
    assert shown["coefficients"][1]["estimate"] == pytest.approx(expected["days"].estimate)
    assert shown["coefficients"][1]["test"] == "t test, Satterthwaite df"
    assert shown["terms"][0]["p"] == pytest.approx(expected["days"].p)
    assert (shown["means"], shown["intervals"]) == (None, None)


def test_maximum_likelihood_and_profile_intervals(table: Path) -> None:
    shown = json.loads(invoke(table, "-f", FORMULA, "--ml", "--interval", "profile", "--level", "0.9", "--json"))
    assert shown["method"] == "ML"
    assert {one["method"] for one in shown["intervals"]} == {"0.9 profile likelihood"}
    with pytest.raises(AcceptabilityError, match="--interval is 'exact'"):
        invoke(table, "-f", FORMULA, "--interval", "exact")


@pytest.fixture
def run() -> None:
    measures = ["-M", "PairAccuracy(ties=0.5)", "-M", "GradientPair"]
    CliRunner().invoke(
        app, ["evaluate", "starter", "-m", "trigram", "-m", "uniform", *measures], catch_exceptions=False
    )


@pytest.mark.usefixtures("run")
def test_the_rows_of_a_run_have_models_and_tags() -> None:
    with pytest.raises(StoreError, match="2 values of measure .*choose one, such as --where measure="):
        read_run_table("latest")
    where = {"measure": "PairAccuracy(ties=0.5)"}
    columns = read_run_table("latest", where)
    assert {"model", "unit", "correct", "gap", "item", "phenomenon"} <= set(columns)
    assert sorted(set(columns["model"])) == ["trigram", "uniform"]
    assert set(columns["correct"]) == {0.0, 0.5, 1.0}
    choice = ["--where", "measure=PairAccuracy(ties=0.5)"]
    out = invoke("latest", "-f", "correct ~ model + (1 + model | phenomenon)", "--means", "model", *choice)
    assert "trigram - uniform" in out


def test_what_cannot_be_read(table: Path) -> None:
    with pytest.raises(StoreError, match="no run and no table named 'nothing'"):
        read_run_table("nothing")
    with pytest.raises(StoreError, match="no column 'person2' for --where"):
        read_run_table(str(table), {"person2": "a"})
    with pytest.raises(StoreError, match="no rows with these values of --where"):
        read_run_table(str(table), {"person": "nobody"})


def test_columns_are_numbers_where_all_cells_are(tmp_path: Path) -> None:
    path = tmp_path / "mixed.tsv"
    path.write_text("a\tb\tc\n1\t2\tx\n\t3.5\t4\n", encoding="utf-8")
    assert read_run_table(str(path)) == {"a": [1.0, None], "b": [2.0, 3.5], "c": ["x", "4"]}
    with pytest.raises(AcceptabilityError, match="column 'a' has 1 missing value"):
        regress("b ~ a + (1 | c)", read_run_table(str(path)))


def test_a_design_gives_formula_test_and_notes(run: None, tmp_path: Path) -> None:
    where = ["--where", "measure=PairAccuracy(ties=0.5)"]
    path = tmp_path / "answers.csv"
    columns = read_run_table("latest", {"measure": "PairAccuracy(ties=0.5)"})
    answers = [int(correct > 0.5) for correct in columns["correct"]]
    rows = zip(columns["model"], columns["item"], columns["phenomenon"], answers, strict=True)
    path.write_text("\n".join(["model,pair,phenomenon,right", *(",".join(map(str, row)) for row in rows)]), "utf-8")
    names = "item=pair,paradigm=phenomenon,correct=right"
    out = invoke(path, "--design", "models", "--columns", names)
    assert "correct ~ model + (1 + model | paradigm)" in out
    assert "Test of whether the models differ: likelihood-ratio test, chi-squared" in out
    assert max(map(len, out.splitlines())) <= 80
    shown = json.loads(invoke(path, "--design", "models", "--columns", names, "--json"))
    assert shown["design"]["comparison"]["df"] == 1
    assert shown["design"]["reduced"].startswith("correct ~ 1 + (1 + model | paradigm)")
    with pytest.raises(StoreError, match="the table has no column 'words'"):
        invoke(path, "--design", "models", "--columns", "item=words")
    with pytest.raises(AcceptabilityError, match="either --formula or --design"):
        invoke("latest", *where)


def test_ratings_are_fitted_by_an_ordinal_model(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    ratings = [1, 2, 3, 2, 3, 1, 2, 3, 3, 1, 1, 2, 3, 2, 1, 3]
    rows = [f"{rating},{'ab'[k % 2]},i{k // 4}" for k, rating in enumerate(ratings)]
    path.write_text("\n".join(["rating,kind,item", *rows]), encoding="utf-8")
    formula = "rating ~ kind + (1 | item)"
    out = invoke(path, "-f", formula, "--family", "ordinal", "--means", "kind")
    assert "1|2" in out
    assert "Scale: latent variable" in out
    assert max(map(len, out.splitlines())) <= 80
    shown = json.loads(invoke(path, "-f", formula, "--family", "ordinal", "--json"))
    assert [one["name"] for one in shown["thresholds"]] == ["1|2", "2|3"]


def test_the_engine_lme4_is_asked_for_by_name(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AcceptabilityError, match="has neither --design, --means nor --interval"):
        invoke(table, "-f", FORMULA, "--engine", "lme4", "--interval", "profile")
    with pytest.raises(AcceptabilityError, match="engine is 'nlme'"):
        invoke(table, "-f", FORMULA, "--engine", "nlme")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AcceptabilityError, match="Rscript was not found"):
        invoke(table, "-f", FORMULA, "--engine", "lme4")


def test_the_signature_names_data_and_methods(table: Path) -> None:
    shown = json.loads(invoke(table, "-f", FORMULA, "--interval", "profile", "--json"))
    fields = parse_signature(shown["signature"])
    assert parse_spec(fields["measure"]).options == {"formula": FORMULA, "family": "gaussian", "design": ""}
    assert fields["data"] == f"sleep.csv@{hashlib.sha256(table.read_bytes()).hexdigest()[:12]}"
    assert fields["test"] == "t test, Satterthwaite df"
    assert fields["ci"] == "0.95 Wald, t with Satterthwaite df and 0.95 profile likelihood"
    assert (fields["n"], fields["method"]) == ("180", "REML")
    (again,) = reproduce(shown["signature"])
    assert again.status == "not reproducible"
    assert "run `acceptability regress`" in again.differences[0]
