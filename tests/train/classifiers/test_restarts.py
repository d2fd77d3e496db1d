"""Random restarts: parallel as sequential, resumed, failing one by one; and their summaries."""

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
from acceptability.engine.processes import CallOutcome
from acceptability.errors import EngineError, MeasureError, TrainError
from acceptability.models.files import is_importable
from acceptability.stats.bootstrap import Bootstrap
from acceptability.train import recurrent_recipes
from acceptability.train.classifiers.random_restarts import (
    RestartRun,
    check_both_labels,
    count_ties,
    describe_failures,
    find_hyperparameter_sampler,
    run_restarts,
    select_best_run,
    summarise_runs,
    summarise_scores,
)
from acceptability.train.ngram_recipes import NGramRecipe
from tiny_recipes import Seedless, Stand, TinyBert, labelled

DATA = [labelled(60)]


def weights(runs: list[RestartRun], name: str) -> list[bytes]:
    return [(run.folder / name).read_bytes() for run in runs]


def test_runs_have_folders_by_kind_and_seed_and_report_progress(tmp_path: Path) -> None:
    ticks = []
    runs = run_restarts(Stand(seed=5), DATA, tmp_path, runs=3, workers=2, progress=ticks.append)
    assert [run.seed for run in runs] == [5, 6, 7]
    assert [run.folder for run in runs] == [tmp_path / f"stand-{seed}" for seed in (5, 6, 7)]
    assert all(run.metadata["recipe"]["seed"] == run.seed for run in runs)
    assert {run.metadata["facts"]["threads"] for run in runs} == {"1"}
    stages = [tick.stage for tick in ticks]
    assert {"stand-5: training", "stand-6: training", "stand-7: training", "stand-6: finished"} <= set(stages)
    assert [tick.done for tick in ticks if tick.stage == "runs"] == [0, 1, 2, 3]


@pytest.fixture(scope="module")
def berts(tmp_path_factory: pytest.TempPathFactory) -> list[RestartRun]:
    """Three sequential runs with drawn hyperparameters."""
    return run_restarts(
        TinyBert(), DATA, tmp_path_factory.mktemp("berts"), runs=3, search=find_hyperparameter_sampler(TinyBert())
    )


@pytest.mark.slow
def test_parallel_runs_equal_sequential_ones_bit_for_bit(berts: list[RestartRun], tmp_path: Path) -> None:
    parallel = run_restarts(
        TinyBert(), DATA, tmp_path, runs=3, workers=2, search=find_hyperparameter_sampler(TinyBert())
    )
    assert describe_failures(berts) is None
    assert weights(berts, "model.safetensors") == weights(parallel, "model.safetensors")
    assert len(set(weights(berts, "model.safetensors"))) == 3
    assert [run.held_out_scores for run in berts] == [run.held_out_scores for run in parallel]


def test_finished_runs_are_not_trained_again_and_others_are_added(tmp_path: Path) -> None:
    first = run_restarts(Stand(), DATA, tmp_path, runs=2)
    more = run_restarts(Stand(), DATA, tmp_path, runs=4, workers=2)
    assert [run.metadata for run in more[:2]] == [run.metadata for run in first]
    assert [run.seed for run in more] == [1, 2, 3, 4]
    whole = run_restarts(Stand(), DATA, tmp_path / "whole", runs=4)
    assert weights(more, "weights.json") == weights(whole, "weights.json")


def test_one_process_trains_all_runs_and_two_share_them(tmp_path: Path) -> None:
    alone = run_restarts(Stand(), DATA, tmp_path / "alone", runs=3)
    assert len({run.metadata["facts"]["process"] for run in alone}) == 1
    shared = run_restarts(Stand(processes=2), DATA, tmp_path / "shared", runs=4, workers=2)
    assert len({run.metadata["facts"]["process"] for run in shared}) == 2


def test_a_failed_run_is_named_and_the_others_stay(tmp_path: Path, capfd) -> None:
    recipe = Stand(failing=(2,), breaking=(3,), dying=(4,))
    ticks = []
    runs = run_restarts(recipe, DATA, tmp_path, runs=6, workers=2, progress=ticks.append)
    assert [run.seed for run in runs if run.metadata] == [1, 5, 6]
    message = describe_failures(runs)
    assert message.startswith("3 of 6 runs failed: seed 2: the stand-in falls over; seed 3: its process ended with")
    assert "seed 4: its process was killed (SIGKILL), perhaps because memory ran out" in message
    assert "The same command repeats these" in message
    assert "ZeroDivisionError: a bug" in capfd.readouterr().err
    assert "stand-2: failed" in [tick.stage for tick in ticks]
    assert runs[1].held_out_scores == {}
    again = run_restarts(recipe, DATA, tmp_path, runs=6)
    assert [run.metadata for run in again if run.metadata] == [run.metadata for run in runs if run.metadata]


@pytest.mark.skipif(not is_importable("ray"), reason="ray is not installed: make install")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::ResourceWarning")
def test_a_cluster_trains_the_same_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    there = run_restarts(
        Stand(breaking=(2,)), DATA, tmp_path / "there", runs=3, engine="ray(address='local', workers=2)"
    )
    here = run_restarts(Stand(breaking=(2,)), DATA, tmp_path / "here", runs=3)
    assert there[1].problem == "it failed on the cluster: ZeroDivisionError: a bug"
    for one, two in ((there[0], here[0]), (there[2], here[2])):
        assert (one.folder / "weights.json").read_bytes() == (two.folder / "weights.json").read_bytes()


def test_what_a_run_prints_goes_to_stderr(tmp_path: Path, capfd) -> None:
    run_restarts(Stand(), DATA, tmp_path, runs=1)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "the stand-in talks" in printed.err


def test_stopping_ends_the_processes(tmp_path: Path) -> None:
    def stop(tick) -> None:
        if tick.stage == "stand-1: training":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_restarts(Stand(slow=60), DATA, tmp_path, runs=2, workers=2, progress=stop)
    assert not (tmp_path / "stand-1" / "recipe.json").exists()


def test_search_draws_for_each_run_and_keeps_what_was_set(tmp_path: Path) -> None:
    runs = run_restarts(Stand(), DATA, tmp_path / "a", runs=4, search=find_hyperparameter_sampler(Stand()))
    assert len({run.metadata["recipe"]["width"] for run in runs}) > 1
    kept = run_restarts(
        Stand(width=7), DATA, tmp_path / "b", runs=4, search=find_hyperparameter_sampler(Stand(), keep=["width"])
    )
    assert {run.metadata["recipe"]["width"] for run in kept} == {7}
    assert [run.metadata["recipe"]["learning_rate"] for run in kept] == [
        run.metadata["recipe"]["learning_rate"] for run in runs
    ]


def test_a_recipe_says_how_it_is_searched() -> None:
    lstm = recurrent_recipes.LSTMRecipe(embedding=10)
    assert asdict(find_hyperparameter_sampler(lstm)(3, lstm)) == asdict(
        recurrent_recipes.sample_hyperparameters(3, lstm)
    )
    with pytest.raises(
        TrainError, match=r"recipe ngram cannot be searched: .*has no method sample_hyperparameters\(seed\)"
    ):
        find_hyperparameter_sampler(NGramRecipe())


def test_errors_that_all_runs_share_are_raised_before_any_run(tmp_path: Path) -> None:
    with pytest.raises(TrainError, match="all 9 sentences are acceptable"):
        run_restarts(Stand(), [Suite("one", tuple(Sentence(str(n), "A cat.", 1) for n in range(9)))], tmp_path)
    with pytest.raises(TrainError, match="has no seed"):
        run_restarts(Seedless(), DATA, tmp_path)
    for wrong in ({"runs": 0}, {"workers": 0}, {"runs": True}):
        with pytest.raises(TrainError, match="expected a whole number from 1"):
            run_restarts(Stand(), DATA, tmp_path, **wrong)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_another_recipe_is_not_written_over(tmp_path: Path) -> None:
    run_restarts(Stand(), DATA, tmp_path, runs=1)
    (run,) = run_restarts(Stand(width=9), DATA, tmp_path, runs=1)
    assert "holds another model: its recipe differ" in run.problem


def test_an_engine_that_only_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot run a training"):
        run_restarts(Stand(), DATA, tmp_path, engine=object())


def test_a_folder_that_nodes_do_not_share_is_a_failure(tmp_path: Path) -> None:
    class Elsewhere:
        def map_unordered(self, function, items, *, workers, on_progress):
            for item_index, _ in enumerate(items):
                yield CallOutcome(item_index, {"results": {}})

    (run,) = run_restarts(Stand(), DATA, tmp_path, runs=1, engine=Elsewhere())
    assert "must be a folder that all nodes share" in run.problem


def test_held_out_sentences_choose_the_run_and_ties_go_to_the_lowest_seed() -> None:
    def run(seed: int, mcc: float | None) -> RestartRun:
        metadata = None if mcc is None else {"results": {"held out": {"mcc": mcc, "accuracy": 1 - mcc}}}
        return RestartRun(seed, Path("x"), metadata, None if metadata else "it failed")

    assert select_best_run([run(1, 0.1), run(2, 0.4), run(3, 0.4), run(4, None)]).seed == 2
    with pytest.raises(TrainError, match="no run is finished"):
        select_best_run([run(1, None)])


LABELS = [1, 1, 0, 0, 1, 0]
SUITE = Suite("six", tuple(Sentence(str(n), f"Sentence {n}.", label) for n, label in enumerate(LABELS)))
VOTES = np.array([[1, 1, -1, -1, 1, -1], [1, -1, 1, -1, 1, -1], [1, -1, -1, 1, -1, -1], [1, 1, 1, -1, -1, 1]])


def scores_of(rows: np.ndarray) -> list[Scores]:
    return [
        Scores({str(n): float(value) for n, value in enumerate(row)}, f"m{index}") for index, row in enumerate(rows)
    ]


def test_a_summary_agrees_with_scikit_learn_and_statistics() -> None:
    summaries = summarise_scores(SUITE, scores_of(VOTES), [11, 12, 13, 14], 12, bootstrap=Bootstrap(resamples=200))
    predicted = (VOTES > 0).astype(int)
    elected = (predicted.sum(axis=0) > 2).astype(int)
    ties = int((predicted.sum(axis=0) == 2).sum())
    for each, reference in zip(summaries, (matthews_corrcoef, accuracy_score), strict=True):
        values = [reference(LABELS, row) for row in predicted]
        assert each.mean == pytest.approx(statistics.mean(values))
        assert each.std == pytest.approx(statistics.stdev(values))
        assert each.max == pytest.approx(max(values))
        assert each.max_seed == 11
        assert (each.chosen, each.chosen_seed) == (pytest.approx(values[1]), 12)
        assert each.ensemble == pytest.approx(reference(LABELS, elected))
        assert each.low <= each.ensemble <= each.high
        assert (each.n, each.runs, each.ties) == (6, 4, ties)
        assert f"{ties} sentences are accepted by half of the restarts" in "; ".join(each.notes)
        assert "majority" in each.signature
    assert [each.measure for each in summaries] == ["MCC", "Accuracy"]
    json.dumps([each.row() for each in summaries], allow_nan=False)


def test_an_odd_number_of_restarts_never_ties_and_one_has_no_deviation() -> None:
    assert count_ties(scores_of(VOTES[:3])) == 0
    (mcc, _) = summarise_scores(SUITE, scores_of(VOTES[:1]), [1], 1, bootstrap=Bootstrap(resamples=0))
    assert (mcc.std, mcc.mean, mcc.max, mcc.notes) == (None, mcc.ensemble, mcc.chosen, ())
    with pytest.raises(TrainError, match="the chosen seed is 9"):
        summarise_scores(SUITE, scores_of(VOTES[:1]), [1], 9)


def test_runs_are_summarised_through_their_classifiers(berts: list[RestartRun], tmp_path: Path) -> None:
    dev, other = labelled(40, "dev", 7), labelled(30, "other", 8)
    summaries = summarise_runs([*berts, RestartRun(9, tmp_path / "nowhere", None, "it failed")], [dev, other])
    assert [(each.suite, each.measure, each.runs) for each in summaries] == [
        (name, measure, 3) for name in ("dev", "other") for measure in ("MCC", "Accuracy")
    ]
    gold = [sentence.label for sentence in dev.sentences]
    odds = [score(dev, run.spec, "log_odds").of(s.id for s in dev.sentences) for run in berts]
    assert summaries[1].mean == pytest.approx(np.mean([accuracy_score(gold, each > 0) for each in odds]))
    votes = np.sum([each > 0 for each in odds], axis=0)
    assert summaries[1].ensemble == pytest.approx(accuracy_score(gold, votes >= 2))


def test_a_suite_without_both_labels_is_refused() -> None:
    check_both_labels(SUITE)
    with pytest.raises(MeasureError, match="'none' has no labels"):
        check_both_labels(Suite("none", (Sentence("a", "A."),)))
    with pytest.raises(MeasureError, match="'good' has only labels 1"):
        check_both_labels(Suite("good", (Sentence("a", "A.", 1), Sentence("b", "B."))))
