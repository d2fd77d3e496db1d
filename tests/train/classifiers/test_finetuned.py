"""Transformers with a new head: what they pool, what is saved, that a seed decides, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from acceptability import Query, Sentence, Suite, load_model  # noqa: E402
from acceptability.cli import app  # noqa: E402
from acceptability.errors import ModelError, SpellingError, TrainError  # noqa: E402
from acceptability.train.classifiers import teach  # noqa: E402
from acceptability.train.classifiers.finetuned import Finetuned, sampled  # noqa: E402
from acceptability.train.classifiers.finetuned_rows import dealt  # noqa: E402
from acceptability.train.classifiers.finetuned_start import begun, located  # noqa: E402
from acceptability.train.classifiers.finetuned_states import OWN, pooled  # noqa: E402

NOUNS = ("cat", "dog", "cats", "dogs", "sentences", "linguist", "rain")
VERBS = ("sleep", "chased", "is reading", "rain", "think", "slept since noon")
QUICK = Finetuned(rate=3e-3, epochs=2, batch=8, dropout=0.0, looks=2, device="cpu")


def sentences() -> Suite:
    """Sentences that are acceptable where a determiner comes first."""
    pairs = [(noun, verb) for noun in NOUNS for verb in VERBS]
    made = [(f"the {noun} {verb}.", 1) for noun, verb in pairs] + [(f"{noun} the {verb}.", 0) for noun, verb in pairs]
    return Suite("made", tuple(Sentence(f"made-{n}", text, label) for n, (text, label) in enumerate(made)))


def saved(config: object, head: type, tokenizer: Path, folder: Path) -> Path:
    """Save a network that has learnt nothing with another one's tokenizer."""
    from transformers import AutoTokenizer

    torch.manual_seed(6)
    head(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tokenizer).save_pretrained(folder)
    return folder


SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


@pytest.fixture(scope="module")
def starts(masked_dir: Path, causal_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One language model of each architecture."""
    from transformers import LlamaConfig, LlamaForCausalLM, ModernBertConfig, ModernBertForMaskedLM

    own = {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}
    modern = ModernBertConfig(vocab_size=200, **SHAPE, **own)
    llama = LlamaConfig(
        vocab_size=400, num_key_value_heads=2, pad_token_id=None, bos_token_id=0, eos_token_id=0, **SHAPE
    )
    folder = tmp_path_factory.mktemp("starts")
    return {
        "bert": masked_dir,
        "modernbert": saved(modern, ModernBertForMaskedLM, masked_dir, folder / "modernbert"),
        "gpt2": causal_dir,
        "llama": saved(llama, LlamaForCausalLM, causal_dir, folder / "llama"),
    }


@pytest.fixture(scope="module")
def taught(starts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict]]:
    """A classifier of each architecture, and what is told of it."""
    out = tmp_path_factory.mktemp("taught")
    return {
        name: (out / name, teach(replace(QUICK, model=str(place), epochs=6), [sentences()], out / name))
        for name, place in starts.items()
    }


POOLED = {"bert": "first", "modernbert": "first", "gpt2": "last", "llama": "last"}


@pytest.mark.parametrize("name", POOLED)
def test_transformers_opens_what_was_taught_and_the_labels_have_names(name: str, taught) -> None:
    from transformers import AutoModelForSequenceClassification

    folder, told = taught[name]
    net, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert (set(info["missing_keys"]), set(info["unexpected_keys"])) == (set(), set())
    assert net.config.id2label == {0: "unacceptable", 1: "acceptable"}
    assert told["facts"]["pooling"] == POOLED[name]
    assert (
        told["facts"]["parameters"]
        == told["facts"]["parameters that learnt"]
        == sum(each.numel() for each in net.parameters())
    )
    assert told["results"]["held out"]["mcc"] == pytest.approx(max(told["facts"]["mcc at each look"]), abs=1e-4)
    assert told["results"]["held out"]["mcc"] > 0.7, "so simple a rule is learnt"


@pytest.mark.parametrize("name", POOLED)
def test_padding_changes_no_score(name: str, taught) -> None:
    model = load_model(f"classifier:{taught[name][0]}(device='cpu')")
    texts = ["the cat sleep.", "the", "linguist the slept since noon and the dogs think that it is reading again."]
    together = model.run(model.encode([Query(text) for text in texts]))
    for text, each in zip(texts, together, strict=True):
        (alone,) = model.run(model.encode([Query(text)]))
        assert each.logits == pytest.approx(alone.logits, abs=1e-5)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["modernbert", "gpt2"])
def test_a_seed_decides_on_every_bit_and_disturbs_no_other_randomness(name: str, starts, tmp_path: Path) -> None:
    recipe = replace(QUICK, model=str(starts[name]), epochs=1, dropout=0.1)
    before = torch.random.get_rng_state()
    for out, each in (("a", recipe), ("b", recipe), ("c", replace(recipe, seed=2))):
        teach(each, [sentences()], tmp_path / out)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", POOLED)
def test_a_probe_leaves_the_body_as_it_was(name: str, starts, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    recipe = replace(QUICK, model=str(starts[name]), frozen=True, rate=1e-2)
    told = teach(recipe, [sentences()], tmp_path / "probe")
    after, before = load_file(tmp_path / "probe" / "model.safetensors"), begun(recipe)
    changed = {key for key, each in before.net.state_dict().items() if not torch.equal(each, after[key])}
    assert changed == before.new
    assert told["facts"]["parameters that learnt"] < told["facts"]["parameters"] / 5
    # Taught on states that were computed once, and measured through the whole network.
    assert told["results"]["held out"]["mcc"] == pytest.approx(max(told["facts"]["mcc at each look"]), abs=1e-4)


def test_the_head_pools_what_is_asked_or_says_what_it_can_do(starts, tmp_path: Path) -> None:
    told = teach(
        replace(QUICK, model=str(starts["modernbert"]), pooling="mean", epochs=1), [sentences()], tmp_path / "m"
    )
    assert told["facts"]["pooling"] == "mean"
    assert json.loads((tmp_path / "m" / "config.json").read_text())["classifier_pooling"] == "mean"
    for name, pooling, can in (
        ("modernbert", "last", "first or mean"),
        ("bert", "mean", "first"),
        ("gpt2", "first", "last"),
    ):
        with pytest.raises(TrainError, match=rf"pooling is '{pooling}', and \w+ of transformers .* can do: {can}\."):
            teach(replace(QUICK, model=str(starts[name]), pooling=pooling), [sentences()], tmp_path / "no")


def _small(name: str) -> object:
    """Return the description of a small network of some architecture."""
    import transformers

    own = {
        "Albert": {"embedding_size": 16},
        "Electra": {"embedding_size": 16},
        "Mistral": {"num_key_value_heads": 2},
        "OPT": {"word_embed_proj_dim": 32, "ffn_dim": 64},
    }
    if name == "XLNet":
        return transformers.XLNetConfig(d_model=32, n_layer=2, n_head=2, d_inner=64, vocab_size=100, pad_token_id=1)
    return getattr(transformers, f"{name}Config")(vocab_size=100, pad_token_id=1, **SHAPE, **own.get(name, {}))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Roberta", "first"),
        ("Albert", "first"),
        ("Electra", "first"),
        ("MPNet", "first"),
        ("Bert", "first"),
        ("Mistral", "last"),
        ("OPT", "last"),
        ("GPTNeoX", "last"),
        ("XLNet", OWN),
    ],
)
def test_what_an_architecture_pools_is_seen(name: str, expected: str) -> None:
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(1)
    net = AutoModelForSequenceClassification.from_config(_small(name))
    assert pooled(net, [5, 6, 7, 8, 9], filler=1) == expected


def test_a_sentence_that_is_too_long_is_named_or_cut_and_counted(starts, tmp_path: Path) -> None:
    long = Sentence("made-long", "the cat " + "and the dog " * 40 + "sleep.", 1)
    suite = replace(sentences(), sentences=(*sentences().sentences, long))
    recipe = replace(QUICK, model=str(starts["bert"]), epochs=1)
    with pytest.raises(
        TrainError, match=r"made-long: 'the cat and .* has 206 tokens, and 64 are read at most \(1 sent"
    ):
        teach(recipe, [suite], tmp_path / "no")
    told = teach(replace(recipe, cut=True), [suite], tmp_path / "cut")
    assert told["facts"]["sentences cut"] == 1
    assert told["facts"]["tokens of the longest sentence"] == 64
    with pytest.raises(TrainError, match="tokens, and 5 are read at most"):
        teach(replace(recipe, longest=5), [sentences()], tmp_path / "short")


def test_a_causal_model_is_fed_the_start_token_that_it_knows(starts, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    plain, framed = (begun(replace(QUICK, model=model)) for model in (str(starts["gpt2"]), f"causal:{starts['gpt2']}"))
    own = plain.tokenizer("the cat.")["input_ids"]
    assert own[0] != 0
    assert framed.tokenizer("the cat.")["input_ids"] == [0, *own]
    out = tmp_path / "framed"
    teach(replace(QUICK, model=f"causal:{starts['gpt2']}", epochs=1), [sentences()], out)
    assert AutoTokenizer.from_pretrained(out)("the cat.")["input_ids"] == [0, *own]
    again = begun(replace(QUICK, model=f"causal:{out}")).tokenizer("the cat.")["input_ids"]
    assert again == [0, *own], "what is there already is not put there twice"
    with pytest.raises(ModelError, match="no token '<none>' to frame a text with"):
        begun(replace(QUICK, model=f"causal:{starts['gpt2']}(bos='<none>')"))


def test_an_end_that_looks_like_padding_is_refused(starts, tmp_path: Path) -> None:
    recipe = replace(QUICK, model=f"causal:{starts['gpt2']}(eos=True)")
    with pytest.raises(TrainError, match=r"made-\d+ ends with the token for padding \(0\)"):
        teach(recipe, [sentences()], tmp_path / "no")


def test_patience_ends_the_training_and_the_best_weights_are_kept(starts, tmp_path: Path) -> None:
    recipe = replace(QUICK, model=str(starts["bert"]), rate=1e-9, epochs=9, looks=2, patience=3)
    told = teach(recipe, [sentences()], tmp_path / "patient")
    assert len(told["facts"]["mcc at each look"]) == 4
    assert told["facts"]["steps to the best look"] == 5


def test_weights_are_saved_in_half_precision_where_that_is_asked(starts, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    told = teach(replace(QUICK, model=str(starts["gpt2"]), dtype="float16"), [sentences()], tmp_path / "half")
    assert {each.dtype for each in load_file(tmp_path / "half" / "model.safetensors").values()} == {torch.float16}
    assert told["results"]["held out"]["mcc"] > 0.7


def test_what_cannot_be_taught_is_refused(starts, bart_dir: Path, tmp_path: Path) -> None:
    for model, problem in (
        ("", "which model is to be taught"),
        ("trigram", "is no transformer"),
        (str(bart_dir), "has an encoder and a decoder"),
    ):
        with pytest.raises(TrainError, match=problem):
            teach(replace(QUICK, model=model), [sentences()], tmp_path / "no")
    with pytest.raises(ModelError, match="no such folder"):
        teach(replace(QUICK, model="/nowhere/at/all"), [sentences()], tmp_path / "no")
    with pytest.raises(SpellingError, match="preset has no meaning here"):
        located("causal:gpt2(preset='minicons')")
    with pytest.raises(TrainError, match="the device 'tpu9' cannot be used here"):
        teach(replace(QUICK, model=str(starts["bert"]), device="tpu9"), [sentences()], tmp_path / "no")


@pytest.mark.parametrize(
    "option", [{"pooling": "max"}, {"rate": 0.0}, {"epochs": 0}, {"dropout": 1.0}, {"dtype": "int8"}, {"patience": -1}]
)
def test_options_are_checked(option: dict[str, object]) -> None:
    with pytest.raises(TrainError, match=rf"{next(iter(option))} is .*; expected"):
        Finetuned(**option)


def test_a_random_search_stays_in_its_ranges() -> None:
    drawn = [sampled(seed, Finetuned(model="x", pooling="mean")) for seed in range(200)]
    assert {each.batch for each in drawn} == {16, 32}
    assert {each.epochs for each in drawn} == {2, 3, 4, 5, 6}
    assert {each.dropout for each in drawn} == {0.0, 0.1}
    assert all(1e-5 <= each.rate <= 5e-4 and each.pooling == "mean" for each in drawn)
    assert 0.4 < np.mean([each.rate < 7.07e-5 for each in drawn]) < 0.6, "even in its logarithm"
    assert sampled(7, drawn[0]) == sampled(7, drawn[1])


def test_an_epoch_has_every_sentence_once_and_like_lengths_together() -> None:
    lengths = np.random.default_rng(1).integers(3, 40, 1000).tolist()
    batches = dealt(lengths, 16, np.random.default_rng(2))
    assert sorted(place for each in batches for place in each) == list(range(1000))
    assert np.mean([np.ptp([lengths[place] for place in each]) for each in batches]) < 8
    assert batches != dealt(lengths, 16, np.random.default_rng(3))


def test_the_command_teaches_from_a_table(starts, tmp_path: Path) -> None:
    table = tmp_path / "labelled.tsv"
    rows = [f"{each.id}\t{each.text}\t{each.label}" for each in sentences().sentences]
    table.write_text("\n".join(["id\ttext\tlabel", *rows]) + "\n")
    options = ["--set", f"model={starts['modernbert']}", "--set", "epochs=1", "--set", "frozen=yes", "--json"]
    done = CliRunner().invoke(
        app, ["train", "transformer", "--data", str(table), "--out", str(tmp_path / "out"), *options]
    )
    told = json.loads(done.stdout)
    assert (told["kind"], told["recipe"]["frozen"]) == ("transformer", True)
    assert "classifier:FOLDER" in (tmp_path / "out" / "README.md").read_text()
