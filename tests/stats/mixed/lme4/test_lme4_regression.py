"""The bridge to R: what is written for it and read from it, its errors, and where R is there, its numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pandas
import pytest

from acceptability.errors import MeasureError, MissingExtra
from acceptability.stats import regress

DATA = Path(__file__).parents[3] / "golden" / "mixed" / "data"
FRAME = {"rating": [1, 2, 3, 2, 1, 3], "kind": list("aabbab"), "item": ["i1", "i2", "i3", "i1", "i2", "i3"]}

# What the script writes for a model of two coefficients with two random effects.
RESPONSE = """
cat > "$3/model.csv" <<END
"key","value"
"log_likelihood","-871.5"
"parameters","6"
"rows","180"
"residual_sd","25.5"
"is_singular","TRUE"
"thresholds","0"
"engine","lme4 9.9 (R 4.9)"
END
cat > "$3/coefficients.csv" <<END
"term","estimate","se","df"
"(Intercept)"," 250.0"," 5.0"," 17.0"
"Days","  10.0"," 2.0"," 16.0"
END
cat > "$3/random.csv" <<END
"group","term","sd","correlations","groups"
"Subject","(Intercept)","24.7","","18"
"Subject","Days"," 0.0"," NaN","18"
END
cat > "$3/notes.csv" <<END
"note"
"boundary (singular)
fit"
END
"""


@pytest.fixture
def fake_rscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of Rscript, whose body the test writes; it keeps what it was given in ``seen``."""
    program = tmp_path / "bin" / "Rscript"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def write_program(program: Path, body: str) -> Path:
    seen = program.parent.parent / "seen"
    program.write_text(f'#!/bin/sh\ncp -r "$3" {seen}\necho "$4 $5" > {seen}/arguments\n{body}\n', encoding="utf-8")
    program.chmod(0o755)
    return seen


def test_the_request_keeps_labels_types_and_order(fake_rscript: Path) -> None:
    seen = write_program(fake_rscript, RESPONSE)
    frame = pandas.DataFrame(FRAME | {"unused": range(6), "length": [1.5, 2.0, 3.0, 4.0, 5.0, 6.25]})
    frame["item"] = ["01", "2", "03", "01", "2", "03"]
    frame["kind"] = pandas.Categorical(frame["kind"], ["b", "a"])
    regress("rating ~ kind +\n length + (1 | item)", frame, engine="lme4", reml=False)
    assert (seen / "formula.txt").read_text() == "rating ~ kind + length + (1 | item)\n"
    assert (seen / "arguments").read_text().split() == ["gaussian", "ML"]
    rows = pandas.read_csv(seen / "rows.csv")
    assert list(rows) == ["rating", "kind", "item", "length"]
    assert rows["kind"].tolist() == [2, 2, 1, 1, 2, 1]
    assert rows["length"].tolist() == [1.5, 2.0, 3.0, 4.0, 5.0, 6.25]
    levels = pandas.read_csv(seen / "levels.csv", dtype=str)
    assert levels.to_numpy().tolist() == [["kind", "b"], ["kind", "a"], ["item", "01"], ["item", "03"], ["item", "2"]]


def test_levels_of_an_ordinal_outcome_are_written_in_their_order(fake_rscript: Path) -> None:
    seen = write_program(fake_rscript, RESPONSE)
    frame = pandas.DataFrame(FRAME)
    frame["rating"] = pandas.Categorical.from_codes(frame["rating"] - 1, ["poor", "fair", "good"], ordered=True)
    regress("rating ~ kind + (1 | item)", frame, engine="lme4", family="ordinal-probit")
    assert (seen / "arguments").read_text().split() == ["ordinal-probit", "probit"]
    levels = pandas.read_csv(seen / "levels.csv", dtype=str).query("column == 'rating'")
    assert levels["level"].tolist() == ["poor", "fair", "good"]
    assert pandas.read_csv(seen / "rows.csv")["rating"].tolist() == FRAME["rating"]


def test_the_response_is_shown_as_that_of_r(fake_rscript: Path) -> None:
    write_program(fake_rscript, RESPONSE)
    result = regress("rating ~ kind + (1 | item)", FRAME, engine="lme4")
    days = result["Days"]
    assert (days.estimate, days.se, days.df, days.statistic) == (10.0, 2.0, 16.0, 5.0)
    # R: 2 * pt(-5, 16) and qt(0.975, 16).
    assert days.p == pytest.approx(0.0001308677, rel=1e-6)
    assert (days.low, days.high) == pytest.approx((10 - 2 * 2.119905, 10 + 2 * 2.119905), abs=1e-5)
    assert [(it.group, it.name, it.sd, it.correlations, it.groups) for it in result.random_effects] == [
        ("Subject", "(Intercept)", 24.7, (), 18),
        ("Subject", "Days", 0.0, (None,), 18),
    ]
    assert (result.n, result.residual_sd, result.deviance, result.aic, result.method) == (180, 25.5, 1743, 1755, "REML")
    shown = str(result)
    assert shown.startswith("Linear mixed model by lme4 9.9 (R 4.9), REML: rating ~ kind")
    assert "Singular fit" in shown
    assert "R: boundary (singular) fit" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert len(result.to_frame()) == 2
    assert result.to_dict()["engine"] == "lme4 9.9 (R 4.9)"
    assert result.to_dict()["warnings"] == ["boundary (singular) fit"]


def test_without_r_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match=r"Rscript was not found\. Install with: apt install r-base r-cran-lme4"):
        regress("rating ~ kind + (1 | item)", FRAME, engine="lme4")


def test_without_a_package_one_line_names_it(fake_rscript: Path) -> None:
    write_program(fake_rscript, "echo missing: lme4 lmerTest; exit 3")
    with pytest.raises(MissingExtra, match=r"lme4 and lmerTest.*install\.packages\(c\('lme4', 'lmerTest'\)\)"):
        regress("rating ~ kind + (1 | item)", FRAME, engine="lme4")


def test_an_error_of_r_is_quoted(fake_rscript: Path) -> None:
    write_program(
        fake_rscript, 'echo "loading" >&2; echo "Error: singular\nmatrix" >&2; echo "Calls: a -> b" >&2; exit 1'
    )
    with pytest.raises(MeasureError, match="^R did not fit the model: Error: singular matrix$"):
        regress("rating ~ kind + (1 | item)", FRAME, engine="lme4")


@pytest.mark.parametrize(
    ("formula", "found"),
    [
        ("rating ~ system(kind) + (1 | item)", r"calls system\(\)"),
        ("rating ~ base::q(kind) + (1 | item)", r"calls base::q\(\)"),
        ("rating ~ kind + (1 | item); q", "';'"),
        ("rating ~ I(kind == 'a') + (1 | item)", '"\'"'),
    ],
)
def test_code_in_a_formula_is_not_passed_on(fake_rscript: Path, formula: str, found: str) -> None:
    seen = write_program(fake_rscript, RESPONSE)
    with pytest.raises(MeasureError, match=found):
        regress(formula, FRAME, engine="lme4")
    assert not seen.exists()


def test_another_engine_is_refused() -> None:
    with pytest.raises(MeasureError, match="expected 'acceptability', 'lme4'"):
        regress("rating ~ kind + (1 | item)", FRAME, engine="nlme")


# --- with R ---


@cache
def has_package(name: str) -> bool:
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", f"library({name})"], capture_output=True).returncode == 0


def assert_engines_agree(formula: str, frame: pandas.DataFrame, package: str, family: str = "gaussian") -> None:
    if not has_package(package):
        pytest.skip(f"R with {package} is not installed")
    ours, theirs = (regress(formula, frame, family=family, engine=name) for name in ("acceptability", "lme4"))
    assert package in theirs.engine
    assert theirs.log_likelihood == pytest.approx(ours.log_likelihood, abs=1e-3)
    assert (theirs.parameters, theirs.n, theirs.method) == (ours.parameters, ours.n, ours.method)
    for mine, other in zip(ours.coefficients, theirs.coefficients, strict=True):
        numbers = [[it.estimate, it.se, it.p, it.low, it.high] for it in (mine, other)]
        assert numbers[1] == pytest.approx(numbers[0], rel=0.01, abs=1e-3)
    ours_sds = {(it.group, it.name): it.sd for it in ours.random_effects}
    for effect in theirs.random_effects:
        assert effect.sd == pytest.approx(ours_sds[effect.group, effect.name.strip("()")], rel=0.01, abs=1e-3)


@pytest.mark.slow
def test_lmertest_gives_the_same_linear_model() -> None:
    assert_engines_agree("Reaction ~ Days + (1 + Days | Subject)", pandas.read_csv(DATA / "sleepstudy.csv"), "lmerTest")


@pytest.mark.slow
def test_lme4_gives_the_same_logistic_model() -> None:
    frame = pandas.read_csv(DATA / "cbpp.csv", dtype={"period": str})
    assert_engines_agree("ill ~ period + (1 | herd)", frame, "lme4", "binomial")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["ordinal", "ordinal-probit"])
def test_ordinal_gives_the_same_ordinal_model(family: str) -> None:
    frame = pandas.read_csv(DATA / "wine.csv")
    assert_engines_agree("rating ~ temp + contact + (1 | judge)", frame, "ordinal", family)
    thresholds = [
        regress("rating ~ temp", frame, family=family, engine=it).thresholds for it in ("acceptability", "lme4")
    ]
    for mine, other in zip(*thresholds, strict=True):
        assert (other.name, other.estimate, other.se) == (
            mine.name,
            pytest.approx(mine.estimate, abs=1e-4),
            pytest.approx(mine.se, rel=1e-3),
        )
