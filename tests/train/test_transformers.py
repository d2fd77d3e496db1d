"""Transformers from text: what is learnt, how rows and masks are drawn, what is saved, how killed runs end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acceptability import judge, load_model, registry
from acceptability.errors import CorpusError, TrainError
from acceptability.train import Recipe, train
from acceptability.train.corpus import open_corpus
from acceptability.train.options import read_options
from acceptability.train.transformers import BERT, GPT
from acceptability.types import Query
from acceptability.unigrams import load_unigrams

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from acceptability.train.hiding import IGNORED, Hiding  # noqa: E402
from acceptability.train.muon import Muon, orthogonal  # noqa: E402
from acceptability.train.packing import Rows  # noqa: E402
from acceptability.train.subwords import EDGE, MASK, PAD, encode, learn_subwords  # noqa: E402
from acceptability.train.team import Team  # noqa: E402

LINES = [
    *("The cat sleeps.", "The cats sleep.", "The dog sleeps.", "The dogs sleep.", "A cat chases the unhappy dogs."),
    *("The dogs chase a cat.", "Who did the dog chase?", "The cats chase the dog, and it sleeps.", "No dog sleeps."),
]
SMALL = {"layers": 2, "width": 32, "heads": 2, "feed_forward": 64, "vocabulary": 300, "row": 16, "compile": "no"}
TINY_GPT = GPT(**SMALL, batch_tokens=256, epochs=12.0, dropout=0.1, evaluate_every=20)
TINY_BERT = BERT(**SMALL, batch_tokens=256, epochs=24.0, evaluate_every=20)


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


def test_a_small_corpus_is_learnt(gpt: Path, bert: Path) -> None:
    pairs = [("The cats sleep.", "The cats sleeps."), ("No dog sleeps.", "No dog sleep."), (LINES[6], "Who did dog?")]
    for model in (f"causal:{gpt}", f"masked:{bert}(variant='word_l2r')"):
        opened = load_model(model)
        for better, worse in pairs:
            good, bad = (said.logprobs.sum() for said in _said(opened, [better, worse]))
            assert good > bad + 1, f"{model}: {better}"


def _said(model: Any, texts: list[str]) -> list[Any]:
    return model.run(model.encode([Query(text) for text in texts]))


TEXTS = ["The dogs sleep.", "Unseen words chase the übermäßig cat!", "A"]


def test_transformers_opens_a_gpt_and_scores_it_alike(gpt: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    net, tokenizer = AutoModelForCausalLM.from_pretrained(gpt).eval(), AutoTokenizer.from_pretrained(gpt)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == (EDGE, EDGE, PAD)
    for text, said in zip(TEXTS, _said(load_model(f"causal:{gpt}"), TEXTS), strict=True):
        ids = tokenizer(text, return_tensors="pt").input_ids
        assert ids[0, 0] == tokenizer.bos_token_id
        with torch.no_grad():
            logprobs = net(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        assert said.logprobs == pytest.approx(logprobs.numpy(), abs=1e-4)
        assert said.tokens == tuple(tokenizer.convert_ids_to_tokens(ids[0, 1:]))


def test_transformers_opens_a_bert_and_scores_it_alike(bert: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    net, tokenizer = AutoModelForMaskedLM.from_pretrained(bert).eval(), AutoTokenizer.from_pretrained(bert)
    assert (tokenizer.mask_token, tokenizer.cls_token, tokenizer.sep_token) == (MASK, EDGE, EDGE)
    for text, said in zip(TEXTS, _said(load_model(f"masked:{bert}"), TEXTS), strict=True):
        ids = tokenizer(text, return_tensors="pt").input_ids[0]
        assert ids[0] == ids[-1] == tokenizer.cls_token_id
        for place in range(1, len(ids) - 1):
            shown = ids.clone()
            shown[place] = tokenizer.mask_token_id
            with torch.no_grad():
                expected = net(shown[None]).logits[0, place].log_softmax(-1)[ids[place]]
            assert said.logprobs[place - 1] == pytest.approx(float(expected), abs=1e-4)


def test_the_folder_of_a_model(gpt: Path) -> None:
    names = {path.name for path in gpt.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "unigrams.tsv", "README.md", "recipe.json"}
    assert not (gpt / ".checkpoint").exists()
    table = load_unigrams(str(gpt / "unigrams.tsv"))
    listed = [line.split("\t")[0] for line in (gpt / "unigrams.tsv").read_text().splitlines()]
    assert EDGE in listed
    assert not {PAD, MASK} & set(listed)
    assert table.logprob("Ġsleep") > table.logprob("Ġquark")
    good, bad = judge(["The cats sleep.", "Sleep cats the."], f"causal:{gpt}", f"slor(unigrams='{gpt}/unigrams.tsv')")
    assert good.score > bad.score


def test_weights_can_be_saved_in_half(gpt: Path, corpus: Path, tmp_path: Path) -> None:
    short = replace(TINY_GPT, epochs=0.2)
    _trained(short, corpus, tmp_path / "whole")
    half = _trained(replace(short, dtype="float16"), corpus, tmp_path / "half")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.55 * sizes[0]
    assert np.isfinite(_said(load_model(f"causal:{half}"), ["The dogs sleep."])[0].logprobs).all()


def _weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


RUN = """
import sys, time, torch
from acceptability.train import loop, train
from acceptability.train.transformers import BERT, GPT
torch.set_num_threads(1)
plain = loop._Run._one_step
def slow(run):
    time.sleep(0.1)
    plain(run)
loop._Run._one_step = slow
train({recipe!r}, [{corpus!r}], {out!r})
"""


@pytest.mark.slow
def test_killed_runs_end_with_the_same_weights(corpus: Path, tmp_path: Path) -> None:
    recipes = [replace(each, epochs=6.0, save_seconds=0.3) for each in (TINY_GPT, TINY_BERT)]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    begun = []
    for recipe in recipes:
        code = RUN.format(recipe=recipe, corpus=str(corpus), out=str(tmp_path / recipe.kind))
        begun.append(subprocess.Popen([sys.executable, "-c", code], env=known))
    for process, recipe in zip(begun, recipes, strict=True):
        out = tmp_path / recipe.kind
        while not any((out / ".checkpoint").glob("training-*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (out / "model.safetensors").exists()
        _trained(recipe, corpus, out)
        straight = _trained(recipe, corpus, tmp_path / f"{recipe.kind}-straight")
        assert _weights(out) == _weights(straight)


@pytest.mark.slow
def test_two_processes_make_the_same_model(corpus: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    recipe = replace(TINY_GPT, epochs=1.0, dropout=0.0)
    options = [f"--set={name}={getattr(recipe, name)}" for name in (*SMALL, "batch_tokens", "epochs", "dropout")]
    # Not accelerate launch: on CPUs it starts one process only, unless there is MPI.
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--master_port=29531"]
    rest = ["-m", "acceptability", "train", "gpt", "--corpus", str(corpus), "--out", str(tmp_path / "two"), *options]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launch, *rest], env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "two" / "recipe.json").read_text())["facts"]["processes"] == 2
    one = load_file(_trained(recipe, corpus, tmp_path / "one") / "model.safetensors")
    two = load_file(tmp_path / "two" / "model.safetensors")
    apart = max(float((two[name] - one[name]).abs().max()) for name in one)
    assert 0 < apart < 1e-3  # gradients of two halves are added up in another order


def test_processes_that_do_not_join_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Team().size == 1
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(TrainError, match="3 processes were started, but accelerate joins 1 of them"):
        _ = Team().rank


def test_a_training_can_begin_with_a_finished_model(bert: Path, corpus: Path, tmp_path: Path) -> None:
    more = replace(TINY_BERT, start=str(bert), epochs=0.01, matrix_rate=1e-9, other_rate=1e-9)
    _trained(more, corpus, tmp_path / "more")
    one, two = (load_model(f"masked:{folder}") for folder in (bert, tmp_path / "more"))
    text = [Query("The cats sleep.")]
    before, after = (model.run(model.encode(text))[0].logprobs for model in (one, two))
    assert after == pytest.approx(before, abs=1e-3)
    told = json.loads((tmp_path / "more" / "recipe.json").read_text())["facts"]["began with"]
    assert (told["name"], told["recipe"]["epochs"]) == (bert.name, 24.0)
    assert "began with: name: m" in (tmp_path / "more" / "README.md").read_text()


@pytest.mark.parametrize(("change", "problem"), [({"layers": 1}, "of another shape"), ({"width": 64}, "do not fit")])
def test_a_model_of_another_shape_is_no_beginning(
    bert: Path, corpus: Path, tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    with pytest.raises(TrainError, match=problem):
        train(replace(TINY_BERT, start=str(bert), **change), [corpus], tmp_path / "m")
    with pytest.raises(TrainError, match=r"there is no tokenizer\.json"):
        train(replace(TINY_BERT, start=str(tmp_path)), [corpus], tmp_path / "n")


def test_the_dev_set_ends_a_run(corpus: Path, tmp_path: Path) -> None:
    held = tmp_path / "held.txt"
    held.write_text("Quarks overwhelm jazzy xylophones.\nSphinx of black quartz, judge my vow!\n")
    recipe = replace(TINY_GPT, epochs=200.0, evaluate_every=10, patience=2, dropout=0.0)
    told = train(recipe, [corpus], tmp_path / "m", dev=[held])
    assert told["facts"]["stopped early"]
    assert told["facts"]["steps"] < 500
    assert told["results"]["dev"]["perplexity"] > 1


def test_rows_begin_at_sentences_and_all_sentences_begin_rows(corpus: Path) -> None:
    pieces = encode(learn_subwords(open_corpus([corpus]), 300), open_corpus([corpus]))
    rows = Rows(pieces.ids, pieces.edge, 16, seed=1)
    assert len(rows) == len(LINES) * 40
    drawn = rows.at(0, len(rows))
    assert (drawn[:, 0] == pieces.edge).all()
    assert (drawn[:, 1:] == pieces.edge).any()
    ring = np.concatenate([pieces.ids, pieces.ids[:16]]).astype(np.int64)
    starts = np.flatnonzero(pieces.ids == pieces.edge)
    expected = Counter(ring[start : start + 16].tobytes() for start in starts)
    assert Counter(row.numpy().tobytes() for row in drawn) == expected
    assert torch.equal(rows.at(100, 50), rows.at(90, 70)[10:60])
    over = rows.at(len(rows) - 5, 10)
    assert torch.equal(over[:5], drawn[-5:])
    assert not torch.equal(rows.at(len(rows), len(rows)), drawn)
    other = Rows(pieces.ids, pieces.edge, 16, seed=2)
    assert not torch.equal(other.at(0, 50), drawn[:50])


def test_subwords_spell_every_text_and_count_their_units(corpus: Path) -> None:
    text = open_corpus([corpus])
    tokenizer = learn_subwords(text, 300)
    pieces = encode(tokenizer, text)
    assert tokenizer.decode(tokenizer.encode("Ünseen ✓ cat").ids) == " Ünseen ✓ cat"
    assert pieces.counts()[EDGE] == len(LINES) * 40
    assert sum(pieces.counts().values()) == len(pieces.ids)
    assert pieces.ids.dtype == np.uint16
    assert tokenizer.decode(pieces.ids[: 1 + len(tokenizer.encode(LINES[0]).ids)].tolist()).strip() == LINES[0]


@pytest.mark.parametrize(("progress", "rate"), [(0.0, 0.4), (0.5, 0.275), (1.0, 0.15)])
def test_as_much_is_hidden_as_is_said(progress: float, rate: float) -> None:
    rows = torch.randint(3, 300, (64, 64), generator=torch.Generator().manual_seed(1))
    rows[:, ::20] = 0
    hiding = Hiding(mask=2, edge=0, begin=0.4, end=0.15, seed=1)
    found = []
    for step in range(60):
        hidden = hiding.hidden(rows, step, progress)
        is_hidden = hidden.shown != rows
        found.append(float(is_hidden.float().mean()))
        assert (hidden.shown[is_hidden] == 2).all()
        assert not is_hidden[rows == 0].any()
        wanted = hidden.targets != IGNORED
        assert wanted.sum() == is_hidden.sum()
        assert torch.equal(hidden.targets[wanted], rows.gather(1, hidden.places)[wanted])
        assert is_hidden.gather(1, hidden.places)[wanted].all()
    assert np.mean(found) == pytest.approx(rate, abs=0.005)
    again = hiding.hidden(rows, 3, progress)
    assert torch.equal(again.shown, hiding.hidden(rows, 3, progress).shown)
    assert not torch.equal(again.shown, hiding.hidden(rows, 4, progress).shown)


def test_every_place_is_hidden_equally_often() -> None:
    rows = torch.full((256, 32), 5)
    hiding = Hiding(mask=2, edge=0, begin=0.25, end=0.25, seed=1)
    hits = sum((hiding.hidden(rows, step, 0.0).shown == 2).float().mean(0) for step in range(40)) / 40
    assert hits.numpy() == pytest.approx(np.full(32, 0.25), abs=0.03)


def test_a_row_of_edges_hides_nothing() -> None:
    rows = torch.zeros(2, 8, dtype=torch.long)
    rows[1, 3] = 7
    hidden = Hiding(mask=2, edge=0, begin=0.5, end=0.5, seed=1).hidden(rows, 0, 0.0)
    assert (hidden.shown[0] == 0).all()
    assert (hidden.targets != IGNORED).sum() == 1


@pytest.mark.parametrize("shape", [(20, 50), (50, 20), (30, 30)])
def test_muon_makes_matrices_orthogonal(shape: tuple[int, int]) -> None:
    matrices = torch.randn(3, *shape, generator=torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(orthogonal(matrices))
    assert values.max() < 1.3
    assert values.quantile(0.1) > 0.6
    plain = torch.stack([orthogonal(each[None])[0] for each in matrices])
    torch.testing.assert_close(orthogonal(matrices), plain)


def test_muon_treats_matrices_that_stand_together_apart() -> None:
    generator = torch.Generator().manual_seed(1)
    parts = [torch.randn(8, 12, generator=generator) for _ in range(3)]
    joined, single = torch.nn.Parameter(torch.zeros(24, 12)), [torch.nn.Parameter(torch.zeros(8, 12)) for _ in parts]
    joined.grad = torch.cat(parts)
    for each, part in zip(single, parts, strict=True):
        each.grad = part
    Muon([(joined, 3)], 0.1).step()
    Muon([(each, 1) for each in single], 0.1).step()
    torch.testing.assert_close(joined.detach(), torch.cat([each.detach() for each in single]))
    assert joined.detach().norm() == pytest.approx(0.1 * 24**0.5, rel=0.25)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["width=30", "heads=4"], "width is 30; expected an even multiple of heads"),
        (["vocabulary=100"], "vocabulary is 100; expected at least 259, for all bytes"),
        (["batch_tokens=100"], "batch_tokens is 100; expected a multiple of row times parts"),
        (["epochs=0"], "epochs is 0.0; expected a number above 0"),
        (["dropout=1.0"], "dropout is 1.0; expected a share from 0 to below 1"),
        (["dtype=int8"], "dtype is 'int8'; expected one of float32, float16, bfloat16"),
        (["compile=perhaps"], "compile is 'perhaps'; expected one of auto, yes, no"),
        (["positions=8"], "positions is 8; expected at least the tokens of a row"),
        (["layers=0"], "layers is 0; expected a whole number above 0"),
        (["matrix_rate=0"], "matrix_rate is 0.0; expected a number above 0"),
        (["mask_end=0.001"], "mask_end is 0.001; expected a share that leaves and hides a token"),
    ],
)
def test_wrong_options_are_named(options: list[str], problem: str) -> None:
    with pytest.raises(TrainError, match=problem):
        read_options(registry.find("recipe", "bert"), options)


def test_a_corpus_with_a_mark_of_ours_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("The cat sleeps.\nA <mask> sleeps.\n")
    with pytest.raises(CorpusError, match="the corpus has <mask> in 'A <mask> sleeps.'; it is a mark of the model"):
        train(TINY_GPT, [path], tmp_path / "m")


def test_an_empty_corpus_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("\n\n")
    with pytest.raises(CorpusError, match="is empty"):
        train(TINY_BERT, [path], tmp_path / "m")
