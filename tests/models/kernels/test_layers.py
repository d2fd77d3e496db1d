"""Replaced layers give what those of the network give."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from acceptability.errors import ModelError
from acceptability.models.kernels import head, layers
from acceptability.models.kernels.layers import DiskEmbedding, keep_embedding_on_disk

GELU = {None: lambda output: output, "none": torch.nn.functional.gelu, "tanh": torch.nn.GELU("tanh")}
NEAR = {torch.float32: 1e-5, torch.bfloat16: 0.1}


@pytest.mark.parametrize("dtype", NEAR)
@pytest.mark.parametrize("gelu", GELU)
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_agrees_with_a_linear_one(dtype, gelu, bias) -> None:
    if not layers.is_packed_linear_available(dtype):
        pytest.skip(f"this PyTorch packs no layers in {dtype} on this CPU")
    torch.manual_seed(0)
    linear = torch.nn.Linear(24, 40, bias=bias).to(dtype)
    packed = layers.PackedLinear(linear.weight, linear.bias, gelu)
    for shape in ((1, 24), (7, 24), (2, 3, 24), (1, 1500, 24)):
        rows = torch.randn(shape).to(dtype)
        with torch.inference_mode():
            actual, expected = packed(rows), GELU[gelu](linear(rows))
        assert actual.dtype == dtype
        torch.testing.assert_close(actual.float(), expected.float(), atol=NEAR[dtype], rtol=0)


def test_a_network_of_packed_layers_has_a_device_and_a_precision() -> None:
    packed = layers.PackedLinear(torch.randn(4, 3), None)
    assert [(parameter.device.type, parameter.dtype) for parameter in packed.parameters()] == [("cpu", torch.float32)]


def test_layers_stay_plain_where_packed_ones_are_wrong(monkeypatch) -> None:
    layers.is_packed_linear_available.cache_clear()
    monkeypatch.setattr(
        layers.PackedLinear, "forward", lambda self, rows: torch.zeros(*rows.shape[:-1], self.out_features)
    )
    try:
        assert not layers.is_packed_linear_available(torch.float32)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4))
        layers.pack_linear_layers(net)
        assert type(net[0]) is torch.nn.Linear
    finally:
        layers.is_packed_linear_available.cache_clear()


class Net(torch.nn.Module):
    """An embedding that two parts share, and a layer of the same shape."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding.from_pretrained(weight)
        self.part = torch.nn.ModuleDict({"again": self.embedding})
        self.other = torch.nn.Embedding.from_pretrained(weight + 1)

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.embedding


@pytest.fixture
def weight() -> torch.Tensor:
    return torch.randn(50, 6, generator=torch.Generator().manual_seed(1))


def sharded(folder: Path, weight: torch.Tensor) -> None:
    """Save weights in two files, the embedding in the second, behind others of the same shape."""
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(50, 6), "half": weight.to(torch.bfloat16)}, folder / "model-00001-of-00002.safetensors")
    last = {"b": torch.ones(3), "c": weight + 2, "wte": weight, "z": torch.full((50, 6), 7.0)}
    save_file(last, folder / "model-00002-of-00002.safetensors", metadata={"format": "pt"})


def test_an_embedding_on_disk_agrees_with_one_in_memory(tmp_path: Path, weight) -> None:
    sharded(tmp_path, weight)
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    assert type(net.embedding) is DiskEmbedding
    assert net.part["again"] is net.embedding
    assert type(net.other) is torch.nn.Embedding
    ids = torch.tensor([[3, 3, 49], [0, 17, 3]])
    torch.testing.assert_close(net.embedding(ids), weight[ids], atol=0, rtol=0)


@pytest.mark.parametrize("id_", [-1, 50, 51])
def test_an_unknown_token_is_an_error_and_no_other_row(tmp_path: Path, weight, id_) -> None:
    sharded(tmp_path, weight)
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    with pytest.raises(IndexError):
        net.embedding(torch.tensor([[1, id_]]))


def test_a_file_that_shrinks_is_an_error_and_no_random_row(tmp_path: Path, weight) -> None:
    sharded(tmp_path, weight)
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    path = tmp_path / "model-00002-of-00002.safetensors"
    with path.open("r+b") as opened:
        opened.truncate(100)
    with pytest.raises(ModelError, match="has become shorter"):
        net.embedding(torch.tensor([[49]]))


@pytest.mark.parametrize("content", ["nothing", "other", "half"])
def test_an_embedding_that_no_file_has_stays_in_memory(tmp_path: Path, weight, content) -> None:
    from safetensors.torch import save_file

    if content != "nothing":
        save_file({"wte": weight + 1 if content == "other" else weight.bfloat16()}, tmp_path / "model.safetensors")
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    assert type(net.embedding) is torch.nn.Embedding


@pytest.mark.parametrize("damage", [b"", b"\xff" * 8, b"\x04" + b"\0" * 7 + b"nono", b"\x02" + b"\0" * 7 + b"[]"])
def test_a_damaged_file_beside_the_weights_changes_nothing(tmp_path: Path, weight, damage) -> None:
    """A GGUF file may lie in a folder with anything."""
    (tmp_path / "a.safetensors").write_bytes(damage)
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    assert type(net.embedding) is torch.nn.Embedding
    sharded(tmp_path, weight)
    keep_embedding_on_disk(net, tmp_path)
    assert type(net.embedding) is DiskEmbedding


def test_a_thread_waits_until_another_has_read_its_rows(tmp_path: Path, weight) -> None:
    """Between seeking a row and reading it, another thread must not seek its own."""
    sharded(tmp_path, weight)
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    plain, others, results = net.embedding.file, [], {}

    def look(token: int) -> None:
        results[token] = net.embedding(torch.tensor([token]))

    class Interrupted:
        """A file that a second thread reads just after the first has sought its row."""

        def seek(self, position: int) -> None:
            plain.seek(position)
            if not others:
                others.append(threading.Thread(target=look, args=(40,)))
                others[0].start()
                others[0].join(timeout=0.3)

        def readinto(self, row: np.ndarray) -> int:
            return plain.readinto(row)

    net.embedding.file = Interrupted()
    look(7)
    others[0].join()
    assert {token: torch.equal(rows[0], weight[token]) for token, rows in results.items()} == {7: True, 40: True}


def test_the_file_is_closed_with_the_network(tmp_path: Path, weight) -> None:
    sharded(tmp_path, weight)
    net = Net(weight)
    keep_embedding_on_disk(net, tmp_path)
    opened = net.embedding.file
    del net
    gc.collect()
    assert opened.closed


def test_the_header_is_that_of_safetensors(tmp_path: Path, weight) -> None:
    sharded(tmp_path, weight)
    content = (tmp_path / "model-00002-of-00002.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + length])["wte"]["shape"] == [50, 6]


def make_net_with_head(table: torch.Tensor):
    """A network whose head is a table, and whose body is never run."""

    class Body(torch.nn.Module):
        def forward(self, **_: object) -> None:
            raise AssertionError("the body was run")

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base_model, self.sizes = Body(), []
            self.config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(vocab_size=table.shape[1]))

        def forward(self, input_ids: torch.Tensor):
            states = self.base_model(input_ids=input_ids).last_hidden_state
            self.sizes.append(states.shape[1])
            return SimpleNamespace(logits=states @ table)

    net = Whole()
    head.make_head_separable(net)
    return net


@pytest.mark.parametrize("step", [1, 2, 3, 64])
@pytest.mark.parametrize("token_group", [None, np.array([1, 4])])
def test_the_size_of_chunks_changes_nothing(step: int, token_group, monkeypatch) -> None:
    monkeypatch.setitem(head.LOGIT_ROWS, "cpu", step)
    generator = torch.Generator().manual_seed(2)
    states, table = (torch.randn(shape, generator=generator) for shape in ((9, 4), (4, 6)))
    rows, targets = np.array([7, 0, 7, 3, 3, 8, 0, 7]), np.array([1, 2, 1, 0, 5, 3, 4, 2])
    net = make_net_with_head(table)
    actual = head.compute_logprobs(net, states, rows, targets, token_group)()
    whole = (states @ table).log_softmax(1)
    expected = whole[rows, targets]
    if token_group is not None:
        expected = torch.stack([expected, whole[:, token_group].logsumexp(1)[rows]])
    np.testing.assert_allclose(actual, expected.numpy(), atol=1e-5)
    assert actual.dtype == np.float32
    assert sum(net.sizes) == 4, "each row that is needed is computed once, and no other"
    assert max(net.sizes) <= step


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_fused_rms_norm_rounds_as_that_of_llama(dtype) -> None:
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    generator = torch.Generator().manual_seed(1)
    norm = LlamaRMSNorm(16, eps=1e-3).to(dtype)
    norm.weight.data = torch.randn(16, generator=generator).to(dtype)
    states = torch.randn(3, 5, 16, generator=generator).to(dtype)
    fused = layers.FusedRMSNorm(norm.weight, norm.variance_epsilon)
    # In half precision to the bit, since rounding happens at the same two places.
    tolerance = 1e-6 if dtype == torch.float32 else 0
    torch.testing.assert_close(fused(states), norm(states), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("bias", [True, False])
def test_the_padding_of_the_vocabulary_has_no_probability(bias: bool, monkeypatch) -> None:
    def multiply(rows, table, *, out_dtype):
        return (rows @ table).to(out_dtype)

    # Only CUDA has a product with a result in another precision.
    monkeypatch.setattr(torch, "mm", multiply)
    torch.manual_seed(3)
    linear = torch.nn.Linear(8, 70, bias=bias)
    padded, states = layers.PaddedVocabularyHead(linear.weight, linear.bias), torch.randn(4, 8)
    torch.testing.assert_close(padded(states), linear(states))
    with layers.keep_vocabulary_padding():
        kept = padded(states)
    assert kept.shape == (4, 128)
    torch.testing.assert_close(kept.log_softmax(1)[:, :70], linear(states).log_softmax(1))
    assert padded(states).shape == (4, 70)


def test_a_network_that_is_its_own_body_cannot_be_split() -> None:
    from acceptability.models.kernels.verify import UnsupportedNetwork

    net = torch.nn.Linear(2, 2)
    net.base_model = SimpleNamespace()
    object.__setattr__(net, "base_model", net)
    with pytest.raises(UnsupportedNetwork, match="cannot be separated from its body"):
        head.make_head_separable(net)
