"""Transformers from text: training, packed and masked rows, saved models, killed runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acceptability import judge, load_model, registry
from acceptability.errors import CorpusError, TrainError
from acceptability.reductions import load_unigrams
from acceptability.train import Recipe, train
from acceptability.train.corpus import open_corpus
from acceptability.train.recipe import read_options
from acceptability.train.transformer_recipes import BERTRecipe, GPTRecipe, TransformerRecipe
from acceptability.types import Query

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from acceptability.train.trainer import ProcessGroup
from acceptability.train.transformer_recipes import BOUNDARY, MASK, PAD, tokenize_corpus, train_tokenizer
from acceptability.train.transformer_task import (
    IGNORE_INDEX,
    PackedRows,
    TokenMasker,
    build_objective,
    build_optimisers,
)

LINES = [
    *("The cat sleeps.", "The cats sleep.", "The dog sleeps.", "The dogs sleep.", "A cat chases the unhappy dogs."),
    *("The dogs chase a cat.", "Who did the dog chase?", "The cats chase the dog, and it sleeps.", "No dog sleeps."),
]
SMALL = {
    "layers": 2,
    "width": 32,
    "heads": 2,
    "feed_forward": 64,
    "vocabulary": 300,
    "sequence_length": 16,
    "compile": "no",
}
TINY_GPT = GPTRecipe(**SMALL, batch_tokens=256, epochs=12.0, dropout=0.1, evaluate_every=20)
TINY_BERT = BERTRecipe(**SMALL, batch_tokens=256, epochs=24.0, evaluate_every=20)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(LINES * 40) + "\n")
    return path


@pytest.fixture(scope="module")
def gpt(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _trained(TINY_GPT, corpus, tmp_path_factory.mktemp("gpt") / "m")


@pytest.fixture(scope="module")
def bert(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _trained(TINY_BERT, corpus, tmp_path_factory.mktemp("bert") / "m")


def _trained(recipe: Recipe, corpus: Path, out: Path) -> Path:
    torch.set_num_threads(1)
    train(recipe, [corpus], out)
    return out


def test_a_small_corpus_is_learned(gpt: Path, bert: Path) -> None:
    pairs = [("The cats sleep.", "The cats sleeps."), ("No dog sleeps.", "No dog sleep."), (LINES[6], "Who did dog?")]
    for model in (f"causal:{gpt}", f"masked:{bert}(variant='word_l2r')"):
        opened = load_model(model)
        for better, worse in pairs:
            good, bad = (token_scores.logprobs.sum() for token_scores in _score(opened, [better, worse]))
            assert good > bad + 1, f"{model}: {better}"


def _score(model: Any, texts: list[str]) -> list[Any]:
    return model.run(model.encode([Query(text) for text in texts]))


TEXTS = ["The dogs sleep.", "Unseen words chase the übermäßig cat!", "A"]


def test_transformers_opens_a_gpt_with_the_same_scores(gpt: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    net, tokenizer = AutoModelForCausalLM.from_pretrained(gpt).eval(), AutoTokenizer.from_pretrained(gpt)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (BOUNDARY, BOUNDARY, PAD)
    for text, token_scores in zip(TEXTS, _score(load_model(f"causal:{gpt}"), TEXTS), strict=True):
        ids = tokenizer(text, return_tensors="pt").input_ids
        assert ids[0, 0] == tokenizer.bos_token_id
        with torch.no_grad():
            logprobs = net(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        assert token_scores.logprobs == pytest.approx(logprobs.numpy(), abs=1e-4)
        assert token_scores.tokens == tuple(tokenizer.convert_ids_to_tokens(ids[0, 1:]))


def test_transformers_opens_a_bert_with_the_same_scores(bert: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    net, tokenizer = AutoModelForMaskedLM.from_pretrained(bert).eval(), AutoTokenizer.from_pretrained(bert)
    assert (tokenizer.mask_token, tokenizer.cls_token, tokenizer.sep_token) == (MASK, BOUNDARY, BOUNDARY)
    for text, token_scores in zip(TEXTS, _score(load_model(f"masked:{bert}"), TEXTS), strict=True):
        ids = tokenizer(text, return_tensors="pt").input_ids[0]
        assert ids[0] == ids[-1] == tokenizer.cls_token_id
        for position in range(1, len(ids) - 1):
            shown = ids.clone()
            shown[position] = tokenizer.mask_token_id
            with torch.no_grad():
                expected = net(shown[None]).logits[0, position].log_softmax(-1)[ids[position]]
            assert token_scores.logprobs[position - 1] == pytest.approx(float(expected), abs=1e-4)


def test_the_folder_of_a_model(gpt: Path) -> None:
    names = {path.name for path in gpt.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "unigrams.tsv", "README.md", "recipe.json"}
    assert not (gpt / ".checkpoint").exists()
    table = load_unigrams(str(gpt / "unigrams.tsv"))
    listed = [line.split("\t")[0] for line in (gpt / "unigrams.tsv").read_text().splitlines()]
    assert BOUNDARY in listed
    assert not {PAD, MASK} & set(listed)
    assert table.logprob("Ġsleep") > table.logprob("Ġquark")
    good, bad = judge(
        ["The cats sleep.", "Sleep cats the."], model=f"causal:{gpt}", reduce=f"slor(unigrams='{gpt}/unigrams.tsv')"
    )
    assert good.score > bad.score


def test_weights_can_be_saved_in_half_precision(gpt: Path, corpus: Path, tmp_path: Path) -> None:
    short = replace(TINY_GPT, epochs=0.2)
    _trained(short, corpus, tmp_path / "whole")
    half = _trained(replace(short, dtype="float16"), corpus, tmp_path / "half")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.55 * sizes[0]
    assert np.isfinite(_score(load_model(f"causal:{half}"), ["The dogs sleep."])[0].logprobs).all()


def _weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


RUN = """
import math, os, signal, torch
from acceptability.train import train, trainer
from acceptability.train.transformer_recipes import BERTRecipe, GPTRecipe
torch.set_num_threads(1)
train_step = trainer._TrainingRun._train_step
def train_step_or_be_killed(run):
    train_step(run)
    if run.step == 5:
        run.last_save = math.inf
    if run.step == 8:
        os.kill(os.getpid(), signal.SIGKILL)
trainer._TrainingRun._train_step = train_step_or_be_killed
train({recipe!r}, [{corpus!r}], {out!r})
"""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [TINY_GPT, TINY_BERT], ids=["gpt", "bert"])
def test_killed_runs_end_with_the_same_weights(recipe: Recipe, corpus: Path, tmp_path: Path) -> None:
    """Killed by SIGKILL in step 8, after a checkpoint in step 4."""
    recipe = replace(recipe, epochs=2.0, save_seconds=1e-9)
    code = RUN.format(recipe=recipe, corpus=str(corpus), out=str(tmp_path / "killed"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == -signal.SIGKILL
    assert json.loads((tmp_path / "killed" / ".checkpoint" / "state.json").read_text())["step"] == 4
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    resumed, whole = (_trained(recipe, corpus, tmp_path / name) for name in ("killed", "whole"))
    assert _weights(resumed) == _weights(whole)


@pytest.mark.slow
def test_two_processes_make_the_same_model(corpus: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    recipe = replace(TINY_GPT, epochs=1.0, dropout=0.0)
    options = [f"--set={name}={getattr(recipe, name)}" for name in (*SMALL, "batch_tokens", "epochs", "dropout")]
    # Not accelerate launch: on CPUs it starts one process only, unless there is MPI.
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29531"]
    rest = ["-m", "acceptability", "train", "gpt", "--corpus", str(corpus), "--out", str(tmp_path / "two"), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launch, *rest], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "two" / "recipe.json").read_text())["facts"]["processes"] == 2
    two = load_file(tmp_path / "two" / "model.safetensors")
    one = load_file(_trained(recipe, corpus, tmp_path / "one") / "model.safetensors")
    # As many steps on half of each batch: this far apart would a process be that did not average gradients.
    halved = replace(recipe, batch_tokens=recipe.batch_tokens // 2, epochs=recipe.epochs / 2)
    half = load_file(_trained(halved, corpus, tmp_path / "half") / "model.safetensors")
    # Gradients of two shards are added in another order, and Muon orthogonalises in bfloat16, which magnifies rounding.
    assert 0 < _distance(one, two) < 0.1 * _distance(one, half)


def _distance(first: dict[str, Any], second: dict[str, Any]) -> float:
    return sum(float((first[name] - second[name]).square().sum()) for name in first) ** 0.5


def test_separate_processes_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ProcessGroup().size == 1
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(TrainError, match="3 processes were started, but accelerate joins 1 of them"):
        _ = ProcessGroup().rank


def test_training_can_start_from_a_finished_model(bert: Path, corpus: Path, tmp_path: Path) -> None:
    more = replace(TINY_BERT, initial_model=str(bert), epochs=0.01, muon_learning_rate=1e-9, adamw_learning_rate=1e-9)
    _trained(more, corpus, tmp_path / "more")
    one, two = (load_model(f"masked:{folder}") for folder in (bert, tmp_path / "more"))
    text = [Query("The cats sleep.")]
    before, after = (model.run(model.encode(text))[0].logprobs for model in (one, two))
    assert after == pytest.approx(before, abs=1e-3)
    metadata = json.loads((tmp_path / "more" / "recipe.json").read_text())["facts"]["initial model"]
    assert (metadata["name"], metadata["recipe"]["epochs"]) == (bert.name, 24.0)
    assert "initial model: name: m" in (tmp_path / "more" / "README.md").read_text()


@pytest.mark.parametrize(("change", "problem"), [({"layers": 1}, "of another shape"), ({"width": 64}, "do not fit")])
def test_a_model_of_another_shape_is_an_error(
    bert: Path, corpus: Path, tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TrainError, match=problem):
        train(replace(TINY_BERT, initial_model=str(bert), **change), [corpus], tmp_path / "m")
    with pytest.raises(TrainError, match=r"there is no tokenizer\.json"):
        train(replace(TINY_BERT, initial_model=str(tmp_path)), [corpus], tmp_path / "n")


def test_the_dev_set_stops_a_run_early(corpus: Path, tmp_path: Path) -> None:
    held = tmp_path / "held.txt"
    held.write_text("Quarks overwhelm jazzy xylophones.\nSphinx of black quartz, judge my vow!\n")
    recipe = replace(TINY_GPT, epochs=200.0, evaluate_every=10, patience=2, dropout=0.0)
    metadata = train(recipe, [corpus], tmp_path / "m", dev=[held])
    assert metadata["facts"]["stopped early"]
    assert metadata["facts"]["steps"] < 500
    assert metadata["results"]["dev"]["perplexity"] > 1


def test_rows_begin_at_sentences_and_all_sentences_begin_rows(corpus: Path) -> None:
    tokenized = tokenize_corpus(train_tokenizer(open_corpus([corpus]), 300), open_corpus([corpus]))
    rows = PackedRows(tokenized.ids, tokenized.boundary_id, 16, seed=1)
    assert len(rows) == len(LINES) * 40
    drawn = rows.take_rows(0, len(rows))
    assert (drawn[:, 0] == tokenized.boundary_id).all()
    assert (drawn[:, 1:] == tokenized.boundary_id).any()
    ring = np.concatenate([tokenized.ids, tokenized.ids[:16]]).astype(np.int64)
    starts = np.flatnonzero(tokenized.ids == tokenized.boundary_id)
    expected = Counter(ring[start : start + 16].tobytes() for start in starts)
    assert Counter(row.numpy().tobytes() for row in drawn) == expected
    assert torch.equal(rows.take_rows(100, 50), rows.take_rows(90, 70)[10:60])
    over = rows.take_rows(len(rows) - 5, 10)
    assert torch.equal(over[:5], drawn[-5:])
    assert not torch.equal(rows.take_rows(len(rows), len(rows)), drawn)
    other = PackedRows(tokenized.ids, tokenized.boundary_id, 16, seed=2)
    assert not torch.equal(other.take_rows(0, 50), drawn[:50])


def test_the_tokenizer_spells_every_text_and_counts_its_tokens(corpus: Path) -> None:
    text = open_corpus([corpus])
    tokenizer = train_tokenizer(text, 300)
    tokenized = tokenize_corpus(tokenizer, text)
    assert tokenizer.decode(tokenizer.encode("Ünseen ✓ cat").ids) == " Ünseen ✓ cat"
    assert tokenized.count_tokens()[BOUNDARY] == len(LINES) * 40
    assert sum(tokenized.count_tokens().values()) == len(tokenized.ids)
    assert tokenized.ids.dtype == np.uint16
    assert tokenizer.decode(tokenized.ids[: 1 + len(tokenizer.encode(LINES[0]).ids)].tolist()).strip() == LINES[0]


@pytest.mark.parametrize(("progress", "rate"), [(0.0, 0.4), (0.5, 0.275), (1.0, 0.15)])
def test_the_masking_rate_is_the_given_one(progress: float, rate: float) -> None:
    rows = torch.randint(3, 300, (64, 64), generator=torch.Generator().manual_seed(1))
    rows[:, ::20] = 0
    masker = TokenMasker(mask_id=2, boundary_id=0, begin_rate=0.4, end_rate=0.15, seed=1)
    rates = []
    for step in range(60):
        masked = masker.mask_rows(rows, step, progress)
        is_hidden = masked.input_ids != rows
        rates.append(float(is_hidden.float().mean()))
        assert (masked.input_ids[is_hidden] == 2).all()
        assert not is_hidden[rows == 0].any()
        has_target = masked.targets != IGNORE_INDEX
        assert has_target.sum() == is_hidden.sum()
        assert torch.equal(masked.targets[has_target], rows.gather(1, masked.positions)[has_target])
        assert is_hidden.gather(1, masked.positions)[has_target].all()
    assert np.mean(rates) == pytest.approx(rate, abs=0.005)
    again = masker.mask_rows(rows, 3, progress)
    assert torch.equal(again.input_ids, masker.mask_rows(rows, 3, progress).input_ids)
    assert not torch.equal(again.input_ids, masker.mask_rows(rows, 4, progress).input_ids)


def test_all_positions_are_masked_equally_often() -> None:
    rows = torch.full((256, 32), 5)
    masker = TokenMasker(mask_id=2, boundary_id=0, begin_rate=0.25, end_rate=0.25, seed=1)
    hits = sum((masker.mask_rows(rows, step, 0.0).input_ids == 2).float().mean(0) for step in range(40)) / 40
    assert hits.numpy() == pytest.approx(np.full(32, 0.25), abs=0.03)


def test_boundaries_are_never_masked() -> None:
    rows = torch.zeros(2, 8, dtype=torch.long)
    rows[1, 3] = 7
    masked = TokenMasker(mask_id=2, boundary_id=0, begin_rate=0.5, end_rate=0.5, seed=1).mask_rows(rows, 0, 0.0)
    assert (masked.input_ids[0] == 0).all()
    assert (masked.targets != IGNORE_INDEX).sum() == 1


@pytest.mark.parametrize(
    "recipe", [replace(TINY_GPT, weight_decay=0.5), replace(TINY_BERT, weight_decay=0.5)], ids=["gpt", "bert"]
)
def test_muon_steps_all_matrices_at_one_scale_and_adamw_the_rest(recipe: TransformerRecipe, corpus: Path) -> None:
    text = open_corpus([corpus])
    net = build_objective(recipe, tokenize_corpus(train_tokenizer(text, 300), text)).net
    muon, adamw = build_optimisers(recipe, net, torch.device("cpu"))
    assert isinstance(muon, torch.optim.Muon)
    assert isinstance(adamw, torch.optim.AdamW)
    matrices, others = (optimiser.param_groups[0]["params"] for optimiser in (muon, adamw))
    parameters = {id(parameter): name for name, parameter in net.named_parameters()}
    assert sorted(map(id, [*matrices, *others])) == sorted(parameters)
    assert {parameters[id(matrix)].rpartition(".")[2] for matrix in matrices} == {"weight"}
    assert all("norm" in parameters[id(other)] or "emb" in parameters[id(other)] for other in others)
    generator = torch.Generator().manual_seed(1)
    before = [matrix.detach().clone() for matrix in matrices]
    for matrix in matrices:
        matrix.grad = torch.randn(matrix.shape, generator=generator)
    muon.step()
    rate = recipe.muon_learning_rate
    for matrix, old in zip(matrices, before, strict=True):
        # The singular values of a step are about 1 before its scaling by √max(1, rows / columns).
        step = old * (1 - rate * recipe.weight_decay) - matrix.detach()
        assert step.norm() == pytest.approx(rate * matrix.shape[0] ** 0.5, rel=0.25)
        values = torch.linalg.svdvals(step) / (rate * max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5)
        assert values.max() < 1.3
        assert values.quantile(0.1) > 0.6


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["width=30", "heads=4"], "width is 30; expected an even multiple of heads"),
        (["vocabulary=100"], "vocabulary is 100; expected at least 259, for all bytes"),
        (
            ["batch_tokens=100"],
            "batch_tokens is 100; expected a multiple of sequence_length times gradient_accumulation_steps",
        ),
        (["epochs=0"], "epochs is 0.0; expected a number above 0"),
        (["dropout=1.0"], "dropout is 1.0; expected a share from 0 to below 1"),
        (["dtype=int8"], "dtype is 'int8'; expected one of float32, float16, bfloat16"),
        (["compile=perhaps"], "compile is 'perhaps'; expected one of auto, yes, no"),
        (["max_positions=8"], "max_positions is 8; expected at least the tokens of a row"),
        (["layers=0"], "layers is 0; expected a whole number above 0"),
        (["muon_learning_rate=0"], "muon_learning_rate is 0.0; expected a number above 0"),
        (["mask_rate_end=0.001"], "mask_rate_end is 0.001; expected a share that leaves and hides a token"),
    ],
)
def test_wrong_options_are_named(options: list[str], problem: str) -> None:
    with pytest.raises(TrainError, match=problem):
        read_options(registry.find("recipe", "bert"), options)


def test_a_corpus_with_a_special_token_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("The cat sleeps.\nA <mask> sleeps.\n")
    with pytest.raises(CorpusError, match="the corpus has <mask> in 'A <mask> sleeps.'; it is a special token"):
        train(TINY_GPT, [path], tmp_path / "m")


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n\n")
    with pytest.raises(CorpusError, match="is empty"):
        train(TINY_BERT, [path], tmp_path / "m")
