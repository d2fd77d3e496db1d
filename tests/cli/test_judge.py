"""Sentences from arguments, a file or standard input; what was typed in the version before; and names for the shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability.api.reproduction import reproduce
from acceptability.cli import app, replace_old_options
from acceptability.cli.completion import find_names
from acceptability.cli.console import show_progress

SENTENCES = "A b c.\n\nA.\r\n  A b.  \n"
MODEL = ("--model", "uniform")


def judge(*arguments: str, given: str | None = None) -> dict[str, object]:
    done = CliRunner().invoke(app, ["judge", *arguments, "--json"], input=given)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_sentences_from_standard_input_a_file_and_arguments_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("\ufeff" + SENTENCES, encoding="utf-8")
    typed = judge("A b c.", "A.", "A b.", *MODEL)
    assert typed["ranking"] == [1, 2, 0]
    assert judge("--file", str(tmp_path / "s.txt"), *MODEL) == typed
    assert judge("-", *MODEL, given=SENTENCES) == typed
    assert judge(*MODEL, given=SENTENCES) == typed


def test_no_sentences_or_two_sources_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("A.")
    for arguments, message in (
        (["judge", *MODEL], "standard input has no sentences"),
        (["judge", "A.", "--file", str(tmp_path / "s.txt"), *MODEL], "choose one"),
        (["judge", "--file", str(tmp_path / "none.txt"), *MODEL], f"cannot read {tmp_path / 'none.txt'}: No such file"),
        (["judge", str(tmp_path / "s.txt"), *MODEL], "is a file, and sentences are expected"),
        (["judge", "", *MODEL], "sentence 1 is empty; expected a text"),
    ):
        done = CliRunner().invoke(app, arguments, input="\n \n")
        assert message in str(done.exception)


@pytest.mark.parametrize("marked", ["*The boys was late.", "??Who left?", "#Cats bark.", "?*\u00c9l va."])
def test_marks_before_sentences_of_a_file_are_not_scored(marked: str, tmp_path: Path) -> None:
    (tmp_path / "marks.txt").write_text(f"Cats sleep.\n{marked}\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["judge", "--file", str(tmp_path / "marks.txt"), *MODEL])
    assert "begins with a mark" in str(done.exception)
    assert "evaluate" in str(done.exception)
    (tmp_path / "marks.txt").write_text("# 1 is here.\nCats * sleep.\n", encoding="utf-8")
    assert len(judge("--file", str(tmp_path / "marks.txt"), *MODEL)["sentences"]) == 2


def test_a_context_conditions_the_model_and_is_in_the_signature() -> None:
    pytest.importorskip("torch")
    alone, after = (judge("They sleep.", "-m", "mini-causal", *more) for more in ((), ("--context", "Cats are lazy.")))
    assert alone["sentences"][0]["score"] != after["sentences"][0]["score"]
    assert alone["signature"] != after["signature"]
    assert '|context:"Cats are lazy."' in str(after["signature"])
    (again,) = reproduce(str(after["signature"]))
    assert again.rows[0]["score"] == pytest.approx(after["sentences"][0]["score"], abs=1e-5)


def test_the_default_model_is_named_in_the_output() -> None:
    done = CliRunner().invoke(app, ["judge", "They sleep."])
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(("model: mini-causal, ", "model: trigram, "))


def test_a_model_in_the_former_position_works_and_is_reported(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("text\nA b.\n")
    suite = str(tmp_path / "s.csv")
    former = CliRunner().invoke(app, ["score", suite, "uniform(vocabulary=9)"])
    present = CliRunner().invoke(app, ["score", suite, "--model", "uniform(vocabulary=9)"])
    assert former.stdout == present.stdout
    assert f"write `acceptability score {suite} --model 'uniform(vocabulary=9)'`" in former.stderr
    assert "write `" not in present.stderr
    (tmp_path / "t.txt").write_text("the cats sleep\n")
    text = ["--corpus", str(tmp_path / "t.txt")]
    former = CliRunner().invoke(app, ["perplexity", "trigram", *text])
    assert former.stdout == CliRunner().invoke(app, ["perplexity", "-m", "trigram", *text]).stdout != ""
    assert "write `acceptability perplexity --model trigram`" in former.stderr
    for arguments, message in (
        (["score", suite], "which model? Add --model"),
        (["score", suite, "uniform", "--model", "trigram"], "given twice"),
        (["calibrate", "-m", "classifier:x"], "which suite?"),
        (["calibrate", "a.csv", "--on", "b.csv", "-m", "classifier:x"], "given twice"),
    ):
        assert message in str(CliRunner().invoke(app, arguments).exception)


@pytest.mark.parametrize(
    ("former", "present"),
    [
        (["measure", "s", "--columns=id=a"], ["measure", "s", "--score-columns=id=a"]),
        (["demo", "--page", "x.html"], ["demo", "--report", "x.html"]),
        (["generate", "real-fake", "--lm", "trigram"], ["generate", "real-fake", "--model", "trigram"]),
    ],
)
def test_former_options_are_replaced(former: list[str], present: list[str]) -> None:
    assert replace_old_options(former) == present


def test_a_model_without_a_kind_is_opened_and_said(causal_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("good,bad\nThe cats sleep.,The cats sleeps.\n")
    arguments = ["evaluate", str(tmp_path / "s.csv"), "-m", str(causal_dir), "--json", "--resamples", "0"]
    done = CliRunner().invoke(app, arguments)
    assert json.loads(done.stdout)[0]["model"] == f"causal:{causal_dir}"


def complete(words: str, shell: str = "bash") -> tuple[list[str], list[str]]:
    """What the shell gets for a line, and which heavy packages that took."""
    code = (
        "import sys\nfrom acceptability.cli import main\nsys.argv = ['acceptability']\n"
        "try:\n    main()\nfinally:\n    print(*(name for name in ('numpy', 'scipy', 'torch', 'rich', 'pandas', "
        "'transformers') if name in sys.modules), file=sys.stderr)"
    )
    asked = {"_ACCEPTABILITY_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    asked |= {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))} if shell == "bash" else {}
    asked |= {} if shell == "bash" else {"_TYPER_COMPLETE_ARGS": words}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, capture_output=True, text=True)
    return done.stdout.split(), done.stderr.split()


@pytest.mark.parametrize(
    ("words", "shell", "names"),
    [
        ("acceptability evaluate star", "bash", ["starter"]),
        ("acceptability compare starter -m mini-c", "fish", ["mini-causal"]),
        ("acceptability score starter -m trigram -r norm_lp_s", "bash", ["norm_lp_sub"]),
        ("acceptability evaluate starter -m trigram --measure PairA", "fish", ["PairAccuracy"]),
    ],
)
def test_names_are_completed_without_importing_anything_heavy(words: str, shell: str, names: list[str]) -> None:
    assert complete(words, shell) == (names, [])


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["suites", "show", "ha"], {"starter", "blimp", "cola", "cola/train"}),
        (["probe", "--model", ""], {"mini-causal", "causal:", "remote:"}),
        (["score", "-m", "trigram", ""], {"starter"}),
        (["train", ""], {"ngram", "lstm"}),
        (["score", "starter", "", ""], None),
        (["evaluate", "starter", "--out", ""], None),
        (["evaluate", "--m"], None),
        (["evaluate"], None),
    ],
)
def test_what_may_be_completed(words: list[str], names: set[str] | None) -> None:
    found = find_names(words)
    assert found is None if names is None else names <= set(found or ())


def test_bars_of_progress_keep_their_numbers_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with show_progress() as progress:
        progress("causal:/a/folder/far/away/with/a/name/of/its/own/model(bos='<s>')", 123_456, 1_234_567)
    shown = capsys.readouterr().err
    assert "123456/1234567 queries" in shown
    assert "causal:model " in shown
