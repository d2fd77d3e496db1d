"""Whole training runs: the files in the folder, the reports, and that a killed run gives the same model."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acceptability import load_model, registry, score
from acceptability.errors import SpecError, TrainError, UnknownName
from acceptability.models.ngram.arpa import Arpa
from acceptability.reductions import load_unigrams
from acceptability.train import TrainingProgress, train
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.recipe import read_options
from acceptability.types import Query
from tiny import SENTENCES, TEXTS

MADE = ("model.safetensors", "vocabulary.json", "unigrams.tsv")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n")
    return path


def test_the_files_of_a_model(corpus: Path, tmp_path: Path) -> None:
    metadata = train(NGramRecipe(order=2), [corpus], tmp_path / "m", licence="CC0", dev=[corpus])
    stored = json.loads((tmp_path / "m" / "recipe.json").read_text())
    assert stored == metadata
    assert stored["recipe"] == {
        "order": 2, "vocabulary": 60000, "words": "split", "lower": False, "prune": 0.0, "bits": 32, "arpa": False
    }  # fmt: skip
    assert (stored["sentences"], stored["words"], stored["kind"], stored["seed"]) == (7, 45, "ngram", None)
    card = (tmp_path / "m" / "README.md").read_text()
    for part in ("7 sentences", stored["corpus"], "CC0", "order: 2", "seconds", "perplexity", "slor(unigrams="):
        assert part in card
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == sorted([*MADE, "README.md", "recipe.json"])


def test_a_dev_set_in_the_training_text_gives_a_warning(corpus: Path, tmp_path: Path, caplog) -> None:
    with caplog.at_level(logging.WARNING):
        metadata = train(NGramRecipe(), [corpus], tmp_path / "m", dev=[corpus])
    assert "7 sentences of the dev set are also in the training text" in caplog.text
    assert metadata["results"]["sentences of dev also in training"] == 7


def test_slor_works_with_the_unigrams_of_the_model(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    train(NGramRecipe(vocabulary=10), [corpus], folder)
    table = load_unigrams(str(folder / "unigrams.tsv"))
    # Each model has its own units: the words that it does not know count as <unk>, as they do for the model.
    assert table.unit == "token"
    assert table.logprob("zebra") == table.logprob("<unk>") > table.logprob(".")
    suite = tmp_path / "s.tsv"
    suite.write_text("good\tbad\nThe cats sleep.\tCats the sleep.\n")
    scores = score(str(suite), f"ngram:{folder}", f"slor(unigrams='{folder / 'unigrams.tsv'}')")
    good, bad = scores.values.values() if hasattr(scores, "values") else ()
    assert good > bad


def test_the_arpa_file_gives_the_same_scores(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    train(NGramRecipe(vocabulary=20, arpa=True), [corpus], folder)
    ours = load_model(f"ngram:{folder}(eos=True)")
    theirs = load_model(f"ngram:{folder / 'model.arpa'}(units='split', eos=True)")
    assert Arpa(folder / "model.arpa").order == 3
    queries = [Query(text) for text in TEXTS if text != "Cats"]
    for own, arpa in zip(ours.run(ours.encode(queries)), theirs.run(theirs.encode(queries)), strict=True):
        assert (own.tokens, own.offsets) == (arpa.tokens, arpa.offsets)
        assert own.logprobs.tolist() == pytest.approx(arpa.logprobs.tolist(), abs=1e-6, rel=1e-6)


def test_a_finished_model_is_neither_trained_again_nor_overwritten(corpus: Path, tmp_path: Path, caplog) -> None:
    metadata = train(NGramRecipe(), [corpus], tmp_path / "m")
    with caplog.at_level(logging.INFO):
        assert train(NGramRecipe(), [corpus], tmp_path / "m") == metadata
    assert "nothing was done" in caplog.text
    with pytest.raises(TrainError, match="holds another model: its recipe differ"):
        train(NGramRecipe(order=2), [corpus], tmp_path / "m")
    (tmp_path / "m" / "recipe.json").write_text("{")
    with pytest.raises(TrainError, match="cannot read"):
        train(NGramRecipe(), [corpus], tmp_path / "m")


def test_progress_is_reported(corpus: Path, tmp_path: Path) -> None:
    reports: list[TrainingProgress] = []
    train(NGramRecipe(), [corpus], tmp_path / "m", progress=reports.append)
    assert [report.stage for report in reports if report.done == report.total] == [
        "reading", "counting 2-grams", "counting 3-grams", "estimating"
    ]  # fmt: skip


def test_options_are_parsed_and_wrong_ones_named() -> None:
    assert read_options(NGramRecipe, ["order=4", "lower=true", "prune=1e-8", "words=spaces"]) == NGramRecipe(
        order=4, lower=True, prune=1e-8, words="spaces"
    )
    assert read_options(NGramRecipe, ["prune=0"]).prune == 0.0
    for option, message in (
        ("ordr=3", "Did you mean 'order'"),
        ("order", "NAME=VALUE"),
        ("order=3.5", "expected a whole number"),
        ("order=true", "expected a whole number"),
        ("lower=maybe", "expected true or false"),
        ("lower=1", "expected true or false"),
        ("prune=much", "expected a number"),
    ):
        with pytest.raises(SpecError, match=message):
            read_options(NGramRecipe, [option])
    with pytest.raises(SpecError, match="is given twice"):
        read_options(NGramRecipe, ["order=3", "order=4"])
    for option in ("order=0", "order=11", "vocabulary=-1", "words=letters", "prune=1", "bits=4"):
        with pytest.raises(TrainError, match=f"^{option.partition('=')[0]} is"):
            read_options(NGramRecipe, [option])
    with pytest.raises(UnknownName, match="no recipe named 'ngrm'"):
        registry.find("recipe", "ngrm")


STOPPING = """
import os, signal, sys
from acceptability.train import checkpoint
from acceptability.cli import main
real, left = os.fsync, [int(os.environ["STOP_AFTER"])]
def fsync(descriptor):
    real(descriptor)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.os.fsync = fsync
main()
"""


def test_a_run_killed_at_any_moment_resumes_to_the_same_files(corpus: Path, tmp_path: Path) -> None:
    """The process dies by SIGKILL after its 1st, 3rd, 5th … write, and is started again until it ends."""
    train(NGramRecipe(order=4, arpa=True), [corpus], tmp_path / "calm")
    folder = tmp_path / "broken"
    line = ["train", "ngram", "-c", str(corpus), "-o", str(folder), "--set", "order=4", "--set", "arpa=true"]
    kills = 0
    for stop_after in (1, 3, 5, 8, 9, 10, 12, 14, 17, 19, 21, 10_000):
        env = {**os.environ, "STOP_AFTER": str(stop_after)}
        done = subprocess.run([sys.executable, "-c", STOPPING, *line], env=env, capture_output=True, text=True)
        if done.returncode != -signal.SIGKILL:
            break
        kills += 1
        assert not (folder / "recipe.json").exists()
    assert done.returncode == 0, done.stderr
    assert kills >= 6
    for name in (*MADE, "model.arpa"):
        assert (folder / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()
    assert not (folder / ".checkpoint").exists()


def test_a_run_killed_from_outside_while_reading_resumes(tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_text("".join(f"word{i % 977} and {i % 1013} of w{i % 31} .\n" for i in range(60_000)))
    # On a busy machine a run may end before this process looks again; it is then started anew.
    for attempt in range(5):
        out = tmp_path / f"m-{attempt}"
        line = [sys.executable, "-m", "acceptability", "train", "ngram", "-c", str(large), "-o", str(out)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while process.poll() is None and not (out / ".checkpoint" / "state.json").exists():
                time.sleep(0.002)
            process.kill()
            process.communicate()
        if process.returncode == -signal.SIGKILL:
            break
    assert process.returncode == -signal.SIGKILL, "the run was too quick to be killed"
    again = subprocess.run([*line, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(again.stdout)["sentences"] == 60_000
    train(NGramRecipe(), [large], tmp_path / "calm")
    for name in MADE:
        assert (out / name).read_bytes() == (tmp_path / "calm" / name).read_bytes()


def test_the_command_prints_the_model_and_names_errors(corpus: Path, tmp_path: Path) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "acceptability", *arguments], capture_output=True, text=True)

    done = command("train", "ngram", "-c", str(corpus), "-o", str(tmp_path / "m"), "--set", "order=2")
    assert (done.returncode, done.stdout.strip()) == (0, f"ngram:{tmp_path / 'm'}")
    assert "discounts of each order" in done.stderr
    measured = command("perplexity", done.stdout.strip(), "-c", str(corpus), "--json")
    assert json.loads(measured.stdout)["unknown"] == 0
    wrong = command("train", "ngram", "-c", str(corpus), "-o", str(corpus / "m"))
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert f"error: cannot create the folder {corpus / 'm'}: Not a directory" in wrong.stderr
    wrong = command("train", "ngram", "-c", str(tmp_path / "no"), "-o", str(tmp_path / "n"))
    assert (wrong.returncode, wrong.stderr.strip()) == (1, f"error: there is no file or folder {tmp_path / 'no'}")


def test_the_ngram_recipe_needs_no_torch() -> None:
    code = (
        "import sys, acceptability.train.ngram_recipes, acceptability.models.ngram.model\n"
        "print({'torch', 'transformers', 'scipy.stats'} & set(sys.modules) or 'none')"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "none"
