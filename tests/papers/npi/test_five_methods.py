"""Five methods on one suite: the how-to as it stands, the published pairs, and what does not apply."""

from __future__ import annotations

import csv
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability import Bootstrap, load_suite
from acceptability.cli import app
from acceptability.papers.npi.five_methods import MethodCell, plan_methods, run_five_methods
from acceptability.suites import add_minimal_pairs

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "five-methods.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """The suite of the how-to."""
    (table,) = blocks("tsv")
    (tmp_path / "there.tsv").write_text(table, encoding="utf-8")
    return tmp_path / "there.tsv"


def typed(line: str) -> str:
    program, *arguments = shlex.split(line)
    assert program == "acceptability"
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.slow
def test_every_command_of_the_how_to_runs(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(there.parent)
    lines = [line for body in blocks("sh") for line in body.splitlines()]
    printed = {line: typed(line) for line in lines}
    assert len(printed) == 8
    table = printed[lines[0]]
    for shown in ("Boolean", "absolute pair", "gradient pair", "cloze", "probing: definite", "probing: agrees"):
        assert shown in table
    assert "noun=animate" in table
    assert "macro(noun)" in table
    with (there.parent / "methods.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == [
        "Boolean",
        "absolute pair",
        "gradient pair",
        "cloze",
        "probing: definite",
        "probing: agrees",
    ]
    assert all(row["value"] and not row["reason"] for row in rows)
    assert [row["n"] for row in rows] == ["48", "24", "24", "24", "48", "48"]
    with (there.parent / "probes.csv").open(encoding="utf-8") as file:
        layers = {row["layer"] for row in csv.DictReader(file) if row["encoder"] == "mini-masked"}
    assert layers == {str(layer) for layer in range(8)}


def cells(method_cells: list[MethodCell], group: str = "all") -> dict[str, MethodCell]:
    return {cell.method: cell for cell in method_cells if cell.group == group}


def test_a_classifier_predicts_no_words_and_a_trigram_has_no_layers(there: Path, classifier_dir: Path) -> None:
    pytest.importorskip("torch")
    plan = plan_methods(load_suite(str(there)), bootstrap=Bootstrap(0))
    judge, trigram = f"classifier:{classifier_dir}", "trigram"
    method_cells = run_five_methods(plan, [judge, trigram])
    first = cells([cell for cell in method_cells if cell.model == judge])
    assert first["cloze"].value is None
    assert first["cloze"].reason == "a classifier predicts no words"
    assert "MCC(threshold=0.0)" in first["Boolean"].signature
    assert first["probing: definite"].value is not None
    assert "bag of words 1.00" in first["probing: definite"].beside
    second = cells([cell for cell in method_cells if cell.model == trigram])
    assert "no layers" in second["probing: agrees"].reason
    assert "MCC(threshold='cv'" in second["Boolean"].signature
    assert second["cloze"].n == 24


def test_absolute_pairs_of_a_language_model_follow_its_fitted_decisions(there: Path) -> None:
    plan = plan_methods(load_suite(str(there)), bootstrap=Bootstrap(0))
    by_method = cells(run_five_methods(plan, ["trigram"]))
    assert by_method["absolute pair"].value <= by_method["gradient pair"].value
    assert "MCC(threshold='cv', folds=10, seeds=10, by='item').decision" in by_method["absolute pair"].signature
    # The sampling unit of the suite, unless another one is chosen.
    assert "MCC(threshold='cv', folds=10, seeds=10, by='item')|" in by_method["Boolean"].signature
    by_row = cells(run_five_methods(replace(plan, bootstrap=Bootstrap(40, by="row")), ["trigram"]))
    assert "by='item'" not in by_row["Boolean"].signature


def test_minimal_pairs_differ_in_one_factor_and_in_label(there: Path) -> None:
    suite = add_minimal_pairs(load_suite(str(there)), ["definite", "agrees"])
    assert len(suite.contrasts) == 24
    for pair in suite.contrasts:
        better, worse = suite.by_id[pair.better], suite.by_id[pair.worse]
        assert (better.label, worse.label) == (1, 0)
        assert [tag for tag in ("definite", "agrees") if better.tags[tag] != worse.tags[tag]] == [pair.tags["varied"]]


def test_a_tag_of_pairs_groups_pairs_and_not_sentences(there: Path) -> None:
    plan = plan_methods(load_suite(str(there)), by="varied", bootstrap=Bootstrap(0))
    method_cells = run_five_methods(plan, ["trigram"])
    assert cells(method_cells, "varied=definite")["gradient pair"].n == 12
    assert cells(method_cells)["Boolean"].value is not None
    assert "have no tag 'varied'" in cells(method_cells, "macro(varied)")["Boolean"].reason


def test_a_suite_without_labels_or_factors_gives_reasons(tmp_path: Path) -> None:
    lines = [{"id": "a", "text": "Cats sleep.", "better_than": ["b"]}, {"id": "b", "text": "Cats sleeps."}]
    path = tmp_path / "pair.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    by_method = cells(run_five_methods(plan_methods(load_suite(str(path)), bootstrap=Bootstrap(0)), ["trigram"]))
    assert set(by_method) == {"Boolean", "absolute pair", "gradient pair", "cloze", "probing"}
    assert "labels" in by_method["Boolean"].reason
    assert "labels" in by_method["absolute pair"].reason
    assert by_method["gradient pair"].value == 1.0
    assert "varies within items" in by_method["probing"].reason


def test_exactly_the_published_pairs_are_used(data: Path) -> None:
    """Warstadt et al. (2019): 5,500 minimal pairs, of which 3,869 for the cloze test."""
    plan = plan_methods(
        load_suite("npi/pairs"), cloze_suite=load_suite("npi/cloze"), by="environment", bootstrap=Bootstrap(0)
    )
    method_cells = run_five_methods(plan, ["trigram"])
    whole = cells(method_cells)
    assert (whole["Boolean"].n, whole["absolute pair"].n, whole["gradient pair"].n) == (11_000, 5500, 5500)
    assert whole["cloze"].n == 3869
    assert whole["cloze"].notes == ()
    parts = [cell.n for cell in method_cells if cell.method == "cloze" and cell.group.startswith("environment=")]
    assert sorted(parts) == [230, 333, 424, 427, 473, 482, 500, 500, 500]
    assert cells(method_cells, "environment=simplequestions")["gradient pair"].n == 500


def test_the_cloze_pairs_are_those_of_one_word_that_is_one_token_of_bert(data: Path) -> None:
    pairs, cloze = load_suite("npi/pairs"), load_suite("npi/cloze")
    texts = [
        {(suite.by_id[pair.better].text, suite.by_id[pair.worse].text) for pair in suite.contrasts}
        for suite in (pairs, cloze)
    ]
    words = {pair: differing(*pair) for pair in texts[0]}
    single = {pair for pair, different in words.items() if different is not None}
    assert (len(single), len(texts[1])) == (4070, 3869)
    assert texts[1] < single
    left_out = [words[pair][0] for pair in single - texts[1]]
    assert {word: left_out.count(word) for word in left_out} == {
        "fortunately": 179,
        "happiest": 11,
        "nicest": 7,
        "cheapest": 4,
    }


def differing(better: str, worse: str) -> tuple[str, str] | None:
    """Return the one word in which two sentences of the same length differ."""
    first, second = better.split(), worse.split()
    different_words = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    return different_words[0] if len(first) == len(second) and len(different_words) == 1 else None
