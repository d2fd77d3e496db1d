"""Every architecture against a plain loop of transformers, and which way it takes.

A way is named for each, so that one that silently becomes slow is seen.
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
from acceptability.engine.local import answers
from acceptability.errors import QueryError
from acceptability.models.huggingface import Checkpoint
from acceptability.types import Query
from tiny import TEXTS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

# Gemma 3 does not tell its head from its body in transformers 4.
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
    """An architecture of transformers, how it differs from the usual tiny shape, and the way that it takes."""

    family: str
    way: str
    options: dict[str, Any] = field(default_factory=dict)

    def config(self, **tokens: Any) -> Any:
        return getattr(transformers, f"{self.family}Config")(**(tokens | SHAPE | self.options))


CAUSAL = {
    "gpt2": Shape("GPT2", "SharedPrefixes"),
    "gpt2-scaled": Shape("GPT2", "SharedPrefixes", {"scale_attn_by_inverse_layer_idx": True}),
    "gpt2-upcast": Shape("GPT2", "SharedPrefixes", {"reorder_and_upcast_attn": True}),
    "llama": Shape("Llama", "SharedPrefixes", {"num_attention_heads": 4, "num_key_value_heads": 2}),
    "llama-tied": Shape("Llama", "SharedPrefixes", {"tie_word_embeddings": True}),
    "mistral": Shape("Mistral", "SharedPrefixes", {"sliding_window": 5, "num_key_value_heads": 1}),
    "mistral-wide": Shape("Mistral", "SharedPrefixes", {"sliding_window": 12, "num_key_value_heads": 1}),
    "qwen2": Shape("Qwen2", "SharedPrefixes", {"num_key_value_heads": 2}),
    "qwen2-mixed": Shape(
        "Qwen2",
        "SharedPrefixes",
        {
            "num_key_value_heads": 2,
            "use_sliding_window": True,
            "sliding_window": 11,
            "layer_types": ["full_attention", "sliding_attention"],
        },
    ),
    "qwen3": Shape("Qwen3", "SharedPrefixes", {"num_key_value_heads": 2, "head_dim": 16}),
    "opt": Shape("OPT", "SharedPrefixes", {"ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.3}),
    "opt-projected": Shape("OPT", "SharedPrefixes", {"ffn_dim": 64, "word_embed_proj_dim": 16, "init_std": 0.3}),
    "gpt-neox": Shape("GPTNeoX", "SharedPrefixes"),
    "gpt-neo": Shape(
        "GPTNeo",
        "PaddedRows",
        {"num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]], "window_size": 6},
    ),
    "olmo": Shape("Olmo", "SharedPrefixes"),
    "phi3": Shape("Phi3", "SharedPrefixes", {"sliding_window": 11, "num_key_value_heads": 2}),
    "gemma": Shape("Gemma", "SharedPrefixes", {"num_key_value_heads": 1, "head_dim": 16}),
    "gemma2": Shape("Gemma2", "PaddedRows", {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 5}),
    "gemma3": Shape(
        "Gemma3Text",
        "PaddedRows" if IS_4 else "SharedPrefixes",
        {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 11},
    ),
    "llama4": Shape(
        "Llama4Text",
        "PaddedRows",
        {
            "num_key_value_heads": 1,
            "head_dim": 16,
            "attention_chunk_size": 11,
            "intermediate_size_mlp": 64,
            "num_local_experts": 2,
        },
    ),
    "bloom": Shape("Bloom", "PaddedRows", {"n_layer": 2, "n_head": 2}),
    "mamba": Shape("Mamba", "PaddedRows", {"state_size": 4, "expand": 2}),
    "bart": Shape(
        "Bart",
        "PaddedRows",
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
    "bert": Shape("Bert", "ScoredRows"),
    "roberta": Shape("Roberta", "ScoredRows", {"max_position_embeddings": 66, "pad_token_id": 1}),
    "xlm-roberta": Shape("XLMRoberta", "ScoredRows", {"max_position_embeddings": 66}),
    "distilbert": Shape("DistilBert", "ScoredRows", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}),
    "electra": Shape("Electra", "ScoredRows", {"embedding_size": 16}),
    "albert": Shape("Albert", "ScoredRows", {"embedding_size": 16}),
    "modernbert": Shape("ModernBert", "ScoredRows", {"local_attention": 8, "global_attn_every_n_layers": 2}),
    "deberta-v2": Shape(
        "DebertaV2",
        "ScoredRows",
        {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 8,
            "norm_rel_ebd": "layer_norm",
        },
    ),
    "deberta-v2-convolved": Shape(
        "DebertaV2", "ScoredRows", {"relative_attention": True, "pos_att_type": ["p2c"], "conv_kernel_size": 3}
    ),
    "mpnet": Shape("MPNet", "ScoredRows", {"max_position_embeddings": 66}),
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
        for each in net.parameters():
            if each.ndim == 1:
                each.add_(0.1 * torch.randn(each.shape))
    net.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, causal_dir: Path, masked_dir: Path) -> Callable[[str], Path]:
    """What gives the folder of an architecture, made when it is first asked for."""
    folders: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in folders:
            causal = name in CAUSAL
            kind, shape = ("CausalLM", CAUSAL[name]) if causal else ("MaskedLM", MASKED[name])
            folders[name] = saved(kind, shape, causal_dir if causal else masked_dir, tmp_path_factory.mktemp(name))
        return folders[name]

    return folder


def said(model: Any, texts: list[str]) -> list[list[float]]:
    """Return the log-probabilities of each text's tokens, through the engine."""
    found = {}
    for batch in answers(model, [Query(text) for text in texts], lambda _: False):
        found |= {place: each.logprobs.tolist() for place, each in batch}
    return [found[place] for place in range(len(texts))]


def plain_causal(folder: Path, texts: list[str]) -> list[list[float]]:
    """One text at a time, no batch, no padding, a full log-softmax."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    net = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = []
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        with torch.no_grad():
            table = net(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(-1)
        found.append([float(table[place - 1, ids[place]]) for place in range(1, len(ids))])
    return found


def plain_masked(folder: Path, texts: list[str]) -> list[list[float]]:
    """One mask at a time, one forward pass for each."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    net = transformers.AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = []
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        found.append([])
        for place in range(1, len(ids) - 1):
            shown = torch.tensor([[*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]])
            with torch.no_grad():
                table = net(shown, attention_mask=torch.ones_like(shown)).logits[0, place].log_softmax(-1)
            found[-1].append(float(table[ids[place]]))
    return found


def assert_near(found: list[list[float]], expected: list[list[float]], distance: float = 1e-4) -> None:
    for text, one, other in zip(ALL, found, expected, strict=True):
        assert one == pytest.approx(other, abs=distance), text


def differ(scores: list[list[float]]) -> bool:
    """Tell whether every text has a score of its own, so that mixing them up is seen."""
    return len({round(sum(each), 3) for each in scores}) == len(scores)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_architecture_gives_what_a_plain_loop_gives_in_its_own_way(name: str, made) -> None:
    folder = made(name)
    expected = plain_causal(folder, ALL)
    assert differ(expected), "a test that cannot fail"
    model = load_model(f"causal:{folder}")
    assert_near(said(model, ALL), expected)
    assert type(model.forward).__name__ == CAUSAL[name].way
    assert_near([said(model, [text])[0] for text in ALL], expected)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # DeBERTa's own code
@pytest.mark.parametrize("name", MASKED)
def test_a_masked_architecture_gives_what_a_plain_loop_gives_in_its_own_way(name: str, made) -> None:
    folder = made(name)
    expected = plain_masked(folder, ALL)
    assert differ(expected), "a test that cannot fail"
    model = load_model(f"masked:{folder}")
    assert_near(said(model, ALL), expected)
    assert type(model.forward).__name__ == MASKED[name].way
    assert_near([said(model, [text])[0] for text in ALL], expected)


def spoilt(net: Any, _: Path) -> None:
    """Change a layer for the worse, as a wrong layout of its weights would."""
    with torch.no_grad():
        net.get_output_embeddings().weight.mul_(1.5)


def broken(net: Any, _: Path) -> None:
    """Leave a layer that fails whenever it is used."""
    net.set_input_embeddings(torch.nn.Identity())


def undefined(net: Any, _: Path) -> None:
    """Leave a layer that makes numbers which are none, at the last row of the sample alone or everywhere."""
    with torch.no_grad():
        net.get_output_embeddings().weight[-1] = float("nan")


@pytest.mark.parametrize("tuned", [spoilt, broken, undefined])
@pytest.mark.parametrize("name", ["gpt2", "bloom", "bert"])
def test_layers_that_would_change_scores_are_given_up(name: str, tuned, made, monkeypatch) -> None:
    kind, shapes = ("causal", CAUSAL) if name in CAUSAL else ("masked", MASKED)
    monkeypatch.setattr("acceptability.models.trial.tune", tuned)
    expected = (plain_causal if name in CAUSAL else plain_masked)(made(name), ALL)
    model = load_model(f"{kind}:{made(name)}")
    assert_near(said(model, ALL), expected)
    assert type(model.forward).__name__ == shapes[name].way


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "bert", "modernbert"])
def test_an_attention_that_is_wrong_is_given_up(name: str, made, monkeypatch) -> None:
    module, kind = ("prefixes", "causal") if name in CAUSAL else ("masking", "masked")
    monkeypatch.setattr(
        f"acceptability.models.{module}.attention", lambda query, key, value, **_: torch.zeros_like(query)
    )
    expected = (plain_causal if name in CAUSAL else plain_masked)(made(name), ALL)
    assert_near(said(load_model(f"{kind}:{made(name)}"), ALL), expected)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"layer_types": ["chunked_attention", "full_attention"]}, "chunked_attention"),
        ({"sliding_window": 40}, "40"),
        ({"layer_types": ["full_attention", "full_attention"], "sliding_window": 40}, None),
    ],
)
def test_a_reach_that_attention_is_not_told_is_not_overlooked(change, kept, made, caplog) -> None:
    """It would show only in sentences longer than the sample."""
    from acceptability.models.left_to_right import causal_pass

    net = transformers.AutoModelForCausalLM.from_pretrained(made("llama"), dtype=torch.float32).eval()
    for key, value in change.items():
        setattr(net.config, key, value)
    caplog.set_level("INFO")
    way = causal_pass(lambda: net, made("llama"))
    assert type(way).__name__ == ("SharedPrefixes" if kept is None else "PaddedRows")
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
    assert_near(said(half, ALL), said(whole, ALL), HALF[dtype])
    assert type(half.forward).__name__ == shapes[name].way


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_vocabulary_of_a_few_tokens_is_enough(kind: str, made, tmp_path: Path, causal_dir, masked_dir) -> None:
    """What is tried beforehand must not need tokens that are not there."""
    from acceptability.models.left_to_right import causal_pass
    from acceptability.models.masking import masked_pass

    torch.manual_seed(4)
    if kind == "causal":
        net = transformers.GPT2LMHeadModel(CAUSAL["gpt2"].config(vocab_size=3, bos_token_id=0, eos_token_id=0)).eval()
        from acceptability.models.causal import _sees_ahead

        assert not _sees_ahead(net)
        assert type(causal_pass(lambda: net, tmp_path)).__name__ == "SharedPrefixes"
    else:
        net = transformers.BertForMaskedLM(MASKED["bert"].config(vocab_size=3, pad_token_id=0)).eval()
        assert type(masked_pass(lambda: net, tmp_path)).__name__ == "ScoredRows"


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
    assert said(model, ["The cats sleep."]) == said(load_model(f"{kind}:{source}"), ["The cats sleep."])
    with pytest.raises(QueryError, match=f"its token 'wug' has the number {len(tokenizer) - 1}") as caught:
        model.encode([Query("The cats sleep."), Query("a wug sleeps")])
    assert caught.value.index == 1


def test_two_threads_get_what_one_gets(made) -> None:
    for name in ("causal:gpt2", "masked:bert"):
        kind, _, shape = name.partition(":")
        model = load_model(f"{kind}:{made(shape)}")
        expected = said(model, ALL)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(lambda _: said(model, ALL), range(12)):  # noqa: B023
                assert_near(found, expected, 1e-5)


def test_two_threads_may_open_a_model_at_once(made) -> None:
    model = load_model(f"causal:{made('gpt2')}")
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: said(model, ALL), range(3)):
            assert_near(found, plain_causal(made("gpt2"), ALL))


@pytest.mark.parametrize("variant", ["pll", "word_l2r"])
def test_a_long_text_never_makes_a_batch_above_the_budget(variant: str, masked_dir: Path, monkeypatch) -> None:
    model = load_model(f"masked:{masked_dir}(variant={variant!r})")
    whole, seen = model.forward, []

    def spy(copies: Any) -> Any:
        seen.append(copies.shown.shape)
        return whole(copies)

    monkeypatch.setitem(vars(model), "forward", spy)
    spy.net, spy.most = whole.net, whole.most
    long = " ".join(["the cat sleep"] * 20)
    texts = [long, *TEXTS, long + " no", long + " dog", *(f"{long[:-6]} {word}" for word in ("dog", "he", "she"))]
    found = said(model, texts)
    assert max(length for _, length in seen) >= 62
    assert sum(count for count, _ in seen) > 1024 // 62
    assert all(count * length <= model.budget for count, length in seen), seen
    assert [len(each) for each in found[:1]] == [60]
    assert found[0] == pytest.approx(said(model, [long])[0], abs=1e-5)


def test_a_device_that_we_do_not_know_has_a_budget() -> None:
    from acceptability.models.huggingface import budget

    assert 0 < budget("cpu") < budget("xpu") == budget("mps") < budget("cuda")


@pytest.mark.parametrize("name", ["causal:bloom", "causal:gpt2", "masked:bert"])
def test_logits_that_cannot_be_left_out_make_batches_smaller(name: str, made, monkeypatch) -> None:
    """On a GPU, a batch with a whole vocabulary at each place would not fit into memory."""
    from acceptability.models import head, huggingface

    kind, _, shape = name.partition(":")
    expected = (plain_causal if kind == "causal" else plain_masked)(made(shape), ALL)
    monkeypatch.setattr(head, "_TABLE", 4 * 330 * 40)
    if name == "masked:bert":
        monkeypatch.setattr("acceptability.models.masking.split", refused)
    model = load_model(f"{kind}:{made(shape)}")
    assert (model.budget < huggingface.budget("cpu")) == (name != "causal:gpt2")
    assert_near(said(model, ALL), expected)


def refused(_: Any) -> None:
    raise AttributeError("no such part")


@pytest.mark.parametrize("name", ["causal:gpt2", "masked:bert"])
def test_a_network_that_does_not_show_its_head_is_cut_all_the_same(name: str, made, monkeypatch) -> None:
    kind, _, shape = name.partition(":")
    folder = made(shape)
    expected = (plain_causal if kind == "causal" else plain_masked)(folder, ALL)
    opened = Checkpoint.net

    def hidden(self: Checkpoint, *arguments: Any, **options: Any) -> Any:
        net = opened(self, *arguments, **options)
        net.get_output_embeddings = lambda: None
        return net

    monkeypatch.setattr(Checkpoint, "net", hidden)
    model = load_model(f"{kind}:{folder}")
    assert_near(said(model, ALL), expected)
    assert type(model.forward).__name__ == {"causal": "SharedPrefixes", "masked": "ScoredRows"}[kind]
