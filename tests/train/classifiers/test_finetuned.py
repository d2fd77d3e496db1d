"""Fine-tuned transformers: pooling, saved files, reproducibility, resumption, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from acceptability import Query, Sentence, Suite, load_model
from acceptability.cli import app
from acceptability.errors import ModelError, SpecError, TrainError
from acceptability.train.classifiers import finetuning_task, train_classifier
from acceptability.train.classifiers.finetuning import FineTuningRecipe, sample_hyperparameters
from acceptability.train.classifiers.finetuning_task import (
    OTHER_POOLING,
    detect_pooling,
    load_pretrained,
    locate_pretrained,
)
from acceptability.train.classifiers.recipe import make_bucketed_batches
from acceptability.train.recipe import TrainingProgress
from acceptability.train.trainer import TrainingSchedule

NOUNS = ("cat", "dog", "cats", "dogs", "sentences", "linguist", "rain")
VERBS = ("sleep", "chased", "is reading", "rain", "think", "slept since noon")
QUICK = FineTuningRecipe(learning_rate=3e-3, epochs=2, batch_size=8, dropout=0.0, evaluations_per_epoch=2, device="cpu")


def sentences() -> Suite:
    """Sentences that are acceptable where a determiner comes first."""
    pairs = [(noun, verb) for noun in NOUNS for verb in VERBS]
    made = [(f"the {noun} {verb}.", 1) for noun, verb in pairs] + [(f"{noun} the {verb}.", 0) for noun, verb in pairs]
    return Suite("made", tuple(Sentence(f"made-{n}", text, label) for n, (text, label) in enumerate(made)))


def saved(config: object, head: type, tokenizer: Path, folder: Path) -> Path:
    """Save an untrained network with the tokenizer of another."""
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
def classifiers(starts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict]]:
    """A classifier of each architecture, with its metadata."""
    out = tmp_path_factory.mktemp("classifiers")
    return {
        name: (out / name, train_classifier(replace(QUICK, model=str(path), epochs=6), [sentences()], out / name))
        for name, path in starts.items()
    }


POOLED = {"bert": "first", "modernbert": "first", "gpt2": "last", "llama": "last"}


@pytest.mark.parametrize("name", POOLED)
def test_transformers_opens_the_classifier_and_the_labels_have_names(name: str, classifiers) -> None:
    from transformers import AutoModelForSequenceClassification

    folder, metadata = classifiers[name]
    net, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert (set(info["missing_keys"]), set(info["unexpected_keys"])) == (set(), set())
    assert net.config.id2label == {0: "unacceptable", 1: "acceptable"}
    assert metadata["facts"]["pooling"] == POOLED[name]
    assert (
        metadata["facts"]["parameters"]
        == metadata["facts"]["trainable parameters"]
        == sum(each.numel() for each in net.parameters())
    )
    assert metadata["results"]["held out"]["mcc"] == pytest.approx(
        max(metadata["facts"]["mcc at each evaluation"]), abs=1e-4
    )
    assert metadata["results"]["held out"]["mcc"] > 0.7, "so simple a rule must be learned"


@pytest.mark.parametrize("name", POOLED)
def test_padding_changes_no_score(name: str, classifiers) -> None:
    model = load_model(f"classifier:{classifiers[name][0]}(device='cpu')")
    texts = ["the cat sleep.", "the", "linguist the slept since noon and the dogs think that it is reading again."]
    together = model.run(model.encode([Query(text) for text in texts]))
    for text, each in zip(texts, together, strict=True):
        (alone,) = model.run(model.encode([Query(text)]))
        assert each.logits == pytest.approx(alone.logits, abs=1e-5)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", ["modernbert", "gpt2"])
def test_a_seed_determines_every_bit_and_the_global_generator_is_restored(name: str, starts, tmp_path: Path) -> None:
    recipe = replace(QUICK, model=str(starts[name]), epochs=1, dropout=0.1)
    before = torch.random.get_rng_state()
    for out, each in (("a", recipe), ("b", recipe), ("c", replace(recipe, seed=2))):
        train_classifier(each, [sentences()], tmp_path / out)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("name", POOLED)
def test_a_probe_does_not_change_the_body(name: str, starts, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    recipe = replace(QUICK, model=str(starts[name]), frozen=True, learning_rate=1e-2)
    metadata = train_classifier(recipe, [sentences()], tmp_path / "probe")
    after, before = load_file(tmp_path / "probe" / "model.safetensors"), load_pretrained(recipe)
    changed = {key for key, each in before.net.state_dict().items() if not torch.equal(each, after[key])}
    assert changed == before.new_weights
    assert metadata["facts"]["trainable parameters"] < metadata["facts"]["parameters"] / 5
    # Trained on cached hidden states, and evaluated through the whole network.
    assert metadata["results"]["held out"]["mcc"] == pytest.approx(
        max(metadata["facts"]["mcc at each evaluation"]), abs=1e-4
    )


def test_pooling_can_be_chosen_or_the_error_names_what_is_supported(starts, tmp_path: Path) -> None:
    metadata = train_classifier(
        replace(QUICK, model=str(starts["modernbert"]), pooling="mean", epochs=1), [sentences()], tmp_path / "m"
    )
    assert metadata["facts"]["pooling"] == "mean"
    assert json.loads((tmp_path / "m" / "config.json").read_text())["classifier_pooling"] == "mean"
    for name, pooling, can in (
        ("modernbert", "last", "first or mean"),
        ("bert", "mean", "first"),
        ("gpt2", "first", "last"),
    ):
        with pytest.raises(TrainError, match=rf"pooling is '{pooling}', and \w+ of transformers .* can do: {can}\."):
            train_classifier(replace(QUICK, model=str(starts[name]), pooling=pooling), [sentences()], tmp_path / "no")


def _small(name: str) -> object:
    """Return the configuration of a small network of some architecture."""
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
        ("XLNet", OTHER_POOLING),
    ],
)
def test_the_pooling_of_an_architecture_is_detected(name: str, expected: str) -> None:
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(1)
    net = AutoModelForSequenceClassification.from_config(_small(name))
    assert detect_pooling(net, [5, 6, 7, 8, 9], pad_token_id=1) == expected


def test_a_sentence_that_is_too_long_is_an_error_or_truncated_and_counted(starts, tmp_path: Path) -> None:
    long = Sentence("made-long", "the cat " + "and the dog " * 40 + "sleep.", 1)
    suite = replace(sentences(), sentences=(*sentences().sentences, long))
    recipe = replace(QUICK, model=str(starts["bert"]), epochs=1)
    with pytest.raises(
        TrainError, match=r"made-long: 'the cat and .* has 206 tokens, and 64 are read at most \(1 sent"
    ):
        train_classifier(recipe, [suite], tmp_path / "no")
    metadata = train_classifier(replace(recipe, truncate=True), [suite], tmp_path / "cut")
    assert metadata["facts"]["sentences truncated"] == 1
    assert metadata["facts"]["tokens of the longest sentence"] == 64
    with pytest.raises(TrainError, match="tokens, and 5 are read at most"):
        train_classifier(replace(recipe, max_length=5), [sentences()], tmp_path / "short")


def test_a_causal_model_gets_its_start_token(starts, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    plain, framed = (
        load_pretrained(replace(QUICK, model=model)) for model in (str(starts["gpt2"]), f"causal:{starts['gpt2']}")
    )
    own = plain.tokenizer("the cat.")["input_ids"]
    assert own[0] != 0
    assert framed.tokenizer("the cat.")["input_ids"] == [0, *own]
    out = tmp_path / "framed"
    train_classifier(replace(QUICK, model=f"causal:{starts['gpt2']}", epochs=1), [sentences()], out)
    assert AutoTokenizer.from_pretrained(out)("the cat.")["input_ids"] == [0, *own]
    again = load_pretrained(replace(QUICK, model=f"causal:{out}")).tokenizer("the cat.")["input_ids"]
    assert again == [0, *own], "a start token is not added twice"
    with pytest.raises(ModelError, match="no token '<none>' to frame a text with"):
        load_pretrained(replace(QUICK, model=f"causal:{starts['gpt2']}(bos='<none>')"))


def test_a_sentence_that_ends_with_the_padding_token_is_refused(starts, tmp_path: Path) -> None:
    recipe = replace(QUICK, model=f"causal:{starts['gpt2']}(eos=True)")
    with pytest.raises(TrainError, match=r"made-\d+ ends with the token for padding \(0\)"):
        train_classifier(recipe, [sentences()], tmp_path / "no")


def test_training_stops_out_of_patience_and_keeps_the_best_weights(starts, tmp_path: Path) -> None:
    recipe = replace(
        QUICK, model=str(starts["bert"]), learning_rate=1e-9, epochs=9, evaluations_per_epoch=2, patience=3
    )
    metadata = train_classifier(recipe, [sentences()], tmp_path / "patient")
    assert len(metadata["facts"]["mcc at each evaluation"]) == 4
    assert metadata["facts"]["steps to the best evaluation"] == 5


class Killed(Exception):
    """Stands for SIGKILL."""


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"intermediate": "tags.txt"}], ids=str)
def test_a_killed_run_resumes_and_ends_with_the_same_bytes(
    options: dict[str, object], starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tags.txt").write_text("the|D cat|N sleep|V\n" * 20)
    if "intermediate" in options:
        options = {"intermediate": str(tmp_path / "tags.txt")}
    recipe = replace(QUICK, model=str(starts["modernbert"]), epochs=3, dropout=0.1, **options)
    monkeypatch.setattr(finetuning_task, "TrainingSchedule", partial(TrainingSchedule, save_every=2))
    straight = train_classifier(recipe, [sentences()], tmp_path / "straight")

    def kill_after_step_15(progress: TrainingProgress) -> None:
        if progress.stage == "dev set" and progress.done > 15:
            raise Killed

    with pytest.raises(Killed):
        train_classifier(recipe, [sentences()], tmp_path / "killed", progress=kill_after_step_15)
    with pytest.raises(TrainError, match="holds an unfinished run with another recipe"):
        train_classifier(replace(recipe, seed=5), [sentences()], tmp_path / "killed")
    stages: list[tuple[str, int]] = []
    resumed = train_classifier(
        recipe, [sentences()], tmp_path / "killed", progress=lambda tick: stages.append((tick.stage, tick.done))
    )
    assert min(done for stage, done in stages if stage == "dev set") == 20, (
        "steps before the checkpoint are not repeated"
    )
    assert weights(tmp_path / "straight") == weights(tmp_path / "killed")
    assert straight["facts"] == resumed["facts"]
    assert not (tmp_path / "killed" / ".checkpoint").exists()


def test_weights_can_be_saved_in_half_precision(starts, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    metadata = train_classifier(
        replace(QUICK, model=str(starts["gpt2"]), dtype="float16"), [sentences()], tmp_path / "half"
    )
    assert {each.dtype for each in load_file(tmp_path / "half" / "model.safetensors").values()} == {torch.float16}
    assert metadata["results"]["held out"]["mcc"] > 0.7


def test_models_that_cannot_be_fine_tuned_are_refused(starts, bart_dir: Path, tmp_path: Path) -> None:
    for model, problem in (
        ("", "which model is to be fine-tuned"),
        ("trigram", "is no transformer"),
        (str(bart_dir), "has an encoder and a decoder"),
    ):
        with pytest.raises(TrainError, match=problem):
            train_classifier(replace(QUICK, model=model), [sentences()], tmp_path / "no")
    with pytest.raises(ModelError, match="no such folder"):
        train_classifier(replace(QUICK, model="/nowhere/at/all"), [sentences()], tmp_path / "no")
    with pytest.raises(SpecError, match="preset has no meaning here"):
        locate_pretrained("causal:gpt2(preset='minicons')")
    with pytest.raises(TrainError, match="the device 'tpu9' cannot be used here"):
        train_classifier(replace(QUICK, model=str(starts["bert"]), device="tpu9"), [sentences()], tmp_path / "no")


@pytest.mark.parametrize(
    "option",
    [{"pooling": "max"}, {"learning_rate": 0.0}, {"epochs": 0}, {"dropout": 1.0}, {"dtype": "int8"}, {"patience": -1}],
)
def test_options_are_checked(option: dict[str, object]) -> None:
    with pytest.raises(TrainError, match=rf"{next(iter(option))} is .*; expected"):
        FineTuningRecipe(**option)


def test_a_random_search_stays_in_its_ranges() -> None:
    drawn = [sample_hyperparameters(seed, FineTuningRecipe(model="x", pooling="mean")) for seed in range(200)]
    assert {each.batch_size for each in drawn} == {16, 32}
    assert {each.epochs for each in drawn} == {2, 3, 4, 5, 6}
    assert {each.dropout for each in drawn} == {0.0, 0.1}
    assert all(1e-5 <= each.learning_rate <= 5e-4 and each.pooling == "mean" for each in drawn)
    assert 0.4 < np.mean([each.learning_rate < 7.07e-5 for each in drawn]) < 0.6, "even in its logarithm"
    assert sample_hyperparameters(7, drawn[0]) == sample_hyperparameters(7, drawn[1])


def test_an_epoch_has_every_sentence_once_in_batches_of_similar_length() -> None:
    lengths = np.random.default_rng(1).integers(3, 40, 1000).tolist()
    batches = make_bucketed_batches(lengths, 16, np.random.default_rng(2))
    assert sorted(index for batch in batches for index in batch) == list(range(1000))
    assert np.mean([np.ptp([lengths[index] for index in batch]) for batch in batches]) < 8
    assert batches != make_bucketed_batches(lengths, 16, np.random.default_rng(3))


def test_the_command_trains_on_a_table(starts, tmp_path: Path) -> None:
    table = tmp_path / "labelled.tsv"
    rows = [f"{each.id}\t{each.text}\t{each.label}" for each in sentences().sentences]
    table.write_text("\n".join(["id\ttext\tlabel", *rows]) + "\n")
    options = ["--set", f"model={starts['modernbert']}", "--set", "epochs=1", "--set", "frozen=yes", "--json"]
    done = CliRunner().invoke(
        app, ["train", "transformer", "--data", str(table), "--out", str(tmp_path / "out"), *options]
    )
    metadata = json.loads(done.stdout)
    assert (metadata["kind"], metadata["recipe"]["frozen"]) == ("transformer", True)
    assert "classifier:FOLDER" in (tmp_path / "out" / "README.md").read_text()
