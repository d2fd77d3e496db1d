"""Intervals in results, comparisons and the command line; the names that the package exports."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from acceptability import Bootstrap, Scores, Sentence, Suite, compare, measure, stats
from acceptability.cli import app
from acceptability.errors import MeasureError
from acceptability.specs import parse_signature
from acceptability.types import make_contrast

SENTENCES = [Sentence(str(i), f"s {i}", tags={"g": "ab"[i // 20]}) for i in range(40)]
SUITE = Suite("s", tuple(SENTENCES), tuple(make_contrast(SENTENCES[i], SENTENCES[i + 1]) for i in range(0, 40, 2)))
ALWAYS = Scores({str(i): float(-i) for i in range(40)}, "always")
OFTEN = Scores({str(i): float(-i if i < 36 else i) for i in range(40)}, "often")


def test_every_exported_name_exists_and_is_listed() -> None:
    for name in stats.__all__:
        assert getattr(stats, name) is not None
        assert f"``{name}``" in stats.__doc__ or name == "Interval"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = stats.nothing


def test_a_note_says_when_the_interval_is_exact() -> None:
    resampled = Bootstrap(100, method="percentile")
    overall, _, _, macro = measure(SUITE, ALWAYS, ["PairAccuracy"], by="g", bootstrap=resampled)
    assert (overall.value, overall.high) == (1, 1)
    assert overall.low == pytest.approx(0.025 ** (1 / 20))
    assert "every row is 1: exact interval of Clopper and Pearson, 20 rows" in overall.notes
    assert (macro.low, macro.high) == (1, 1)
    (plain,) = measure(SUITE, OFTEN, ["PairAccuracy"])
    assert plain.notes == ()


def test_the_method_is_part_of_the_signature() -> None:
    percentile, bca = (
        measure(SUITE, OFTEN, ["PairAccuracy"], bootstrap=Bootstrap(200, method=method))[0]
        for method in ("percentile", "bca")
    )
    assert parse_signature(bca.signature)["ci"] == "bca(0.95,resamples=200,by=row,seed=0)"
    assert (percentile.low, percentile.high) != (bca.low, bca.high)
    assert bca.low < bca.value < bca.high


def test_a_comparison_has_notes() -> None:
    (result,) = compare(SUITE, [ALWAYS, OFTEN], measure=["PairAccuracy"], bootstrap=Bootstrap(200, method="bca"))
    assert result.low < result.difference < result.high
    assert result.row()["notes"] == ""
    (few,) = compare(SUITE, [ALWAYS, OFTEN], measure=["PairAccuracy"], bootstrap=Bootstrap(200, by="g"))
    assert few.low < 0 < few.high
    one = Suite("one", SUITE.sentences, SUITE.contrasts[:1])
    (none,) = compare(one, [ALWAYS, OFTEN], measure=["PairAccuracy"])
    assert none.row()["notes"] == "no interval: there are fewer than two rows to resample"


@pytest.mark.parametrize(("command", "method"), [("evaluate", "bca"), ("compare", "paired bca")])
def test_the_option_on_the_command_line(command: str, method: str) -> None:
    models = ["--model", "uniform", "--model", "uniform(vocabulary=9)"]
    arguments = [command, "starter", *models, "--measure", "PairAccuracy(ties=0.5)", "--json", "--interval", "bca"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    assert f"|ci:{method}(0.95,resamples=1000" in json.loads(done.stdout)[0]["signature"]
    wrong = CliRunner().invoke(app, [*arguments[:-1], "normal"])
    assert isinstance(wrong.exception, MeasureError)
    assert "expected auto, percentile or bca" in str(wrong.exception)


def test_a_study_may_name_its_interval(tmp_path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        'suites = ["starter"]\nmodels = ["uniform"]\nmeasures = ["PBC"]\ninterval = "bca"\nresamples = 100\n'
    )
    done = CliRunner().invoke(app, ["study", str(file), "--json"])
    assert "ci:bca(0.95,resamples=100" in json.loads(done.stdout)[0]["signature"]
