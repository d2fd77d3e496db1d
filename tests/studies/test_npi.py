"""The NPI paper: its data, its figures from classifiers that are made up, the cloze test, probes, and people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acceptability.engine.processes import Outcome
from acceptability.errors import MeasureError, ModelError, SpellingError, SuiteError
from acceptability.studies import npi_probing, study
from acceptability.studies.cells import Cell, printed
from acceptability.studies.npi import cells
from acceptability.studies.npi_data import FACTORS, SHORT, Material, material, paired
from acceptability.studies.npi_figures import BY_TRAINING, figures
from acceptability.studies.npi_findings import findings
from acceptability.studies.npi_judged import LogOdds, Verdicts
from acceptability.studies.npi_plan import BAG, Taught
from acceptability.studies.npi_probing import probing_cells
from acceptability.studies.npi_train import Folder, read_folder
from acceptability.suites import load_suite
from acceptability.train.classifiers.configurations import Configuration, configurations
from acceptability.types import Sentence, Suite


def paradigm(environment: str, split: str, number: int) -> list[Sentence]:
    """Return eight sentences that cross licensor, NPI and scope, as a file of one's own has them."""
    rows = []
    for code in range(8):
        licensor, npi, scope = (code >> 2) & 1, (code >> 1) & 1, code & 1
        words = ("rarely" if licensor else "often", "ever" if npi else "once")
        text = f"{environment} {split} {number} {' '.join(words if scope else words[::-1])} sang."
        label = int(not npi or (licensor and scope))
        tags = {"environment": environment, "split": split, "set": f"{environment}/{split}/{number}"}
        tags |= {"licensor": str(licensor), "npi": str(npi), "scope": str(scope), "npi_word": "ever"}
        rows.append(Sentence(f"{tags['set']}/{code}", text, label, tags=tags))
    return rows


@pytest.fixture
def own(tmp_path: Path) -> str:
    """A file of sentences of one's own: two environments, training and test."""
    rows = [
        each
        for env in ("only", "rare")
        for split in ("train", "test")
        for n in range(6)
        for each in paradigm(env, split, n)
    ]
    file = tmp_path / "own.jsonl"
    lines = [json.dumps({"id": e.id, "text": e.text, "label": e.label, "tags": dict(e.tags)}) for e in rows]
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def by_place(found: list[Cell]) -> dict[tuple[str, str, str], Cell]:
    return {(each.table, each.row, each.column): each for each in found}


def test_the_published_pairs_are_all_used_and_are_those_of_the_rule(data: Path) -> None:
    found = material()
    assert (len(found.learn.sentences), len(found.test.sentences)) == (90_000, 9_000)
    assert (len(found.pairs.contrasts), len(found.cloze.contrasts)) == (5500, 3869)
    assert tuple(SHORT) == found.groups
    assert Counter(each.tags["varied"] for each in found.pairs.contrasts) == {
        "npi": 3250,
        "licensor": 1250,
        "scope": 1000,
    }
    made = paired(found.test)
    ours = {(made.by_id[each.better].text, made.by_id[each.worse].text) for each in made.contrasts}
    theirs = {
        (found.pairs.by_id[each.better].text, found.pairs.by_id[each.worse].text) for each in found.pairs.contrasts
    }
    assert ours == theirs


def test_a_part_of_the_test_sentences_keeps_whole_pairs(data: Path) -> None:
    few = material().judged(64)
    texts = {each.text for each in few.test.sentences}
    assert 9 * 64 <= len(few.test.sentences) <= 9 * 72
    assert {each.text for each in few.pairs.sentences} <= texts
    assert Counter(each.tags["environment"] for each in few.pairs.contrasts).keys() == set(SHORT)
    assert len(few.cloze.contrasts) == 3869


def test_sentences_of_ones_own_make_their_pairs(own: str) -> None:
    found = material(own)
    assert found.groups == ("only", "rare")
    assert Counter(each.tags["varied"] for each in found.pairs.contrasts) == {"npi": 36, "licensor": 12, "scope": 12}
    assert {each.tags["varied"] for each in found.cloze.contrasts} == {"npi", "licensor"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"npi": "any"}, "npi is 'any'; expected 0 or 1"),
        ({"split": None}, "has no tag 'split'"),
        ({"licensor": None}, "licensor is None"),
    ],
)
def test_sentences_that_lack_something_are_an_error(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    each = paradigm("only", "train", 0)[0]
    tags = {name: value for name, value in {**each.tags, **change}.items() if value is not None}
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps({"id": "a", "text": each.text, "label": 1, "tags": tags}) + "\n")
    with pytest.raises(SuiteError, match=problem):
        material(str(file))


def judges(found: Material, model: Taught, wrong: dict[str, str]) -> Verdicts:
    """Return classifiers that are right, but for those who call all of an environment acceptable."""
    everyone = {
        **{each.text: each for each in found.test.sentences},
        **{each.text: each for each in found.pairs.sentences},
        **{each.text: each for each in load_suite("npi/wilcox").sentences},
    }

    def said(configuration: Configuration) -> LogOdds:
        blind = wrong.get(configuration.folder, "")
        return {
            text: 1.0 + (0.5 if each.label else 0.0)
            if each.tags["environment"] == blind
            else (1.0 if each.label else -1.0)
            for text, each in everyone.items()
        }

    return Verdicts(model, found, {each: [said(each)] for each in configurations(found.groups)})


def test_figures_follow_the_configurations(data: Path, own: str) -> None:
    found = judges(material(own), Taught("tiny", "transformer"), {"one/only": "rare", "all-but/rare": "rare"})
    places = by_place(list(figures(found, printed("npi"))))
    boolean = {row: places["Figure 1", f"tiny: {row}", "rare"].ours for row in ("CoLA", "1 NPI", "All NPI")}
    assert boolean == {"CoLA": 1.0, "1 NPI": 1.0, "All NPI": 1.0}
    assert places["Figure 1", "tiny: Avg Other NPI", "rare"].ours == 0.0
    assert places["Figure 1", "tiny: All-but-1 NPI", "rare"].ours == 0.0
    assert places["Figure 1", "tiny: All-but-1 NPI", "ONLY"].ours == 1.0
    assert places["Figure 1", "tiny: 1 NPI", "ONLY"].paper == "1.0"
    assert places["Figure 1", "tiny: 1 NPI", "ONLY"].agrees is None
    assert places[BY_TRAINING, "tiny: ONLY only", "rare"].ours == 0.0
    for factor in FACTORS:
        assert places[f"Figure 2, {factor}", "tiny: absolute, All-but-1 NPI", "rare"].ours == 0.0
        assert places[f"Figure 2, {factor}", "tiny: gradient, All-but-1 NPI", "rare"].ours == 1.0
    assert ("Figure 1", "tiny: Avg Other NPI", "Wilcox et al.") not in places
    assert "mean over 2 classifiers" in places["Figure 1", "tiny: 1 NPI", "Wilcox et al."].note


def test_pairs_that_tie_are_wrong_and_are_told(data: Path, own: str) -> None:
    whole = judges(material(own), Taught(BAG, "cbow"), {})
    blind = {each: [dict.fromkeys(said, 1.0) for said in some] for each, some in whole.said.items()}
    places = by_place(list(figures(Verdicts(whole.model, whole.material, blind), {})))
    cell = places["Figure 2, scope", "bag-of-words: gradient, All NPI", "rare"]
    assert cell.ours == 0.0
    assert "100.0% of the pairs tie" in cell.note
    assert "tie" not in places["Figure 2, scope", "bag-of-words: absolute, All NPI", "rare"].note


def test_a_model_after_another_task_stands_in_the_appendix(data: Path, own: str) -> None:
    found = judges(material(own), Taught("tiny+tags", "transformer", after="tags.conllu"), {})
    tables = {each.table for each in figures(found, {})}
    assert tables == {"Figure 5", "Figure 6", "Figure 7", "Figure 8", BY_TRAINING}


def test_what_is_not_taught_yet_is_said(data: Path, own: str) -> None:
    whole = judges(material(own), Taught("tiny", "transformer"), {})
    part = {each: said for each, said in whole.said.items() if each.kind != "one"}
    places = by_place(list(figures(Verdicts(whole.model, whole.material, part), {})))
    cell = places["Figure 1", "tiny: 1 NPI", "rare"]
    assert cell.ours is None
    assert "not every classifier" in cell.note
    assert places["Figure 1", "tiny: All NPI", "rare"].ours == 1.0


def test_findings_compare_with_the_bag_of_words(data: Path, own: str) -> None:
    encoder = judges(material(own), Taught("tiny", "transformer"), {})
    bag = judges(material(own), Taught(BAG, "cbow"), {"all": "rare"})
    places = by_place(list(findings([bag, encoder], printed("npi"))))
    above = places["Findings", "tiny: Boolean: above the bag of words", "places"]
    assert (above.paper, above.ours) == ("all", "1 of 10")
    assert places["Findings", "bag-of-words: scope, absolute", "mean"].ours == pytest.approx(0.9)
    assert places["Findings", "bag-of-words: npi, absolute", "mean"].paper == "(nearly) perfect"


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


def test_encoders_are_probed_where_their_row_is_measured(data: Path, own: str, tmp_path: Path) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def probe(suite: Suite, encoder: str, *, factors: Any, by: str, layers: Any, tell: Any) -> list[Probed]:
        groups = tuple(dict.fromkeys(each.tags[by] for each in suite.sentences))
        assert {each.tags["split"] for each in suite.sentences} == {"train", "test"}
        assert list(layers) == [-1]
        asked.append((encoder, groups))
        return [Probed(encoder, f, g, 6, 0.5, 0.7, 0.1, 0.4, 9, 3) for f in factors for g in groups]

    model = Taught("tiny", "transformer", start="masked:tiny")
    for name in ("other", "one/only", "one/rare", "all-but/only"):
        place = tmp_path / "tiny" / name / "transformer-1"
        place.mkdir(parents=True)
        (place / "recipe.json").write_text("{}")
    bag = Taught(BAG, "cbow", {"vectors": "glove.txt"})
    found = by_place(list(probing_cells(Folder(tmp_path, own, 1, (bag, model)), None, probe)))
    everywhere = ("only", "rare")
    assert asked[:3] == [("glove:glove.txt", everywhere), ("majority", everywhere), ("masked:tiny", everywhere)]
    assert (f"classifier:{tmp_path}/tiny/one/rare/transformer-1", ("rare",)) in asked
    assert found["Figure 4", "tiny: 1 NPI, scope", "rare"].ours == 0.5
    assert ("Figure 4", "tiny: All-but-1 NPI, scope", "rare") not in found
    assert "control task has 0.100" in found["Figure 4", "tiny: untouched, npi", "ONLY"].note


def test_encoders_are_probed_side_by_side_in_their_order(
    data: Path, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where there are several cores; what is called is a stand-in for the processes."""

    def calls(function: Any, asked: Any, *, workers: int, hear: Any) -> Iterator[Outcome]:
        assert function is npi_probing.probed_alone
        for place in reversed(range(len(asked))):
            rows = [Probed(asked[place].encoder.spelling, "npi", "only", 0, place / 10, 1, None, None, 9, 3)]
            yield Outcome(place, rows, problem)

    monkeypatch.setattr(npi_probing, "calls", calls)
    monkeypatch.setattr(npi_probing, "workers_here", lambda: 4)
    problem = None
    folder = Folder(tmp_path, own, 1, (Taught(BAG, "cbow"), Taught("tiny", "transformer", start="masked:tiny")))
    found = list(probing_cells(folder))
    assert [(each.row, each.ours) for each in found] == [
        ("bag-of-words: untouched, npi", 0.0),
        ("majority, npi", 0.1),
        ("tiny: untouched, npi", 0.2),
    ]
    problem = "no memory"
    with pytest.raises(MeasureError, match="cannot probe masked:tiny: no memory"):
        list(probing_cells(folder))


def test_counts_agree_and_what_needs_models_says_so(data: Path) -> None:
    places = by_place(study("npi"))
    wrong = {key[1] for key, each in places.items() if each.agrees is False}
    assert wrong == {"sentences"}
    assert sum(each.agrees is True for each in places.values()) == 8
    assert places["Section 4", "of them made again by the rule", "count"].ours == "5500 of 5500"
    assert "--ratings FILE" in places["Human validation", "any", "agreement %"].note
    assert "--train" in places["Figure 1", "BERT: All-but-1 NPI", "SMP-Q"].note


def test_the_cloze_test_of_ones_own_sentences(data: Path, own: str) -> None:
    places = by_place(cells(["sphinx-trigram"], suite=own))
    found = [each for each in places.values() if each.table == "Figure 3"]
    assert {each.row for each in found} == {"sphinx-trigram: npi", "sphinx-trigram: licensor"}
    assert places["Figure 3", "sphinx-trigram: npi", "lowest"].paper == "0.76"


def test_a_classifier_has_no_cloze_test(data: Path) -> None:
    with pytest.raises(SpellingError, match="join by --restarts"):
        cells(["classifier:x"])


def test_a_folder_without_a_plan_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="--train --out DIR"):
        read_folder(tmp_path)


def test_ratings_fill_the_validation(data: Path, tmp_path: Path) -> None:
    """Eight people who know everything rate 40 published test sentences by their ids."""
    sentences = [each for each in load_suite("npi").sentences if each.tags["split"] == "test_full"][::225]
    rows = ["participant,id,response"]
    rows += [f"p{n},{each.id},{5 if each.label else 2}" for n in range(8) for each in sentences]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(rows) + "\n")
    places = by_place(cells(ratings=file))
    whole = places["Human validation", "all sentences", "agreement %"]
    assert (whole.paper, whole.ours, whole.agrees) == ("82.8", 100.0, None)
    assert f"{8 * len(sentences)} answers to {len(sentences)} sentences" in whole.note
    assert places["Human validation", "any", "agreement %"].paper == "78.3"
    assert places["Human validation", "ever", "agreement %"].ours == 100.0
    p = places["Human validation", "all sentences", "signed-rank p, ratings, by participant"]
    assert p.ours is not None
    assert float(p.ours) < 0.01
    assert any(key[1] == "ADV" for key in places)


def test_ratings_that_say_themselves_what_the_sentences_are(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(
        "participant,sentence,response,label,environment,npi\n"
        "a,Cats ever sleep.,2,0,only,ever\na,Cats often sleep.,3,1,only,ever\nb,Cats ever sleep.,4,0,only,ever\n"
    )
    places = by_place(cells(ratings=file))
    assert places["Human validation", "all sentences", "agreement %"].ours == pytest.approx(100 / 3)
    assert places["Human validation", "ONLY, ever", "unacceptable, rated acceptable %"].ours == pytest.approx(50)
