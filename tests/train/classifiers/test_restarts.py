"""Restarts: side by side as one after the other, gone on with, failing one by one; what they are summed up to."""

from __future__ import annotations

import json
import os
import statistics
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef

from acceptability import Scores, Sentence, Suite, score
from acceptability.engine.processes import Outcome
from acceptability.errors import EngineError, MeasureError, TrainError
from acceptability.models.files import is_importable
from acceptability.stats.bootstrap import Bootstrap
from acceptability.train import recurrent
from acceptability.train.classifiers.restarts import Run, chosen, failures, restarts, sampler
from acceptability.train.classifiers.summaries import check_both_labels, summaries, summarised, tied
from acceptability.train.ngram import NGram
from tiny_courses import Seedless, Stand, TinyBert, labelled

DATA = [labelled(60)]


def weights(runs: list[Run], name: str) -> list[bytes]:
    return [(run.folder / name).read_bytes() for run in runs]


def test_runs_lie_by_kind_and_seed_and_tell_how_far_they_are(tmp_path: Path) -> None:
    ticks = []
    runs = restarts(Stand(seed=5), DATA, tmp_path, runs=3, workers=2, tell=ticks.append)
    assert [run.seed for run in runs] == [5, 6, 7]
    assert [run.folder for run in runs] == [tmp_path / f"stand-{seed}" for seed in (5, 6, 7)]
    assert all(run.told["recipe"]["seed"] == run.seed for run in runs)
    assert {run.told["facts"]["threads"] for run in runs} == {"1"}
    stages = [tick.stage for tick in ticks]
    assert {"stand-5: learning", "stand-6: learning", "stand-7: learning", "stand-6: finished"} <= set(stages)
    assert [tick.done for tick in ticks if tick.stage == "runs"] == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def berts(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Three searched runs, one after the other."""
    return restarts(TinyBert(), DATA, tmp_path_factory.mktemp("berts"), runs=3, search=sampler(TinyBert()))


def test_side_by_side_is_one_after_the_other_bit_for_bit(berts: list[Run], tmp_path: Path) -> None:
    alone = berts
    together = restarts(TinyBert(), DATA, tmp_path, runs=3, workers=2, search=sampler(TinyBert()))
    assert failures(alone) is None
    assert weights(alone, "model.safetensors") == weights(together, "model.safetensors")
    assert len(set(weights(alone, "model.safetensors"))) == 3
    assert [run.held for run in alone] == [run.held for run in together]


def test_finished_runs_are_not_taught_again_and_others_are_added(tmp_path: Path) -> None:
    first = restarts(Stand(), DATA, tmp_path, runs=2)
    more = restarts(Stand(), DATA, tmp_path, runs=4, workers=2)
    assert [run.told for run in more[:2]] == [run.told for run in first]
    assert [run.seed for run in more] == [1, 2, 3, 4]
    whole = restarts(Stand(), DATA, tmp_path / "whole", runs=4)
    assert weights(more, "weights.json") == weights(whole, "weights.json")


def test_one_process_takes_run_after_run_and_two_share_them(tmp_path: Path) -> None:
    alone = restarts(Stand(), DATA, tmp_path / "alone", runs=3)
    assert len({run.told["facts"]["process"] for run in alone}) == 1
    shared = restarts(Stand(slow=1.0), DATA, tmp_path / "shared", runs=4, workers=2)
    assert len({run.told["facts"]["process"] for run in shared}) == 2


def test_a_run_that_fails_is_named_and_the_others_stay(tmp_path: Path, capfd) -> None:
    recipe = Stand(failing=(2,), breaking=(3,), dying=(4,))
    ticks = []
    runs = restarts(recipe, DATA, tmp_path, runs=6, workers=2, tell=ticks.append)
    assert [run.seed for run in runs if run.told] == [1, 5, 6]
    told = failures(runs)
    assert told.startswith("3 of 6 runs failed: seed 2: the stand-in falls over; seed 3: its process ended with")
    assert "seed 4: its process was killed (SIGKILL), perhaps because the memory" in told
    assert "The same command repeats these" in told
    assert "ZeroDivisionError: a bug" in capfd.readouterr().err
    assert "stand-2: failed" in [tick.stage for tick in ticks]
    assert runs[1].held == {}
    again = restarts(recipe, DATA, tmp_path, runs=6)
    assert [run.told for run in again if run.told] == [run.told for run in runs if run.told]


@pytest.mark.skipif(not is_importable("ray"), reason="ray is not installed: make install")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::ResourceWarning")
def test_a_cluster_teaches_the_same_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    there = restarts(Stand(breaking=(2,)), DATA, tmp_path / "there", runs=3, engine="ray(address='local', workers=2)")
    here = restarts(Stand(breaking=(2,)), DATA, tmp_path / "here", runs=3)
    assert there[1].problem == "it broke off on the cluster: ZeroDivisionError: a bug"
    for one, two in ((there[0], here[0]), (there[2], here[2])):
        assert (one.folder / "weights.json").read_bytes() == (two.folder / "weights.json").read_bytes()


def test_what_a_run_prints_is_no_data(tmp_path: Path, capfd) -> None:
    restarts(Stand(), DATA, tmp_path, runs=1)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "the stand-in talks" in printed.err


def test_stopping_ends_the_processes(tmp_path: Path) -> None:
    def stop(tick) -> None:
        if tick.stage == "stand-1: learning":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restarts(Stand(slow=60), DATA, tmp_path, runs=2, workers=2, tell=stop)
    assert not (tmp_path / "stand-1" / "recipe.json").exists()


def test_search_draws_for_each_run_and_keeps_what_was_set(tmp_path: Path) -> None:
    runs = restarts(Stand(), DATA, tmp_path / "a", runs=4, search=sampler(Stand()))
    assert len({run.told["recipe"]["width"] for run in runs}) > 1
    kept = restarts(Stand(width=7), DATA, tmp_path / "b", runs=4, search=sampler(Stand(), keep=["width"]))
    assert {run.told["recipe"]["width"] for run in kept} == {7}
    assert [run.told["recipe"]["rate"] for run in kept] == [run.told["recipe"]["rate"] for run in runs]


def test_search_is_found_beside_the_class_of_the_recipe() -> None:
    lstm = recurrent.LSTM(embedding=10)
    assert asdict(sampler(lstm)(3, lstm)) == asdict(recurrent.sampled(3, lstm))
    with pytest.raises(TrainError, match=r"recipe ngram cannot be searched: .*has no function sampled\(seed, recipe\)"):
        sampler(NGram())


def test_what_every_run_would_stumble_over_is_said_before_any(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match="all 9 sentences are acceptable"):
        restarts(Stand(), [Suite("one", tuple(Sentence(str(n), "A cat.", 1) for n in range(9)))], tmp_path)
    with pytest.raises(TrainError, match="has no seed"):
        restarts(Seedless(), DATA, tmp_path)
    for wrong in ({"runs": 0}, {"workers": 0}, {"runs": True}):
        with pytest.raises(TrainError, match="expected a whole number from 1"):
            restarts(Stand(), DATA, tmp_path, **wrong)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_another_recipe_is_not_written_over(tmp_path: Path) -> None:
    restarts(Stand(), DATA, tmp_path, runs=1)
    (run,) = restarts(Stand(width=9), DATA, tmp_path, runs=1)
    assert "holds another model: its recipe differ" in run.problem


def test_an_engine_that_only_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot run a training"):
        restarts(Stand(), DATA, tmp_path, engine=object())


def test_a_folder_that_nodes_do_not_share_is_a_failure(tmp_path: Path) -> None:
    class Elsewhere:
        def calls(self, function, items, *, workers, hear):
            for place, _ in enumerate(items):
                yield Outcome(place, {"results": {}})

    (run,) = restarts(Stand(), DATA, tmp_path, runs=1, engine=Elsewhere())
    assert "must be a folder that all nodes share" in run.problem


def test_held_out_sentences_choose_and_of_equals_the_lowest_seed() -> None:
    def run(seed: int, mcc: float | None) -> Run:
        told = None if mcc is None else {"results": {"held out": {"mcc": mcc, "accuracy": 1 - mcc}}}
        return Run(seed, Path("x"), told, None if told else "it fell")

    assert chosen([run(1, 0.1), run(2, 0.4), run(3, 0.4), run(4, None)]).seed == 2
    with pytest.raises(TrainError, match="no run is finished"):
        chosen([run(1, None)])


LABELS = [1, 1, 0, 0, 1, 0]
SUITE = Suite("six", tuple(Sentence(str(n), f"Sentence {n}.", label) for n, label in enumerate(LABELS)))
VOTES = np.array([[1, 1, -1, -1, 1, -1], [1, -1, 1, -1, 1, -1], [1, -1, -1, 1, -1, -1], [1, 1, 1, -1, -1, 1]])


def scores_of(rows: np.ndarray) -> list[Scores]:
    return [
        Scores({str(n): float(value) for n, value in enumerate(row)}, f"m{place}") for place, row in enumerate(rows)
    ]


def test_a_summary_is_what_scikit_learn_and_statistics_say() -> None:
    found = summarised(SUITE, scores_of(VOTES), [11, 12, 13, 14], 12, bootstrap=Bootstrap(resamples=200))
    predicted = (VOTES > 0).astype(int)
    elected = (predicted.sum(axis=0) > 2).astype(int)
    ties = int((predicted.sum(axis=0) == 2).sum())
    for each, reference in zip(found, (matthews_corrcoef, accuracy_score), strict=True):
        values = [reference(LABELS, row) for row in predicted]
        assert each.mean == pytest.approx(statistics.mean(values))
        assert each.std == pytest.approx(statistics.stdev(values))
        assert each.max == pytest.approx(max(values))
        assert each.max_seed == 11
        assert (each.chosen, each.chosen_seed) == (pytest.approx(values[1]), 12)
        assert each.ensemble == pytest.approx(reference(LABELS, elected))
        assert each.low <= each.ensemble <= each.high
        assert (each.n, each.runs, each.ties) == (6, 4, ties)
        assert f"{ties} sentences as many restarts accept as not" in "; ".join(each.notes)
        assert "majority" in each.signature
    assert [each.measure for each in found] == ["MCC", "Accuracy"]
    json.dumps([each.row() for each in found], allow_nan=False)


def test_an_odd_number_of_restarts_never_ties_and_one_has_no_deviation() -> None:
    assert tied(scores_of(VOTES[:3])) == 0
    (mcc, _) = summarised(SUITE, scores_of(VOTES[:1]), [1], 1, bootstrap=Bootstrap(resamples=0))
    assert (mcc.std, mcc.mean, mcc.max, mcc.notes) == (None, mcc.ensemble, mcc.chosen, ())
    with pytest.raises(TrainError, match="of which 9 is the chosen"):
        summarised(SUITE, scores_of(VOTES[:1]), [1], 9)


def test_runs_are_summed_up_through_their_classifiers(berts: list[Run], tmp_path: Path) -> None:
    dev, other = labelled(40, "dev", 7), labelled(30, "other", 8)
    found = summaries([*berts, Run(9, tmp_path / "nowhere", None, "it fell")], [dev, other])
    assert [(each.suite, each.measure, each.runs) for each in found] == [
        (name, measure, 3) for name in ("dev", "other") for measure in ("MCC", "Accuracy")
    ]
    gold = [sentence.label for sentence in dev.sentences]
    odds = [score(dev, run.spelling, "log_odds").of(s.id for s in dev.sentences) for run in berts]
    assert found[1].mean == pytest.approx(np.mean([accuracy_score(gold, each > 0) for each in odds]))
    assert found[1].ensemble == pytest.approx(accuracy_score(gold, np.sum([each > 0 for each in odds], axis=0) >= 2))


def test_a_suite_without_both_labels_is_refused() -> None:
    check_both_labels(SUITE)
    with pytest.raises(MeasureError, match="'none' has no labels"):
        check_both_labels(Suite("none", (Sentence("a", "A."),)))
    with pytest.raises(MeasureError, match="'good' has only labels 1"):
        check_both_labels(Suite("good", (Sentence("a", "A.", 1), Sentence("b", "B."))))
