"""Every architecture against a plain loop of transformers, and the forward path that it takes.

The expected path is named for each architecture, so that a silent fallback to the slow path is noticed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from acceptability import load_model
from acceptability.engine.local import run_queries
from acceptability.errors import QueryError
from acceptability.models.hf.loading import Checkpoint
from acceptability.types import Query
from tiny import TEXTS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

# Gemma 3 does not separate its head from its body in transformers 4.
IS_4 = transformers.__version__.startswith("4.")

PAIRS = [
    "The cats that the dog chased have slept since noon!",
    "The cats that the dog chased has slept since noon.",
    "The cats that the dog",
    "No cat has ever chased the unbelievably large cats.",
    "No cat has ever slept.",
    "Who did the dog chased?",
]
ALL = TEXTS + PAIRS
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


@dataclass(frozen=True)
class Shape:
    """An architecture of transformers, how it differs from the usual tiny shape, and the forward path that it takes."""

    family: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)

    def config(self, **tokens: Any) -> Any:
        return getattr(transformers, f"{self.family}Config")(**(tokens | SHAPE | self.options))


CAUSAL = {
    "gpt2": Shape("GPT2", "TrieCausalPath"),
    "gpt2-scaled": Shape("GPT2", "TrieCausalPath", {"scale_attn_by_inverse_layer_idx": True}),
    "gpt2-upcast": Shape("GPT2", "TrieCausalPath", {"reorder_and_upcast_attn": True}),
    "llama": Shape("Llama", "TrieCausalPath", {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "llama-tied": Shape("Llama", "TrieCausalPath", {"tie_word_embeddings": True}),
    "mistral": Shape("Mistral", "TrieCausalPath", {"sliding_window": 5, "num_key_value_heads": 1}),
    "mistral-wide": Shape("Mistral", "TrieCausalPath", {"sliding_window": 12, "num_key_value_heads": 1}),
    "qwen2": Shape("Qwen2", "TrieCausalPath", {"num_key_value_heads": 2}),
    "qwen2-mixed": Shape(
        "Qwen2",
        "TrieCausalPath",
        {
            "num_key_value_heads": 2,
            "use_sliding_window": True,
            "sliding_window": 11,
            "layer_types": ["full_attention", "sliding_attention"],
        },
    ),
    "qwen3": Shape("Qwen3", "TrieCausalPath", {"num_key_value_heads": 2, "head_dim": 16}),
    "opt": Shape("OPT", "TrieCausalPath", {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.3}),
    "opt-projected": Shape("OPT", "TrieCausalPath", {"ffn_dim": 64, "word_embed_proj_dim": 16, "init_std": 0.3}),
    "gpt-neox": Shape("GPTNeoX", "TrieCausalPath"),
    "gpt-neo": Shape(
        "GPTNeo",
        "PaddedCausalPath",
        {"num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]], "window_size": 6},
    ),
    "olmo": Shape("Olmo", "TrieCausalPath"),
    "phi3": Shape("Phi3", "TrieCausalPath", {"sliding_window": 11, "num_key_value_heads": 2}),
    "gemma": Shape("Gemma", "TrieCausalPath", {"num_key_value_heads": 1, "head_dim": 16}),
    "gemma2": Shape("Gemma2", "PaddedCausalPath", {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 5}),
    "gemma3": Shape(
        "Gemma3Text",
        "PaddedCausalPath" if IS_4 else "TrieCausalPath",
        {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 11},
    ),
    "llama4": Shape(
        "Llama4Text",
        "PaddedCausalPath",
        {
            "num_key_value_heads": 1,
            "head_dim": 16,
            "attention_chunk_size": 11,
            "intermediate_size_mlp": 64,
            "num_local_experts": 2,
        },
    ),
    "bloom": Shape("Bloom", "PaddedCausalPath", {"n_layer": 2, "n_head": 2}),
    "mamba": Shape("Mamba", "PaddedCausalPath", {"state_size": 4, "expand": 2}),
    "bart": Shape(
        "Bart",
        "PaddedCausalPath",
        {
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "decoder_ffn_dim": 64,
            "encoder_ffn_dim": 64,
            "init_std": 0.3,
        },
    ),
}

MASKED = {
    "bert": Shape("Bert", "ScoredOnlyMaskedPath"),
    "roberta": Shape("Roberta", "ScoredOnlyMaskedPath", {"max_position_embeddings": 66, "pad_token_id": 1}),
    "xlm-roberta": Shape("XLMRoberta", "ScoredOnlyMaskedPath", {"max_position_embeddings": 66}),
    "distilbert": Shape(
        "DistilBert", "ScoredOnlyMaskedPath", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    ),
    "electra": Shape("Electra", "ScoredOnlyMaskedPath", {"embedding_size": 16}),
    "albert": Shape("Albert", "ScoredOnlyMaskedPath", {"embedding_size": 16}),
    "modernbert": Shape("ModernBert", "ScoredOnlyMaskedPath", {"local_attention": 8, "global_attn_every_n_layers": 2}),
    "deberta-v2": Shape(
        "DebertaV2",
        "ScoredOnlyMaskedPath",
        {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 8,
            "norm_rel_ebd": "layer_norm",
        },
    ),
    "deberta-v2-convolved": Shape(
        "DebertaV2",
        "ScoredOnlyMaskedPath",
        {"relative_attention": True, "pos_att_type": ["p2c"], "conv_kernel_size": 3},
    ),
    "mpnet": Shape("MPNet", "ScoredOnlyMaskedPath", {"max_position_embeddings": 66}),
}


def saved(kind: str, shape: Shape, tokens_of: Path, folder: Path) -> Path:
    """Save a tiny random network with the tokenizer of another folder."""
    for path in tokens_of.glob("tokenizer*"):
        shutil.copy(path, folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tokens_of)
    torch.manual_seed(3)
    config = shape.config(vocab_size=len(tokenizer), bos_token_id=0, eos_token_id=0, pad_token_id=0)
    net = getattr(transformers, f"AutoModelFor{kind}").from_config(config)
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape))
    net.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, causal_dir: Path, masked_dir: Path) -> Callable[[str], Path]:
    """A function that returns the folder of an architecture, which it creates on first use."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            causal = name in CAUSAL
            kind, shape = ("CausalLM", CAUSAL[name]) if causal else ("MaskedLM", MASKED[name])
            folders[name] = saved(kind, shape, causal_dir if causal else masked_dir, tmp_path_factory.mktemp(name))
        return folders[name]

    return folder


def score_texts(model: Any, texts: list[str]) -> list[list[float]]:
    """Return the log-probabilities of each text's tokens, through the engine."""
    logprobs = {}
    for batch in run_queries(model, [Query(text) for text in texts], lambda _: False):
        logprobs |= {index: output.logprobs.tolist() for index, output in batch}
    return [logprobs[index] for index in range(len(texts))]


def plain_causal(folder: Path, texts: list[str]) -> list[list[float]]:
    """One text at a time, no batch, no padding, a full log-softmax."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    net = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    output = []
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        with torch.no_grad():
            table = net(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)
        output.append([float(table[position - 1, ids[position]]) for position in range(1, len(ids))])
    return output


def plain_masked(folder: Path, texts: list[str]) -> list[list[float]]:
    """One mask at a time, one forward pass for each."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    net = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    output = []
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        output.append([])
        for position in range(1, len(ids) - 1):
            masked_ids = torch.tensor([[*ids[:position], tokenizer.mask_token_id, *ids[position + 1 :]]])
            with torch.no_grad():
                table = net(masked_ids, attention_mask=torch.ones_like(masked_ids)).logits[0, position].log_softmax(-1)
            output[-1].append(float(table[ids[position]]))
    return output


def assert_near(actual: list[list[float]], expected: list[list[float]], distance: float = 1e-4) -> None:
    for text, actual_row, expected_row in zip(ALL, actual, expected, strict=True):
        assert actual_row == pytest.approx(expected_row, abs=distance), text


def differ(scores: list[list[float]]) -> bool:
    """Return whether every text has a score of its own, so that mixing them up is noticed."""
    return len({round(sum(row), 3) for row in scores}) == len(scores)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_architecture_agrees_with_a_plain_loop(name: str, made) -> None:
    folder = made(name)
    expected = plain_causal(folder, ALL)
    assert differ(expected), "a test that cannot fail"
    model = load_model(f"causal:{folder}")
    assert_near(score_texts(model, ALL), expected)
    assert type(model.forward).__name__ == CAUSAL[name].path
    assert_near([score_texts(model, [text])[0] for text in ALL], expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # DeBERTa's own code
@pytest.mark.parametrize("name", MASKED)
def test_a_masked_architecture_agrees_with_a_plain_loop(name: str, made) -> None:
    folder = made(name)
    expected = plain_masked(folder, ALL)
    assert differ(expected), "a test that cannot fail"
    model = load_model(f"masked:{folder}")
    assert_near(score_texts(model, ALL), expected)
    assert type(model.forward).__name__ == MASKED[name].path
    assert_near([score_texts(model, [text])[0] for text in ALL], expected)


def spoilt(net: Any, _: Path) -> None:
    """Change a layer for the worse, as a wrong layout of its weights would."""
    with torch.no_grad():
        net.get_output_embeddings().weight.mul_(1.5)


def broken(net: Any, _: Path) -> None:
    """Install a layer that fails whenever it is used."""
    net.set_input_embeddings(torch.nn.Identity())


def undefined(net: Any, _: Path) -> None:
    """Make the head return NaN, at the last row of the sample alone or everywhere."""
    with torch.no_grad():
        net.get_output_embeddings().weight[-1] = float("nan")


@pytest.mark.parametrize("tuned", [spoilt, broken, undefined])
@pytest.mark.parametrize("name", ["gpt2", "bloom", "bert"])
def test_layers_that_would_change_scores_are_discarded(name: str, tuned, made, monkeypatch) -> None:
    kind, shapes = ("causal", CAUSAL) if name in CAUSAL else ("masked", MASKED)
    monkeypatch.setattr("acceptability.models.kernels.verify.optimize_layers", tuned)
    expected = (plain_causal if name in CAUSAL else plain_masked)(made(name), ALL)
    model = load_model(f"{kind}:{made(name)}")
    assert_near(score_texts(model, ALL), expected)
    assert type(model.forward).__name__ == shapes[name].path


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "bert", "modernbert"])
def test_a_wrong_attention_is_discarded(name: str, made, monkeypatch) -> None:
    kind = "causal" if name in CAUSAL else "masked"
    monkeypatch.setattr(
        f"acceptability.models.hf.{kind}_forward.compute_attention",
        lambda query, key, value, **_: torch.zeros_like(query),
    )
    expected = (plain_causal if name in CAUSAL else plain_masked)(made(name), ALL)
    assert_near(score_texts(load_model(f"{kind}:{made(name)}"), ALL), expected)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"layer_types": ["chunked_attention", "full_attention"]}, "chunked_attention"),
        ({"sliding_window": 40}, "40"),
        ({"layer_types": ["full_attention", "full_attention"], "sliding_window": 40}, None),
    ],
)
def test_a_window_that_is_not_passed_to_attention_is_noticed(change, kept, made, caplog) -> None:
    """It would show only in sentences longer than the sample."""
    from acceptability.models.hf.causal_forward import choose_causal_path

    net = transformers.AutoModelForCausalLM.from_pretrained(made("llama"), dtype=torch.float32).eval()
    for key, value in change.items():
        setattr(net.config, key, value)
    caplog.set_level("INFO")
    path = choose_causal_path(lambda: net, made("llama"))
    assert type(path).__name__ == ("TrieCausalPath" if kept is None else "PaddedCausalPath")
    assert kept is None or f"does not say how far it sees: {kept}" in caplog.text


HALF = {"bfloat16": 0.5, "float16": 0.05}
"""How far a token's log-probability may lie from that in float32, for tiny models with large weights."""


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom", "bert", "modernbert"])
def test_half_precision_stays_near_on_a_cpu(name: str, dtype: str, made) -> None:
    kind, shapes = ("causal", CAUSAL) if name in CAUSAL else ("masked", MASKED)
    whole = load_model(f"{kind}:{made(name)}(device='cpu')")
    half = load_model(f"{kind}:{made(name)}(device='cpu', dtype={dtype!r})")
    assert half.net.dtype == getattr(torch, dtype)
    assert_near(score_texts(half, ALL), score_texts(whole, ALL), HALF[dtype])
    assert type(half.forward).__name__ == shapes[name].path


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_vocabulary_of_a_few_tokens_is_enough(kind: str, made, tmp_path: Path, causal_dir, masked_dir) -> None:
    """The sample of the verification must not need tokens that are not there."""
    from acceptability.models.hf.causal_forward import choose_causal_path
    from acceptability.models.hf.masked_forward import choose_masked_path

    torch.manual_seed(4)
    if kind == "causal":
        net = transformers.GPT2LMHeadModel(CAUSAL["gpt2"].config(vocab_size=3, bos_token_id=0, eos_token_id=0)).eval()
        from acceptability.models.hf.causal import sees_future_tokens

        assert not sees_future_tokens(net)
        assert type(choose_causal_path(lambda: net, tmp_path)).__name__ == "TrieCausalPath"
    else:
        net = transformers.BertForMaskedLM(MASKED["bert"].config(vocab_size=3, pad_token_id=0)).eval()
        assert type(choose_masked_path(lambda: net, tmp_path)).__name__ == "ScoredOnlyMaskedPath"


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_token_that_only_the_tokenizer_knows_is_an_error_that_names_it(
    kind: str, causal_dir, masked_dir, tmp_path: Path
) -> None:
    source = {"causal": causal_dir, "masked": masked_dir}[kind]
    folder = tmp_path / "m"
    shutil.copytree(source, folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    tokenizer.add_tokens(["wug"])
    tokenizer.save_pretrained(folder)
    model = load_model(f"{kind}:{folder}")
    assert score_texts(model, ["The cats sleep."]) == score_texts(load_model(f"{kind}:{source}"), ["The cats sleep."])
    with pytest.raises(QueryError, match=f"its token 'wug' has the number {len(tokenizer) - 1}") as caught:
        model.encode([Query("The cats sleep."), Query("a wug sleeps")])
    assert caught.value.index == 1


def test_several_threads_get_the_scores_of_one(made) -> None:
    for name in ("causal:gpt2", "masked:bert"):
        kind, _, shape = name.partition(":")
        model = load_model(f"{kind}:{made(shape)}")
        expected = score_texts(model, ALL)
        with ThreadPoolExecutor(4) as pool:
            for output in pool.map(lambda _: score_texts(model, ALL), range(12)):  # noqa: B023
                assert_near(output, expected, 1e-5)


def test_two_threads_may_open_a_model_at_once(made) -> None:
    model = load_model(f"causal:{made('gpt2')}")
    with ThreadPoolExecutor(3) as pool:
        for output in pool.map(lambda _: score_texts(model, ALL), range(3)):
            assert_near(output, plain_causal(made("gpt2"), ALL))


@pytest.mark.parametrize("variant", ["pll", "word_l2r"])
def test_a_long_text_never_makes_a_batch_above_the_budget(variant: str, masked_dir: Path, monkeypatch) -> None:
    model = load_model(f"masked:{masked_dir}(variant={variant!r})")
    whole, seen = model.forward, []

    def spy(copies: Any) -> Any:
        seen.append(copies.input_ids.shape)
        return whole(copies)

    monkeypatch.setitem(vars(model), "forward", spy)
    spy.net, spy.max_tokens = whole.net, whole.max_tokens
    long = " ".join(["the cat sleep"] * 20)
    texts = [long, *TEXTS, long + " no", long + " dog", *(f"{long[:-6]} {word}" for word in ("dog", "he", "she"))]
    output = score_texts(model, texts)
    assert max(length for _, length in seen) >= 62
    assert sum(count for count, _ in seen) > 1024 // 62
    assert all(count * length <= model.budget for count, length in seen), seen
    assert [len(row) for row in output[:1]] == [60]
    assert output[0] == pytest.approx(score_texts(model, [long])[0], abs=1e-5)


def test_an_unknown_device_has_a_budget() -> None:
    from acceptability.models.hf.loading import get_token_budget

    assert 0 < get_token_budget("cpu") < get_token_budget("xpu") == get_token_budget("mps") < get_token_budget("cuda")


@pytest.mark.parametrize("name", ["causal:bloom", "causal:gpt2", "masked:bert"])
def test_a_head_that_cannot_be_split_off_makes_batches_smaller(name: str, made, monkeypatch) -> None:
    """On a GPU, a batch with a whole vocabulary at each position would not fit into memory."""
    from acceptability.models.hf import loading
    from acceptability.models.kernels import head

    kind, _, shape = name.partition(":")
    expected = (plain_causal if kind == "causal" else plain_masked)(made(shape), ALL)
    monkeypatch.setattr(head, "_MAX_TABLE_BYTES", 4 * 330 * 40)
    if name == "masked:bert":
        monkeypatch.setattr("acceptability.models.hf.masked_forward.make_head_separable", refused)
    model = load_model(f"{kind}:{made(shape)}")
    assert (model.budget < loading.get_token_budget("cpu")) == (name != "causal:gpt2")
    assert_near(score_texts(model, ALL), expected)


def refused(_: Any) -> None:
    raise AttributeError("no such part")


@pytest.mark.parametrize("name", ["causal:gpt2", "masked:bert"])
def test_a_network_that_hides_its_head_is_split_nevertheless(name: str, made, monkeypatch) -> None:
    kind, _, shape = name.partition(":")
    folder = made(shape)
    expected = (plain_causal if kind == "causal" else plain_masked)(folder, ALL)
    opened = Checkpoint.load_net

    def hidden(self: Checkpoint, *arguments: Any, **options: Any) -> Any:
        net = opened(self, *arguments, **options)
        net.get_output_embeddings = lambda: None
        return net

    monkeypatch.setattr(Checkpoint, "load_net", hidden)
    model = load_model(f"{kind}:{folder}")
    assert_near(score_texts(model, ALL), expected)
    assert type(model.forward).__name__ == {"causal": "TrieCausalPath", "masked": "ScoredOnlyMaskedPath"}[kind]
