"""Recurrent networks: their parts by their definitions, and the model that scores sentences with them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from acceptability import load_model
from acceptability.errors import ModelError, QueryError
from acceptability.models.recurrent import CELLS, OUTPUTS, Recurrent, RecurrentShape, compute_hidden_states, open_model
from acceptability.models.recurrent.network import (
    DropoutRates,
    QRNNLayer,
    RecurrentLayer,
    RecurrentNetwork,
    apply_dropout,
    linear_recurrence,
    read_recurrent_network,
    reverse_sequences,
    serialize_recurrent_network,
)
from acceptability.models.recurrent.output_layers import ClassSoftmax, build_output_layer
from acceptability.text.words import END, SPECIAL_WORDS, START, UNKNOWN, Vocabulary
from acceptability.types import Query
from tiny import TEXTS, make_recurrent

EDGES = (0, 4, 5, 11, 23)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)


def run_model(model: Recurrent, text: str, **options: object):
    return model.run(model.encode([Query(text, **options)]))[0]


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 33])
def test_the_parallel_scan_equals_a_loop(length: int) -> None:
    keep = torch.rand(length, 3, 5, dtype=torch.float64, requires_grad=True)
    new = torch.randn(length, 3, 5, dtype=torch.float64, requires_grad=True)
    state, steps = torch.zeros(3, 5, dtype=torch.float64), []
    for time in range(length):
        state = keep[time] * state + new[time]
        steps.append(state)
    plain, fast = torch.stack(steps), linear_recurrence(keep, new)
    assert torch.allclose(plain, fast, atol=1e-12)
    weights = torch.randn_like(plain)
    expected, found = (torch.autograd.grad((each * weights).sum(), (keep, new)) for each in (plain, fast))
    assert all(torch.allclose(one, two, atol=1e-10) for one, two in zip(expected, found, strict=True))


def test_the_parallel_scan_does_not_underflow() -> None:
    keep = torch.full((400, 2), 1e-30)
    assert linear_recurrence(keep, torch.ones(400, 2)).tolist() == torch.ones(400, 2).tolist()


@pytest.mark.parametrize("window", [1, 2])
def test_a_qrnn_layer_follows_its_definition(window: int) -> None:
    layer, values = QRNNLayer(4, 3, window), torch.randn(9, 2, 4, requires_grad=True)
    cell, before, steps = torch.zeros(2, 3), torch.zeros(2, 4), []
    for now in values:
        z, f, o = layer.gates(torch.cat([before, now], 1) if window == 2 else now).chunk(3, 1)
        f = torch.sigmoid(f)
        cell, before = f * cell + (1 - f) * torch.tanh(z), now
        steps.append(torch.sigmoid(o) * cell)
    plain, fast = torch.stack(steps), layer(values, None)[0]
    assert torch.allclose(plain, fast, atol=1e-6)
    targets = (values, layer.gates.weight, layer.gates.bias)
    expected, found = (torch.autograd.grad((each**2).sum(), targets, retain_graph=True) for each in (plain, fast))
    assert all(torch.allclose(one, two, atol=1e-5) for one, two in zip(expected, found, strict=True))


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_elman_and_lstm_layers_equal_those_of_torch(cell: str) -> None:
    layer, values = RecurrentLayer(cell, 4, 3), torch.randn(5, 2, 4)
    own = (torch.nn.LSTM if cell == "lstm" else torch.nn.RNN)(4, 3)
    with torch.no_grad():
        for target, part in zip(own.parameters(), layer._split_weights(0.0), strict=True):
            target.copy_(part)
    assert torch.allclose(own(values)[0], layer(values, None)[0], atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_states_carry_over_between_two_parts_of_a_text(cell: str) -> None:
    network = RecurrentNetwork(RecurrentShape(cell, 23, 6, 7, 2, "softmax", (0, 23))).eval()
    ids = torch.randint(0, 23, (9, 2))
    whole, _ = network.run_layers(ids)
    first, state = network.run_layers(ids[:4])
    second, _ = network.run_layers(ids[4:], state)
    assert torch.allclose(whole[-1], torch.cat([first[-1], second[-1]]), atol=1e-6)


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("edges", [EDGES, (0, 23)])
def test_probabilities_sum_to_one_and_both_methods_agree(name: str, edges: tuple[int, ...]) -> None:
    layer = build_output_layer(name, 8, edges)
    hidden, table = torch.randn(40, 8), torch.randn(23, 8)
    logs = layer.all_logprobs(hidden, table)
    assert logs.shape == (40, 23)
    sums = logs.exp().sum(1)
    if name == "tas_double" and len(edges) > 2:
        assert (sums > 1.001).all(), "a second softmax over the frequent words alone gives away too much"
    else:
        assert torch.allclose(sums, torch.ones(40), atol=1e-5)
    targets = torch.arange(40) % 23
    one = layer(hidden, targets, table)
    assert torch.allclose(one, logs[torch.arange(40), targets], atol=1e-5)
    same = torch.full((40,), 22)
    assert torch.allclose(layer(hidden, same, table), logs[:, 22], atol=1e-5)


def test_the_class_softmax_follows_its_definition() -> None:
    layer, hidden, word = ClassSoftmax(8, EDGES), torch.randn(1, 8), 7
    number = 2
    start, end = EDGES[number], EDGES[number + 1]
    of_class = (hidden @ layer.classes.weight.T + layer.classes.bias).softmax(1)[0, number]
    of_word = (hidden @ layer.weight[start:end].T + layer.bias[start:end]).softmax(1)[0, word - start]
    found = layer(hidden, torch.tensor([word]), hidden).exp()
    assert found.item() == pytest.approx((of_class * of_word).item(), rel=1e-5)


def test_log_softmax_is_idempotent() -> None:
    """Why the proper kind stands for the published code: it takes log-softmax of what is log-softmax already."""
    logs = torch.randn(3, 9).log_softmax(1)
    assert torch.allclose((logs - 2.5).log_softmax(1), logs, atol=1e-6)


def test_locked_dropout_drops_the_same_dimensions_at_every_step() -> None:
    values = torch.ones(6, 4, 50)
    locked, free = (apply_dropout(values, 0.5, locked=each) for each in (True, False))
    assert (locked == locked[0]).all()
    assert not (free == free[0]).all()
    assert set(locked.unique().tolist()) == {0.0, 2.0}
    assert apply_dropout(values, 0.0, locked=True) is values


@pytest.mark.parametrize("kind", ["words", "inputs", "between", "outputs", "recurrent"])
@pytest.mark.parametrize("cell", CELLS)
def test_dropout_acts_only_in_training(cell: str, kind: str) -> None:
    shape = RecurrentShape(cell, 23, 6, 7, 2, "softmax", (0, 23))
    network, ids = RecurrentNetwork(shape, DropoutRates(**{kind: 0.5})), torch.randint(0, 23, (5, 3))
    one, two = (network.train().run_layers(ids)[0][-1] for _ in range(2))
    assert not torch.equal(one, two)
    one, two = (network.eval().run_layers(ids)[0][-1] for _ in range(2))
    assert torch.equal(one, two)


def test_sequences_are_reversed_within_their_length() -> None:
    rows, lengths = torch.tensor([[1, 7], [2, 8], [3, 0]]), torch.tensor([3, 2])
    assert torch.equal(reverse_sequences(reverse_sequences(rows, lengths), lengths), rows)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("output", ["classes", "adaptive", "tas"])
def test_scores_are_the_networks_and_batching_changes_nothing(tmp_path: Path, cell: str, output: str) -> None:
    model = open_model(str(make_recurrent(tmp_path / "net", cell, output)), eos=True)
    alone = [run_model(model, text).logprobs for text in TEXTS]
    together = model.run(model.encode([Query(text) for text in TEXTS]))
    for one, two in zip(alone, together, strict=True):
        assert two.logprobs == pytest.approx(one, abs=1e-5)
    ids = [START, *model.vocabulary.to_ids(model.vocabulary.tokenize(TEXTS[0])[0]), END]
    net = read_recurrent_network(tmp_path / "net" / "model.safetensors", "cpu")
    with torch.no_grad():
        hidden = net.run_layers(torch.tensor(ids[:-1]).unsqueeze(1))[0][-1][:, 0]
        logs = net.output.all_logprobs(hidden, net.table)
    assert alone[0] == pytest.approx(logs[torch.arange(len(ids) - 1), ids[1:]].numpy(), abs=1e-5)


@pytest.mark.parametrize(("bits", "most"), [(16, 1e-3), (8, 5e-2)])
def test_fewer_bits_make_a_smaller_file_with_nearly_the_same_scores(tmp_path: Path, bits: int, most: float) -> None:
    whole = make_recurrent(tmp_path / "net")
    net = read_recurrent_network(whole / "model.safetensors", "cpu")
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "vocabulary.json").write_bytes((whole / "vocabulary.json").read_bytes())
    content = serialize_recurrent_network(net, bits)
    (tmp_path / "small" / "model.safetensors").write_bytes(content)
    assert len(content) < (whole / "model.safetensors").stat().st_size
    full, small = (run_model(open_model(str(tmp_path / name)), TEXTS[0]).logprobs for name in ("net", "small"))
    assert small == pytest.approx(full, abs=most)
    assert (small != full).any()


def test_offsets_contexts_and_targets(tmp_path: Path) -> None:
    model = load_model(f"recurrent:{make_recurrent(tmp_path / 'net')}")
    whole = run_model(model, "The cats sleep.")
    assert whole.tokens == ("The", "cats", "sleep", ".")
    assert whole.offsets == ((0, 3), (4, 8), (9, 14), (14, 15))
    after = run_model(model, "cats sleep.", context="The")
    assert after.logprobs == pytest.approx(whole.logprobs[1:], abs=1e-6)
    assert after.offsets[0] == (0, 4)
    part = run_model(model, "The cats sleep.", target=(4, 8))
    assert (part.tokens, part.logprobs) == (("cats",), pytest.approx(whole.logprobs[1:2], abs=1e-6))


def test_an_unknown_word_has_its_policy(tmp_path: Path) -> None:
    folder = make_recurrent(tmp_path / "net")
    own, number, uniform = (
        load_model(f"recurrent:{folder}{each}") for each in ("", "(unknown=-9)", "(unknown='uniform')")
    )
    found = [run_model(model, "The zebra sleep").logprobs for model in (own, number, uniform)]
    assert own.vocabulary.to_ids(["zebra"]) == [UNKNOWN]
    assert found[1][1] == -9
    assert found[2][1] == pytest.approx(-math.log(len(own.vocabulary)))
    assert found[0][0] == found[1][0] == found[2][0]
    assert found[0][2] == found[1][2]
    assert own.is_unknown("zebra")
    assert "unknown=-9.0" in number.signature
    with pytest.raises(QueryError, match="knows none of its words"):
        run_model(own, "zebra gnu")


@pytest.mark.parametrize("cell", CELLS)
def test_hidden_states_belong_to_the_words(tmp_path: Path, cell: str) -> None:
    model = open_model(str(make_recurrent(tmp_path / "net", cell, directions=2)))
    texts = ["The cats sleep.", "Cats"]
    short, long = compute_hidden_states(model, texts)[1], compute_hidden_states(model, texts)[0]
    assert [layer.shape for layer in long["forwards"]] == [(4, 6), (4, 10), (4, 6)]
    assert [layer.shape for layer in short["backwards"]] == [(1, 6), (1, 10), (1, 6)]
    assert np.array_equal(long["forwards"][0], long["backwards"][0]), "a word's own vector knows no direction"
    other = compute_hidden_states(model, ["The cats chased the dog."])[0]
    assert np.allclose(long["forwards"][2][:2], other["forwards"][2][:2], atol=1e-6), "the future is not seen"
    assert not np.allclose(long["backwards"][2][:2], other["backwards"][2][:2], atol=1e-6)
    ending = compute_hidden_states(model, ["Who sleep."])[0]
    assert np.allclose(long["backwards"][2][2:], ending["backwards"][2][1:], atol=1e-6), (
        "the past is not seen backwards"
    )
    assert "backwards" not in compute_hidden_states(open_model(str(make_recurrent(tmp_path / "one", cell))), texts)[0]


def test_a_signature_reads_back_and_another_content_is_refused(tmp_path: Path) -> None:
    folder = make_recurrent(tmp_path / "net")
    signature = load_model(f"recurrent:{folder}").signature
    version = signature.partition("@")[2].partition("(")[0]
    assert load_model(f"recurrent:{folder}@{version}").signature == signature
    with pytest.raises(ModelError, match="another model"):
        load_model(f"recurrent:{folder}@000000000000")


def test_what_is_no_recurrent_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="which model"):
        open_model("")
    with pytest.raises(ModelError, match=r"has no model\.safetensors"):
        open_model(str(tmp_path))
    folder = make_recurrent(tmp_path / "net")
    for options, message in (({"unknown": 1}, "unknown is 1"), ({"eos": "yes"}, "eos is 'yes'")):
        with pytest.raises(ModelError, match=message):
            open_model(str(folder), **options)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ModelError, match="cannot be read as a recurrent model"):
        run_model(open_model(str(folder)), "The cats")
    other = Vocabulary((*SPECIAL_WORDS, "a"), "split", lower=False)
    folder = make_recurrent(tmp_path / "mixed")
    (folder / "vocabulary.json").write_bytes(other.to_json())
    with pytest.raises(ModelError, match="belong to different models"):
        run_model(open_model(str(folder)), "a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell": "gru"}, "no recurrent network 'gru'"),
        ({"output": "none"}, "output is 'none'"),
        ({"edges": (0, 30, 23)}, "rising numbers from 0 to the vocabulary.s size, 23"),
        ({"hidden": 0}, "cannot have the sizes"),
    ],
)
def test_impossible_shapes(options: dict[str, object], message: str) -> None:
    usual = {"cell": "rnn", "words": 23, "embedding": 4, "hidden": 4, "layers": 1, "output": "tas", "edges": (0, 23)}
    with pytest.raises(ModelError, match=message):
        RecurrentShape(**{**usual, **options})


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_half_precision_changes_little(cell: str, output: str) -> None:
    """As on a GPU, where products are computed in bfloat16: what is summed up or handed on stays in float32."""
    shape = RecurrentShape(cell, 23, 6, 10, 2, output, (0, 23) if "softmax" in output else EDGES, 2)
    network, ids = RecurrentNetwork(shape, DropoutRates(between=0.1, recurrent=0.1)), torch.randint(0, 23, (9, 40))
    state = [tuple(each.detach() for each in part) for part in network.run_layers(ids)[1]]
    found = []
    for half in (False, True):
        torch.manual_seed(5)
        network.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logs, after = network(ids[:-1], ids[1:], state)
        logs.mean().backward()
        assert logs.dtype == torch.float32
        assert {each.dtype for part in after for each in part} == {torch.float32}
        found.append((logs.mean().item(), network.table.grad.norm().item()))
    assert found[1] == pytest.approx(found[0], rel=0.03)
