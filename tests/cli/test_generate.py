"""The command generate: a suite in a file, counts of what was made and left out, and one clear line on bad input."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability import load_suite
from acceptability.cli import app
from acceptability.errors import AcceptabilityError, ModelError, SpecError, SuiteError, UnknownName

LINES = [
    f"The {one} and the {two} see {number} birds, I think." for number in range(20) for one, two in [("cat", "dog")]
]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(["Hm!", *LINES]))
    return path


def typed(*arguments: object) -> object:
    return CliRunner().invoke(app, ["generate", *map(str, arguments)], catch_exceptions=True)


def test_real_and_fake_sentences_are_written_as_a_suite(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "made.jsonl"
    done = typed("real-fake", "--corpus", text, "--model", "trigram", "--count", 40, "--seed", 3, "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(out)
    assert "permuted: 10\nreal: 20\nreal, too short: 1\nsampled: 10\n" in done.stderr
    suite = load_suite(str(out))
    assert Counter((each.tags["kind"], each.label) for each in suite.sentences) == {
        ("real", 1): 20,
        ("sampled", 0): 10,
        ("permuted", 0): 10,
    }
    first = out.read_bytes()
    again = ("real-fake", "--corpus", text, "--model", "trigram", "--count", 40, "--seed", 3, "--out", out)
    assert "exists already" in str(typed(*again).exception)
    typed(*again, "--force")
    assert out.read_bytes() == first


def test_json_has_the_counts(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "made.jsonl"
    told = json.loads(typed("real-fake", "-c", text, "-n", 10, "--lower", "--json", "--out", out).stdout)
    assert told["file"] == str(out)
    assert (told["real"], told["permuted"]) == (5, 5)
    assert "sampled" not in told
    assert all(each.text == each.text.lower() for each in load_suite(str(out)).sentences)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["real-fakes"], UnknownName, "no subject named 'real-fakes'. Did you mean 'real-fake'?"),
        (["real-fake", "--count", "4"], SpecError, "missing a required argument: 'corpus'"),
        (["real-fake", "--corpus", "{text}"], SpecError, "missing a required argument: 'count'"),
        (["real-fake", "--corpus", "{text}", "--count", "0"], SpecError, "the count is 0"),
        (["real-fake", "--corpus", "{text}", "--count", "4", "--seed", "-1"], SpecError, "seed is -1"),
        (
            ["real-fake", "--corpus", "{text}", "--count", "4", "--model", "none"],
            ModelError,
            "none: there is no model or folder",
        ),
        (["real-fake", "--corpus", "{text}", "--count", "99"], AcceptabilityError, "gives 40 sentences"),
        (
            ["real-fake", "--corpus", "nowhere", "--count", "9"],
            AcceptabilityError,
            "there is no file or folder nowhere",
        ),
        (["real-fake", "--corpus", "{text}", "--count", "4", "--out", "x.csv"], SuiteError, "must end in .jsonl"),
    ],
)
def test_bad_input_is_refused(
    text: Path, tmp_path: Path, arguments: list[str], error: type[Exception], message: str
) -> None:
    filled = [each.format(text=text) for each in arguments]
    done = typed(*filled, *([] if "--out" in filled else ["--out", tmp_path / "made.jsonl"]))
    assert isinstance(done.exception, error)
    assert message in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_without_a_name_the_generators_are_listed() -> None:
    done = typed()
    assert done.exit_code == 0
    assert "targeted/svo" in done.stdout
    rows = json.loads(typed("--json").stdout)
    assert {row["name"] for row in rows} >= {"real-fake", "npi", "agreement", "reflexives", "filler-gap", "targeted/wh"}
    assert all(row["what it makes"] for row in rows)


def test_paradigms_are_written_as_a_suite_that_loads_and_is_measured(tmp_path: Path) -> None:
    out = tmp_path / "npi.jsonl"
    told = json.loads(typed("npi", "--seed", 1, "--count", 2, "--json", "--out", out).stdout)
    assert told == {"file": str(out), "paradigms": 36, "sentences": 272, "acceptable": 172, "contrasts": 168}
    suite = load_suite(str(out))
    assert (len(suite.sentences), len(suite.contrasts)) == (272, 168)
    first = out.read_bytes()
    assert isinstance(typed("npi", "--seed", 1, "--count", 2, "--out", out).exception, SuiteError)
    typed("npi", "--seed", 1, "--count", 2, "--force", "--out", out)
    assert out.read_bytes() == first
    options = ["--model", "uniform", "--measure", "PairAccuracy", "--by", "environment", "--resamples", "0", "--json"]
    done = CliRunner().invoke(app, ["evaluate", str(out), *options])
    assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, ["suites", "check", str(out)]).exit_code == 0


def test_a_file_of_paradigms_with_a_mistake_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[[paradigm]]\nname = "a"\nsentence = "{x}"\nacceptable = ["f=1"]\n')
    done = typed(path, "--out", tmp_path / "made.jsonl")
    assert str(done.exception) == f"{path}, line 2: a paradigm needs 'factors'"
    assert str(typed("npi").exception).startswith("the file for the sentences is missing")
    assert "cannot read" in str(typed(tmp_path / "no.toml", "--out", tmp_path / "made.jsonl").exception)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.toml"]
