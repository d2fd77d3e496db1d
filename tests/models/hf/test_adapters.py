"""Adapters are part of the model: LoRA against plain matrix arithmetic, and other kinds refused without PEFT."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from acceptability import load_model
from acceptability.api.scoring import score
from acceptability.errors import MissingExtra, ModelError
from acceptability.models.hf.adapters import hide_adapter
from acceptability.types import LabelScores, Query, Sentence, Suite
from tiny import TEXTS

torch = pytest.importorskip("torch")

# A layer of each kind of tiny model, with the sizes of its input and its output; GPT-2 has Conv1D, the others Linear.
CAUSAL = {"transformer.h.0.attn.c_attn": (32, 96), "transformer.h.1.mlp.c_proj": (128, 32)}
BERT = {"bert.encoder.layer.0.attention.self.query": (32, 32), "bert.encoder.layer.1.intermediate.dense": (32, 64)}
T5 = {"encoder.block.0.layer.0.SelfAttention.q": (32, 32), "decoder.block.1.layer.2.DenseReluDense.wo": (64, 32)}
BART = {"model.encoder.layers.0.fc1": (32, 64), "model.decoder.layers.1.encoder_attn.v_proj": (32, 32)}
KINDS = {
    "causal": ("causal_dir", CAUSAL),
    "masked": ("masked_dir", BERT),
    "classifier": ("classifier_dir", BERT),
    "seq2seq": ("seq2seq_dir", T5),
    "bart": ("bart_dir", BART),
}
LORA = {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "bias": "none", "target_modules": ["x"], "peft_version": "0.21"}


def draw_factors(layers: Mapping[str, tuple[int, int]], rank: int = 4) -> dict[str, np.ndarray]:
    """Random factors of each layer, by the names of PEFT."""
    random = np.random.default_rng(7)
    tensors = {}
    for layer, (inputs, outputs) in layers.items():
        tensors[f"base_model.model.{layer}.lora_A.weight"] = random.normal(0, 0.3, (rank, inputs)).astype(np.float32)
        tensors[f"base_model.model.{layer}.lora_B.weight"] = random.normal(0, 0.3, (outputs, rank)).astype(np.float32)
    return tensors


def save_adapter(folder: Path, tensors: Mapping[str, np.ndarray], **config: Any) -> Path:
    from safetensors.numpy import save_file

    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(LORA | config))
    save_file(dict(tensors), folder / "adapter_model.safetensors")
    return folder


def save_merged(base: Path, folder: Path, tensors: Mapping[str, np.ndarray], scales: Mapping[str, float]) -> Path:
    """Write a copy of a model whose weights were changed by NumPy, layer by layer."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(base, folder)
    weights = load_file(folder / "model.safetensors")
    for layer, scale in scales.items():
        a, b = (tensors[f"base_model.model.{layer}.lora_{letter}.weight"] for letter in "AB")
        change = scale * (b @ a)
        name = f"{layer}.weight"
        weights[name] = weights[name] + (change.T if layer.startswith("transformer.h") else change)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


def compute(spec: str) -> list[np.ndarray]:
    model = load_model(spec)
    outputs = model.run(model.encode([Query(text) for text in TEXTS]))
    return [np.array(output.logits) if isinstance(output, LabelScores) else output.logprobs for output in outputs]


def assert_same(first: list[np.ndarray], second: list[np.ndarray], tolerance: float = 2e-4) -> None:
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True)) < tolerance


def assert_other(first: list[np.ndarray], second: list[np.ndarray]) -> None:
    assert max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True)) > 0.05


@pytest.fixture(params=list(KINDS))
def kind_and_base(request: pytest.FixtureRequest) -> tuple[str, Path, dict[str, tuple[int, int]]]:
    fixture, layers = KINDS[request.param]
    return request.param.replace("bart", "seq2seq"), request.getfixturevalue(fixture), layers


def test_lora_is_merged_as_matrix_arithmetic_says(kind_and_base, tmp_path: Path) -> None:
    """In a folder of its own that names the base model, and in the folder of the model."""
    kind, base, layers = kind_and_base
    tensors = draw_factors(layers)
    alone = save_adapter(tmp_path / "alone", tensors, base_model_name_or_path=str(base))
    shutil.copytree(base, tmp_path / "whole")
    whole = save_adapter(tmp_path / "whole", tensors, base_model_name_or_path="someone/elsewhere")
    merged = save_merged(base, tmp_path / "merged", tensors, dict.fromkeys(layers, 6 / 4))
    expected = compute(f"{kind}:{merged}")
    assert_same(compute(f"{kind}:{alone}"), expected)
    assert_same(compute(f"{kind}:{whole}"), expected)
    assert_other(compute(f"{kind}:{base}"), expected)


def test_lora_equals_a_forward_pass_with_the_factors_beside_the_layers(causal_dir: Path, tmp_path: Path) -> None:
    """Nothing is merged here: a hook adds what the factors make of a layer's input to its output."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tensors = draw_factors(CAUSAL)
    adapter = save_adapter(tmp_path / "adapter", tensors, base_model_name_or_path=str(causal_dir))
    net, tokenizer = AutoModelForCausalLM.from_pretrained(causal_dir).eval(), AutoTokenizer.from_pretrained(causal_dir)
    for name in CAUSAL:
        a, b = (torch.tensor(tensors[f"base_model.model.{name}.lora_{letter}.weight"]) for letter in "AB")
        net.get_submodule(name).register_forward_hook(
            lambda _, inputs, output, a=a, b=b: output + 1.5 * (inputs[0] @ a.T @ b.T)
        )
    for text, logprobs in zip(TEXTS, compute(f"causal:{adapter}"), strict=True):
        ids = [tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]
        with torch.no_grad():
            table = net(torch.tensor([ids])).logits[0].log_softmax(-1)
        expected = [float(table[position - 1, ids[position]]) for position in range(1, len(ids))]
        assert logprobs == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(
    ("config", "scales"),
    [
        ({"use_rslora": True}, (3.0, 3.0)),
        ({"alpha_pattern": {"c_attn": 2}}, (0.5, 1.5)),
        ({"alpha_pattern": {"h.1.mlp.c_proj": 2, "c_proj": 8}}, (1.5, 0.5)),
        ({"alpha_pattern": {"^transformer.h.0.attn.c_attn": 1, "attn": 3}}, (0.25, 1.5)),
        # The end of a name's last part is no layer's name.
        ({"alpha_pattern": {"attn": 2, "proj": 2}}, (1.5, 1.5)),
        ({"r": 16, "rank_pattern": {"c_attn": 4, "c_proj": 4}}, (1.5, 1.5)),
        ({"r": 16, "rank_pattern": {"c_attn": 4, "c_proj": 4}, "use_rslora": True}, (3.0, 3.0)),
        ({"fan_in_fan_out": False}, (1.5, 1.5)),
        ({"fan_in_fan_out": True, "lora_dropout": 0.1, "modules_to_save": None}, (1.5, 1.5)),
    ],
)
def test_alpha_and_rank_are_those_of_the_layer(causal_dir: Path, tmp_path: Path, config, scales) -> None:
    tensors = draw_factors(CAUSAL)
    adapter = save_adapter(tmp_path / "adapter", tensors, base_model_name_or_path=str(causal_dir), **config)
    merged = save_merged(causal_dir, tmp_path / "merged", tensors, dict(zip(CAUSAL, scales, strict=True)))
    assert_same(compute(f"causal:{adapter}"), compute(f"causal:{merged}"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(masked_dir: Path, tmp_path: Path, dtype: str) -> None:
    tensors = draw_factors(BERT)
    adapter = save_adapter(tmp_path / "adapter", tensors, base_model_name_or_path=str(masked_dir))
    merged = save_merged(masked_dir, tmp_path / "merged", tensors, dict.fromkeys(BERT, 1.5))
    net = load_model(f"masked:{adapter}(dtype={dtype!r})").files.load_net(
        "AutoModelForMaskedLM", dtype=dtype, device="cpu"
    )
    plain = load_model(f"masked:{merged}(dtype={dtype!r})").files.load_net(
        "AutoModelForMaskedLM", dtype=dtype, device="cpu"
    )
    for layer in BERT:
        first, second = net.get_submodule(layer).weight, plain.get_submodule(layer).weight
        assert first.dtype == second.dtype == getattr(torch, dtype)
        # The weight of the base model is rounded too, so that the last digit may differ.
        assert torch.allclose(first.float(), second.float(), rtol=0.02, atol=0.01)


def test_a_trained_head_replaces_the_missing_one(masked_dir: Path, tmp_path: Path) -> None:
    """Without it, the masked model has no head for two labels, and is refused."""
    from safetensors.numpy import load_file, save_file

    random = np.random.default_rng(3)
    head = {
        "classifier.weight": random.normal(0, 1, (2, 32)).astype(np.float32),
        "classifier.bias": random.normal(0, 1, 2).astype(np.float32),
    }
    pooler = {
        "bert.pooler.dense.weight": random.normal(0, 1, (32, 32)).astype(np.float32),
        "bert.pooler.dense.bias": random.normal(0, 1, 32).astype(np.float32),
    }
    tensors = draw_factors(BERT)
    saved = {f"base_model.model.{name}": tensor for name, tensor in (head | pooler).items()}
    adapter = save_adapter(
        tmp_path / "adapter",
        tensors | saved,
        base_model_name_or_path=str(masked_dir),
        modules_to_save=["classifier", "pooler"],
        task_type="SEQ_CLS",
    )
    merged = save_merged(masked_dir, tmp_path / "merged", tensors, dict.fromkeys(BERT, 1.5))
    weights = load_file(merged / "model.safetensors")
    save_file(weights | head | pooler, merged / "model.safetensors", {"format": "pt"})
    assert_same(compute(f"classifier:{adapter}"), compute(f"classifier:{merged}"))
    without = save_adapter(tmp_path / "without", tensors, base_model_name_or_path=str(masked_dir))
    with pytest.raises(ModelError, match="has no weights for .*classifier"):
        compute(f"classifier:{without}")


# --- the signature ---


def test_the_adapter_is_in_the_signature(causal_dir: Path, tmp_path: Path, own_home: Path) -> None:
    """Scores of the base model were found for the model with the adapter, which PEFT was needed to see."""
    suite = Suite("s", (Sentence("1", TEXTS[0]),))
    shutil.copytree(causal_dir, tmp_path / "model")
    spec, tensors = f"causal:{tmp_path / 'model'}", draw_factors(CAUSAL)
    signatures, values = [load_model(spec).signature], [score(suite, spec).values["1"]]
    for change in ({}, {"lora_alpha": 7}, {"tensors": {name: 2 * tensor for name, tensor in tensors.items()}}):
        save_adapter(tmp_path / "model", **({"tensors": tensors} | change))
        model = load_model(spec)
        assert f"adapter={model.files.adapter.version!r}" in model.signature
        signatures.append(model.signature)
        values.append(score(suite, spec).values["1"])
    assert len(set(signatures)) == len(set(values)) == 4


def test_the_base_model_is_in_the_signature_of_a_folder_with_the_adapter_alone(
    masked_dir: Path, tmp_path: Path
) -> None:
    shutil.copytree(masked_dir, tmp_path / "base")
    adapter = save_adapter(tmp_path / "adapter", draw_factors(BERT), base_model_name_or_path="../base")
    first = load_model(f"masked:{adapter}").signature
    assert first.startswith("masked:adapter@")
    config = json.loads((tmp_path / "base/config.json").read_text())
    (tmp_path / "base/config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-5}))
    assert load_model(f"masked:{adapter}").signature != first


def test_a_model_with_an_adapter_is_opened_by_its_signature(causal_dir: Path, tmp_path: Path, monkeypatch) -> None:
    adapter = save_adapter(tmp_path / "adapter", draw_factors(CAUSAL), base_model_name_or_path=str(causal_dir))
    signature = load_model(f"causal:{adapter}").signature
    monkeypatch.chdir(tmp_path)
    assert load_model(signature).signature == signature
    other = signature.replace("adapter='", "adapter='0")
    with pytest.raises(ModelError, match="has an adapter with the hash .*: it is another model"):
        load_model(other)
    with pytest.raises(ModelError, match="has no adapter, not 'x': it is another model"):
        load_model(f"causal:{causal_dir}(adapter='x')")


def test_the_start_token_is_that_of_the_present_base_model(causal_dir: Path, tmp_path: Path) -> None:
    """It is cached on disk, under a hash that has to cover the base model in its folder."""
    shutil.copytree(causal_dir, tmp_path / "base")
    adapter = save_adapter(tmp_path / "adapter", draw_factors(CAUSAL), base_model_name_or_path="../base")
    assert load_model(f"causal:{adapter}").bos == "<|end|>"
    config = json.loads((tmp_path / "base/tokenizer_config.json").read_text())
    (tmp_path / "base/tokenizer_config.json").write_text(json.dumps(config | {"bos_token": None}))
    assert load_model(f"causal:{adapter}").bos is None


def test_an_adapter_may_bring_its_tokenizer(causal_dir: Path, tmp_path: Path) -> None:
    adapter = save_adapter(tmp_path / "adapter", draw_factors(CAUSAL), base_model_name_or_path=str(causal_dir))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(causal_dir / name, adapter / name)
    before = load_model(f"causal:{adapter}")
    assert before.bos == "<|end|>"
    config = json.loads((adapter / "tokenizer_config.json").read_text())
    (adapter / "tokenizer_config.json").write_text(json.dumps(config | {"bos_token": None}))
    after = load_model(f"causal:{adapter}")
    assert after.bos is None
    assert after.signature != before.signature


def test_layers_are_probed_with_the_adapter(masked_dir: Path, tmp_path: Path) -> None:
    from acceptability.models.hf.encoder import open_encoder

    adapter = save_adapter(tmp_path / "adapter", draw_factors(BERT), base_model_name_or_path=str(masked_dir))
    first, second = (
        next(iter(open_encoder(f"masked:{folder}").vectors(TEXTS[:1], [2])))[1] for folder in (masked_dir, adapter)
    )
    assert np.abs(first - second).max() > 0.05


def test_fine_tuning_does_not_start_from_the_base_model_alone(masked_dir: Path, tmp_path: Path) -> None:
    """Its weights were loaded, and the adapter was left out without a word."""
    from acceptability.errors import TrainError
    from acceptability.train.classifiers.finetuning import FineTuningRecipe
    from acceptability.train.classifiers.finetuning_task import load_pretrained

    adapter = save_adapter(tmp_path / "adapter", draw_factors(BERT), base_model_name_or_path=str(masked_dir))
    with pytest.raises(TrainError, match="adapter has an adapter, in .*: fine-tuning starts from whole weights"):
        load_pretrained(FineTuningRecipe(model=f"masked:{adapter}"))


# --- what is not plain LoRA, or damaged ---


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"peft_type": "IA3"}, "is of the kind IA3"),
        ({"peft_type": "LOHA"}, "is of the kind LOHA"),
        ({"use_dora": True}, "uses use_dora"),
        ({"bias": "lora_only"}, "trains biases"),
        ({"lora_bias": True}, "uses lora_bias"),
        ({"init_lora_weights": "pissa"}, "changes the base model"),
        ({"layer_replication": [[0, 2]]}, "uses layer_replication"),
        ({"trainable_token_indices": [3]}, "uses trainable_token_indices"),
        ({"target_parameters": ["experts.w"]}, "uses target_parameters"),
        ({"an_option_of_a_later_release": 1}, "uses an_option_of_a_later_release"),
        ({"rank_pattern": {"c_(attn|proj)": 4}}, "chooses ranks by the pattern"),
    ],
)
def test_another_kind_of_adapter_needs_peft(causal_dir: Path, tmp_path: Path, config, reason: str, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.models.hf.adapters.is_importable", lambda name: name != "peft")
    shutil.copytree(causal_dir, tmp_path / "model")
    save_adapter(tmp_path / "model", draw_factors(CAUSAL), **config)
    with pytest.raises(MissingExtra, match=rf"needs peft, since its adapter {reason}.* pip install peft") as error:
        load_model(f"causal:{tmp_path / 'model'}")
    assert "\n" not in str(error.value)


def test_another_kind_is_merged_by_peft(masked_dir: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForMaskedLM

    config = peft.IA3Config(target_modules=["query", "intermediate.dense"], feedforward_modules=[])
    wrapped = peft.get_peft_model(AutoModelForMaskedLM.from_pretrained(masked_dir), config).eval()
    for name, parameter in wrapped.named_parameters():
        if "ia3" in name:
            torch.nn.init.uniform_(parameter, 0.2, 2.0)
    wrapped.save_pretrained(tmp_path / "adapter")
    model = load_model(f"masked:{tmp_path / 'adapter'}")
    ids = torch.tensor([model.encode([Query(TEXTS[0])])[0].ids])
    with torch.no_grad():
        assert torch.allclose(model.net(input_ids=ids).logits, wrapped(input_ids=ids).logits, atol=1e-4)


class _FakePeftModel:
    """PEFT in two lines, where it is not installed: an adapter that sets a bias."""

    @classmethod
    def from_pretrained(cls, net: Any, folder: str) -> _FakePeftModel:
        wrapped = cls()
        wrapped.net, wrapped.folder = net, Path(folder)
        return wrapped

    def merge_and_unload(self, *, safe_merge: bool) -> Any:
        assert safe_merge
        if (self.folder / "broken").exists():
            raise KeyError("no such layer")
        self.net.cls.predictions.bias.data[5] += 3.0
        return self.net


def test_what_peft_returns_is_scored(masked_dir: Path, tmp_path: Path, monkeypatch) -> None:
    module = ModuleType("peft")
    module.PeftModel, module.__spec__ = _FakePeftModel, ModuleSpec("peft", None)
    monkeypatch.setitem(sys.modules, "peft", module)
    monkeypatch.setattr("acceptability.models.hf.adapters.is_importable", lambda _: True)
    shutil.copytree(masked_dir, tmp_path / "model")
    save_adapter(tmp_path / "model", {"x": np.zeros(1, np.float32)}, peft_type="IA3")
    spec = f"masked:{tmp_path / 'model'}"
    assert_other(compute(spec), compute(f"masked:{masked_dir}"))
    (tmp_path / "model/broken").touch()
    with pytest.raises(ModelError, match="peft cannot load the adapter .*no such layer"):
        load_model(f"{spec}(variant='word_l2r')").net  # noqa: B018


def test_transformers_does_not_load_the_adapter_too(causal_dir: Path, tmp_path: Path, monkeypatch) -> None:
    """With PEFT installed, it loads an adapter that it sees beside the weights, without merging it."""
    shutil.copytree(causal_dir, tmp_path / "model")
    save_adapter(tmp_path / "model", draw_factors(CAUSAL))
    monkeypatch.setattr("acceptability.models.hf.adapters.is_importable", lambda _: False)
    with hide_adapter(tmp_path / "model") as folder:
        assert folder == tmp_path / "model"
    monkeypatch.setattr("acceptability.models.hf.adapters.is_importable", lambda _: True)
    with hide_adapter(tmp_path / "model") as folder:
        seen = {path.name for path in folder.iterdir()}
    assert seen == {path.name for path in causal_dir.iterdir()}
    expected = compute(f"causal:{tmp_path / 'model'}(eos=True)")
    monkeypatch.undo()
    assert_same(compute(f"causal:{tmp_path / 'model'}(eos=True)"), expected)


@pytest.mark.parametrize(
    "name", ["transformer.wte.lora_embedding_A", "transformer.h.0.attn.c_attn.lora_magnitude_vector"]
)
def test_a_weight_of_another_kind_needs_peft(causal_dir: Path, tmp_path: Path, name: str, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.models.hf.adapters.is_importable", lambda name: name != "peft")
    odd = {f"base_model.model.{name}": np.zeros((4, 330), np.float32)}
    adapter = save_adapter(
        tmp_path / "adapter",
        draw_factors(CAUSAL) | odd,
        base_model_name_or_path=str(causal_dir),
        modules_to_save=["lm_head"],
    )
    with pytest.raises(MissingExtra, match="needs peft, since its adapter has the weight"):
        load_model(f"causal:{adapter}")


def test_prompt_tuning_is_refused(causal_dir: Path, tmp_path: Path) -> None:
    adapter = save_adapter(
        tmp_path / "adapter",
        {"prompt_embeddings": np.zeros((4, 32), np.float32)},
        base_model_name_or_path=str(causal_dir),
        peft_type="PROMPT_TUNING",
    )
    with pytest.raises(ModelError, match="kind PROMPT_TUNING, .* cannot be merged. Score the base model"):
        load_model(f"causal:{adapter}")


def test_tied_weights_are_not_changed_in_two_places(causal_dir: Path, tmp_path: Path) -> None:
    adapter = save_adapter(
        tmp_path / "adapter", draw_factors({"lm_head": (32, 330)}), base_model_name_or_path=str(causal_dir)
    )
    with pytest.raises(ModelError, match=r"changes lm_head.weight, which is tied to transformer.wte.weight"):
        compute(f"causal:{adapter}")


@pytest.mark.parametrize(
    ("layers", "config", "problem"),
    [
        ({"transformer.h.9.attn.c_attn": (32, 96)}, {}, "which the base model lacks"),
        ({"transformer.ln_f": (32, 32)}, {}, "a LayerNorm in the base model"),
        ({"transformer.h.0.attn.c_attn": (32, 90)}, {}, r"shape \[32, 90\], and its weight has \[32, 96\]"),
        (CAUSAL, {"r": 8}, "has the rank 8 .* it is damaged"),
        (CAUSAL, {"lora_alpha": "x"}, "alpha 'x' .* it is damaged"),
    ],
)
def test_an_adapter_of_another_model_is_an_error(causal_dir: Path, tmp_path: Path, layers, config, problem) -> None:
    adapter = save_adapter(tmp_path / "a", draw_factors(layers), base_model_name_or_path=str(causal_dir), **config)
    with pytest.raises(ModelError, match=problem):
        compute(f"causal:{adapter}")


def test_half_a_pair_of_factors_is_an_error(causal_dir: Path, tmp_path: Path) -> None:
    tensors = {name: tensor for name, tensor in draw_factors(CAUSAL).items() if "lora_B" not in name}
    adapter = save_adapter(tmp_path / "adapter", tensors, base_model_name_or_path=str(causal_dir))
    with pytest.raises(ModelError, match="it is damaged"):
        compute(f"causal:{adapter}")


@pytest.mark.parametrize(
    ("base", "problem"),
    [
        (None, "names no base model"),
        ("/nowhere/at/all", "no model is there"),
        ("~/model", "no model is there"),
        (".", "there is no folder of that name"),
    ],
)
def test_a_base_model_that_is_not_there_is_an_error(tmp_path: Path, base, problem: str) -> None:
    adapter = save_adapter(tmp_path / "adapter", draw_factors(CAUSAL), base_model_name_or_path=base)
    with pytest.raises(ModelError, match=problem):
        load_model(f"causal:{adapter}")


def test_a_base_model_with_an_adapter_is_refused(causal_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(causal_dir, tmp_path / "base")
    save_adapter(tmp_path / "base", draw_factors(CAUSAL))
    adapter = save_adapter(tmp_path / "adapter", draw_factors(CAUSAL), base_model_name_or_path="../base")
    with pytest.raises(ModelError, match="which has an adapter of its own: merge that first"):
        load_model(f"causal:{adapter}")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("adapter_config.json", b"{", "cannot read .*adapter_config.json"),
        ("adapter_config.json", b"[]", "names no peft_type"),
        ("adapter_model.safetensors", b"\0" * 20, "cannot read .*adapter_model.safetensors"),
        ("adapter_model.safetensors", None, "but no adapter_model.safetensors"),
    ],
)
def test_a_damaged_adapter_is_an_error(causal_dir: Path, tmp_path: Path, name, content, problem) -> None:
    """It was scored without the adapter."""
    shutil.copytree(causal_dir, tmp_path / "model")
    save_adapter(tmp_path / "model", draw_factors(CAUSAL))
    if content is None:
        (tmp_path / "model" / name).unlink()
    else:
        (tmp_path / "model" / name).write_bytes(content)
    with pytest.raises(ModelError, match=problem):
        load_model(f"causal:{tmp_path / 'model'}")


def test_weights_of_the_adapter_are_none_of_the_model(causal_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(causal_dir, tmp_path / "model")
    save_adapter(tmp_path / "model", draw_factors(CAUSAL))
    (tmp_path / "model/model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"has no \*.safetensors weights"):
        load_model(f"causal:{tmp_path / 'model'}")
