"""The NPI paper: its data, its figures from made-up classifiers, the cloze test, probes, and human ratings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acceptability.engine.processes import CallOutcome
from acceptability.errors import MeasureError, ModelError, SpecError, SuiteError
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.npi import cells, npi_figures
from acceptability.papers.npi.npi_data import (
    ENVIRONMENT_LABELS,
    FACTORS,
    Configuration,
    NpiData,
    list_configurations,
    load_npi_data,
    make_minimal_pairs,
)
from acceptability.papers.npi.npi_figures import (
    BY_TRAINING,
    ClassifierJudgements,
    LogOddsByText,
    compute_figure_cells,
    compute_finding_cells,
    compute_probing_cells,
)
from acceptability.papers.npi.npi_training import BAG_OF_WORDS, PlanFolder, PlannedModel, read_plan_folder
from acceptability.suites import load_suite
from acceptability.types import Suite
from published import compute_published_cells


def index_cells(cells: Iterable[Cell]) -> dict[CellKey, Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def test_all_published_pairs_are_used_and_follow_the_rule(data: Path) -> None:
    npi_data = load_npi_data()
    assert (len(npi_data.train.sentences), len(npi_data.test.sentences)) == (90_000, 9_000)
    assert (len(npi_data.pairs.contrasts), len(npi_data.cloze.contrasts)) == (5500, 3869)
    assert tuple(ENVIRONMENT_LABELS) == npi_data.environments
    assert Counter(pair.tags["varied"] for pair in npi_data.pairs.contrasts) == {
        "npi": 3250,
        "licensor": 1250,
        "scope": 1000,
    }
    made = make_minimal_pairs(npi_data.test)
    ours = {(made.by_id[pair.better].text, made.by_id[pair.worse].text) for pair in made.contrasts}
    theirs = {
        (npi_data.pairs.by_id[pair.better].text, npi_data.pairs.by_id[pair.worse].text)
        for pair in npi_data.pairs.contrasts
    }
    assert ours == theirs


def test_a_subset_of_the_test_sentences_keeps_whole_pairs(data: Path) -> None:
    few = load_npi_data().limit_test_sentences(64)
    texts = {sentence.text for sentence in few.test.sentences}
    assert 9 * 64 <= len(few.test.sentences) <= 9 * 72
    assert {sentence.text for sentence in few.pairs.sentences} <= texts
    assert Counter(pair.tags["environment"] for pair in few.pairs.contrasts).keys() == set(ENVIRONMENT_LABELS)
    assert len(few.cloze.contrasts) == 3869


def test_own_sentences_get_pairs_by_the_rule(own_suite: str) -> None:
    npi_data = load_npi_data(own_suite)
    assert npi_data.environments == ("only", "rare")
    assert Counter(pair.tags["varied"] for pair in npi_data.pairs.contrasts) == {"npi": 36, "licensor": 12, "scope": 12}
    assert {pair.tags["varied"] for pair in npi_data.cloze.contrasts} == {"npi", "licensor"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"npi": "any"}, "npi is 'any'; expected 0 or 1"),
        ({"split": None}, "has no tag 'split'"),
        ({"licensor": None}, "licensor is None"),
    ],
)
def test_missing_and_wrong_tags_are_errors(
    own_suite: str, tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    row = json.loads(Path(own_suite).read_text().splitlines()[0])
    row["tags"] = {name: value for name, value in {**row["tags"], **change}.items() if value is not None}
    path = tmp_path / "incomplete.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(SuiteError, match=problem):
        load_npi_data(str(path))


def make_judgements(npi_data: NpiData, model: PlannedModel, wrong: dict[str, str]) -> ClassifierJudgements:
    """Return classifiers that are correct, except those that accept every sentence of an environment."""
    everyone = {
        **{sentence.text: sentence for sentence in npi_data.test.sentences},
        **{sentence.text: sentence for sentence in npi_data.pairs.sentences},
        **{sentence.text: sentence for sentence in load_suite("npi/wilcox").sentences},
    }

    def make_log_odds(configuration: Configuration) -> LogOddsByText:
        blind = wrong.get(configuration.folder, "")
        return {
            text: 1.0 + (0.5 if sentence.label else 0.0)
            if sentence.tags["environment"] == blind
            else (1.0 if sentence.label else -1.0)
            for text, sentence in everyone.items()
        }

    return ClassifierJudgements(
        model,
        npi_data,
        {configuration: [make_log_odds(configuration)] for configuration in list_configurations(npi_data.environments)},
    )


def test_figures_follow_the_configurations(data: Path, own_suite: str) -> None:
    npi_data = make_judgements(
        load_npi_data(own_suite), PlannedModel("tiny", "transformer"), {"one/only": "rare", "all-but/rare": "rare"}
    )
    cells_by_key = index_cells(compute_figure_cells(npi_data, read_published_values("npi")))
    boolean = {row: cells_by_key["Figure 1", f"tiny: {row}", "rare"].ours for row in ("CoLA", "1 NPI", "All NPI")}
    assert boolean == {"CoLA": 1.0, "1 NPI": 1.0, "All NPI": 1.0}
    assert cells_by_key["Figure 1", "tiny: Avg Other NPI", "rare"].ours == 0.0
    assert cells_by_key["Figure 1", "tiny: All-but-1 NPI", "rare"].ours == 0.0
    assert cells_by_key["Figure 1", "tiny: All-but-1 NPI", "ONLY"].ours == 1.0
    assert cells_by_key["Figure 1", "tiny: 1 NPI", "ONLY"].paper == "1.0"
    assert cells_by_key["Figure 1", "tiny: 1 NPI", "ONLY"].agrees is None
    assert cells_by_key[BY_TRAINING, "tiny: ONLY only", "rare"].ours == 0.0
    for factor in FACTORS:
        assert cells_by_key[f"Figure 2, {factor}", "tiny: absolute, All-but-1 NPI", "rare"].ours == 0.0
        assert cells_by_key[f"Figure 2, {factor}", "tiny: gradient, All-but-1 NPI", "rare"].ours == 1.0
    assert ("Figure 1", "tiny: Avg Other NPI", "Wilcox et al.") not in cells_by_key
    assert "mean over 2 classifiers" in cells_by_key["Figure 1", "tiny: 1 NPI", "Wilcox et al."].note


def test_ties_count_as_wrong_and_are_reported(data: Path, own_suite: str) -> None:
    whole = make_judgements(load_npi_data(own_suite), PlannedModel(BAG_OF_WORDS, "cbow"), {})
    blind = {
        configuration: [dict.fromkeys(log_odds, 1.0) for log_odds in restarts]
        for configuration, restarts in whole.log_odds.items()
    }
    cells_by_key = index_cells(compute_figure_cells(ClassifierJudgements(whole.model, whole.data, blind), {}))
    cell = cells_by_key["Figure 2, scope", "bag-of-words: gradient, All NPI", "rare"]
    assert cell.ours == 0.0
    assert "100.0% of the pairs tie" in cell.note
    assert "tie" not in cells_by_key["Figure 2, scope", "bag-of-words: absolute, All NPI", "rare"].note


def test_a_model_with_intermediate_training_is_in_the_appendix(data: Path, own_suite: str) -> None:
    npi_data = make_judgements(
        load_npi_data(own_suite), PlannedModel("tiny+tags", "transformer", after="tags.conllu"), {}
    )
    tables = {cell.table for cell in compute_figure_cells(npi_data, {})}
    assert tables == {"Figure 5", "Figure 6", "Figure 7", "Figure 8", BY_TRAINING}


def test_missing_classifiers_are_reported(data: Path, own_suite: str) -> None:
    whole = make_judgements(load_npi_data(own_suite), PlannedModel("tiny", "transformer"), {})
    part = {key: restarts for key, restarts in whole.log_odds.items() if key.kind != "one"}
    cells_by_key = index_cells(compute_figure_cells(ClassifierJudgements(whole.model, whole.data, part), {}))
    cell = cells_by_key["Figure 1", "tiny: 1 NPI", "rare"]
    assert cell.ours is None
    assert "not every classifier" in cell.note
    assert cells_by_key["Figure 1", "tiny: All NPI", "rare"].ours == 1.0


def test_findings_compare_with_the_bag_of_words(data: Path, own_suite: str) -> None:
    encoder = make_judgements(load_npi_data(own_suite), PlannedModel("tiny", "transformer"), {})
    bag = make_judgements(load_npi_data(own_suite), PlannedModel(BAG_OF_WORDS, "cbow"), {"all": "rare"})
    cells_by_key = index_cells(compute_finding_cells([bag, encoder], read_published_values("npi")))
    above = cells_by_key["Findings", "tiny: Boolean: above the bag of words", "places"]
    assert (above.paper, above.ours) == ("all", "1 of 10")
    assert cells_by_key["Findings", "bag-of-words: scope, absolute", "mean"].ours == pytest.approx(0.9)
    assert cells_by_key["Findings", "bag-of-words: npi, absolute", "mean"].paper == "(nearly) perfect"


@dataclass(frozen=True)
class Probed:
    """What a stand-in for the probes says."""

    encoder: str
    factor: str
    group: str
    layer: int
    mcc: float | None
    accuracy: float
    control: float | None
    selectivity: float | None
    train: int
    test: int
    reason: str | None = None


def test_encoders_are_probed_in_the_environments_of_their_row(data: Path, own_suite: str, tmp_path: Path) -> None:
    probed: list[tuple[str, tuple[str, ...]]] = []

    def probe(suite: Suite, encoder: str, *, factors: Any, by: str, layers: Any, progress: Any) -> list[Probed]:
        groups = tuple(dict.fromkeys(sentence.tags[by] for sentence in suite.sentences))
        assert {sentence.tags["split"] for sentence in suite.sentences} == {"train", "test"}
        assert list(layers) == [-1]
        probed.append((encoder, groups))
        return [Probed(encoder, f, g, 6, 0.5, 0.7, 0.1, 0.4, 9, 3) for f in factors for g in groups]

    model = PlannedModel("tiny", "transformer", start="masked:tiny")
    for name in ("other", "one/only", "one/rare", "all-but/only"):
        folder = tmp_path / "tiny" / name / "transformer-1"
        folder.mkdir(parents=True)
        (folder / "recipe.json").write_text("{}")
    bag = PlannedModel(BAG_OF_WORDS, "cbow", {"vectors": "glove.txt"})
    cells_by_key = index_cells(compute_probing_cells(PlanFolder(tmp_path, own_suite, 1, (bag, model)), None, probe))
    everywhere = ("only", "rare")
    assert probed[:3] == [("glove:glove.txt", everywhere), ("majority", everywhere), ("masked:tiny", everywhere)]
    assert (f"classifier:{tmp_path}/tiny/one/rare/transformer-1", ("rare",)) in probed
    assert cells_by_key["Figure 4", "tiny: 1 NPI, scope", "rare"].ours == 0.5
    assert ("Figure 4", "tiny: All-but-1 NPI, scope", "rare") not in cells_by_key
    assert "control task has 0.100" in cells_by_key["Figure 4", "tiny: untouched, npi", "ONLY"].note


def test_encoders_are_probed_in_parallel_and_reported_in_order(
    data: Path, own_suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there are several cores; what is called is a stand-in for the processes."""

    def run_calls(function: Any, tasks: Any, *, workers: int, on_progress: Any) -> Iterator[CallOutcome]:
        assert function is npi_figures.probe_in_process
        for index in reversed(range(len(tasks))):
            rows = [Probed(tasks[index].encoder.spec, "npi", "only", 0, index / 10, 1, None, None, 9, 3)]
            yield CallOutcome(index, rows, problem)

    monkeypatch.setattr(npi_figures, "map_unordered", run_calls)
    monkeypatch.setattr(npi_figures, "default_workers", lambda: 4)
    problem = None
    folder = PlanFolder(
        tmp_path,
        own_suite,
        1,
        (PlannedModel(BAG_OF_WORDS, "cbow"), PlannedModel("tiny", "transformer", start="masked:tiny")),
    )
    probe_cells = list(compute_probing_cells(folder))
    assert [(cell.row, cell.ours) for cell in probe_cells] == [
        ("bag-of-words: untouched, npi", 0.0),
        ("majority, npi", 0.1),
        ("tiny: untouched, npi", 0.2),
    ]
    problem = "no memory"
    with pytest.raises(MeasureError, match="cannot probe masked:tiny: no memory"):
        list(compute_probing_cells(folder))


def test_counts_agree_and_other_cells_say_what_they_need(data: Path) -> None:
    cells_by_key = index_cells(compute_published_cells("npi"))
    wrong = {key[1] for key, cell in cells_by_key.items() if cell.agrees is False}
    assert wrong == {"sentences"}
    assert sum(cell.agrees is True for cell in cells_by_key.values()) == 8
    assert cells_by_key["Section 4", "of them made again by the rule", "count"].ours == "5500 of 5500"
    assert "--ratings FILE" in cells_by_key["Human validation", "any", "agreement %"].note
    assert "--train" in cells_by_key["Figure 1", "BERT: All-but-1 NPI", "SMP-Q"].note


def test_the_cloze_test_of_own_sentences(data: Path, own_suite: str) -> None:
    cells_by_key = index_cells(cells(["sphinx-trigram"], suite=own_suite))
    cloze_cells = [cell for cell in cells_by_key.values() if cell.table == "Figure 3"]
    assert {cell.row for cell in cloze_cells} == {"sphinx-trigram: npi", "sphinx-trigram: licensor"}
    assert cells_by_key["Figure 3", "sphinx-trigram: npi", "lowest"].paper == "0.76"


def test_a_classifier_has_no_cloze_test(data: Path) -> None:
    with pytest.raises(SpecError, match="join by --restarts"):
        cells(["classifier:x"])


def test_a_folder_without_a_plan_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="--train --out DIR"):
        read_plan_folder(tmp_path)


def test_ratings_fill_the_validation(data: Path, tmp_path: Path) -> None:
    """Eight people who know everything rate 40 published test sentences by their ids."""
    sentences = [sentence for sentence in load_suite("npi").sentences if sentence.tags["split"] == "test_full"][::225]
    rows = ["participant,id,response"]
    rows += [f"p{n},{sentence.id},{5 if sentence.label else 2}" for n in range(8) for sentence in sentences]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(rows) + "\n")
    cells_by_key = index_cells(cells(ratings=file))
    whole = cells_by_key["Human validation", "all sentences", "agreement %"]
    assert (whole.paper, whole.ours, whole.agrees) == ("82.8", 100.0, None)
    assert f"{8 * len(sentences)} answers to {len(sentences)} sentences" in whole.note
    assert cells_by_key["Human validation", "any", "agreement %"].paper == "78.3"
    assert cells_by_key["Human validation", "ever", "agreement %"].ours == 100.0
    p = cells_by_key["Human validation", "all sentences", "signed-rank p, ratings, by participant"]
    assert p.ours is not None
    assert float(p.ours) < 0.01
    assert any(key[1] == "ADV" for key in cells_by_key)


def test_ratings_that_describe_their_sentences(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(
        "participant,sentence,response,label,environment,npi\n"
        "a,Cats ever sleep.,2,0,only,ever\na,Cats often sleep.,3,1,only,ever\nb,Cats ever sleep.,4,0,only,ever\n"
    )
    cells_by_key = index_cells(cells(ratings=file))
    assert cells_by_key["Human validation", "all sentences", "agreement %"].ours == pytest.approx(100 / 3)
    assert cells_by_key["Human validation", "ONLY, ever", "unacceptable, rated acceptable %"].ours == pytest.approx(50)
