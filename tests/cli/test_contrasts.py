"""``acceptability contrasts`` as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import program
from acceptability.cli import app

Run = Callable[..., subprocess.CompletedProcess[str]]

SUITE = "\n".join(
    json.dumps({"id": name, "text": text, "tags": {"kind": name[0]}} | ({"better_than": better} if better else {}))
    for name, text, better in [
        ("a1", "The cat is here.", ["a2"]),
        ("a2", "The cat was here.", []),
        ("b1", "She has a cat.", ["b2"]),
        ("b2", "She has ever a cat.", []),
        ("c1", "He is sleeping.", ["c2"]),
        ("c2", "He is chased.", []),
        ("d1", "I think that it is.", ["d2"]),
        ("d2", "It has a dog.", []),
    ]
)


@pytest.fixture
def run(own_home: Path, tmp_path: Path) -> Run:
    (tmp_path / "s.jsonl").write_text(SUITE + "\n", encoding="utf-8")

    def typed(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": "200"}
        done = program.typed(["contrasts", "s.jsonl", *arguments], tmp_path, env)
        assert done.returncode == code, done.stderr
        return done

    return typed


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command with a network in this process, which has PyTorch already."""
    (tmp_path / "s.jsonl").write_text(SUITE + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def typed(*arguments: str) -> Result:
        done = CliRunner().invoke(app, ["contrasts", "s.jsonl", *arguments], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.stderr
        return done

    return typed


def test_tables_of_edits_classes_and_exclusions(run_here: Callable[..., Result], masked_dir: Path) -> None:
    pytest.importorskip("torch")
    done = run_here("--model", f"masked:{masked_dir}", "--by", "kind", "--signatures")
    for shown in (
        "edit=substitution",
        "edit=insertion",
        "\na ",
        "\nb ",
        "repulsion intermediate",
        "several tokens",
    ):
        assert shown in done.stdout
    assert "\nc " not in done.stdout
    assert "contrasts|suite:s+targets(left)#" in done.stderr
    assert "saved in" in done.stderr


def test_json_has_groups_contrasts_and_exclusions(run_here: Callable[..., Result], masked_dir: Path) -> None:
    pytest.importorskip("torch")
    found = json.loads(run_here("-m", f"masked:{masked_dir}", "--multi-token", "--json", "--resamples", "0").stdout)
    assert [each["group"] for each in found["groups"]] == ["all", "edit=substitution", "edit=insertion"]
    assert found["groups"][0]["n"] == 3
    assert found["exclusions"] == [{"contrast": "d1 > d2", "reason": "more than one difference"}]
    row = found["contrasts"][0]
    assert (row["better_target"], row["worse_target"], row["tokens"]) == ("is", "was", 1)
    assert row["better_surprisal_bits"] > 0
    assert "lp()#target" in found["signature"]


@pytest.mark.slow
def test_ties_of_a_causal_model_are_reported_and_broken_by_side_right_or_bracket(run: Run, causal_dir: Path) -> None:
    pytest.importorskip("torch")
    model = f"causal:{causal_dir}"
    assert "1 contrasts tie" in run("-m", model, "--multi-token").stderr
    right = run("-m", model, "--multi-token", "--side", "right", "--json")
    assert "tie" not in right.stderr
    rows = {row["contrast"]: row for row in json.loads(right.stdout)["contrasts"]}
    assert rows["b1 > b2"]["better_target"] == rows["b1 > b2"]["worse_target"] == "a"
    bracket = json.loads(run("-m", "uniform", "--multi-token", "--side", "bracket", "--json").stdout)
    rows = {row["contrast"]: row for row in bracket["contrasts"]}
    assert (rows["b1 > b2"]["better_target"], rows["b1 > b2"]["worse_target"]) == ("has a", "has ever a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--side", "above"), "--side above: expected one of left, right, bracket"),
        (("--side", "bracket"), "add --multi-token"),
        (("--cutoffs", "1,2"), "expected four numbers"),
        (("--cutoffs", "0.1,0.2,0.7,0.4"), "the cut-offs of low must lie below those of high"),
        (("--by", "knd"), "have no tag 'knd'"),
    ],
)
def test_wrong_options_are_one_clear_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run("-m", "uniform", *arguments, code=1)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_contrasts_outside_all_groups_are_reported(run: Run, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": "Cats sleep here.", "better_than": ["b"], "tags": {"kind": "x"}},
        {"id": "b", "text": "Cats sleeps here.", "tags": {"kind": "x"}},
        {"id": "c", "text": "Dogs bark here.", "better_than": ["d"]},
        {"id": "d", "text": "Dogs barks here."},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked = ("-m", "uniform", "--by", "kind")
    told = "1 rows without the tag 'kind' are in no group"
    said = run(*asked).stderr
    assert told in said
    assert "contrasts tie" not in said, "a uniform model ties, but not because it reads the same words"
    assert told in json.loads(run(*asked, "--json").stdout)["notes"]
