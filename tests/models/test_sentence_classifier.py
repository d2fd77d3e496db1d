"""Classifiers that were trained by this package: padding, folders, what they refuse."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from acceptability import load_model
from acceptability.errors import ModelError, QueryError
from acceptability.models.recurrent import Recurrent, compute_hidden_states
from acceptability.models.sentence import (
    FORMAT,
    SentenceClassifier,
    SentenceNetworkShape,
    is_sentence_classifier,
    read_sentence_shape,
)
from acceptability.models.sentence.network import (
    ScalarMix,
    build_sentence_network,
    compute_lm_states,
    pad_sentences,
    serialize_sentence_network,
)
from acceptability.models.sentence.word_vectors import read_vectors
from acceptability.text.words import SPECIAL_WORDS, Vocabulary
from acceptability.types import Query
from tiny import TEXTS, make_recurrent

KNOWN = Vocabulary((*SPECIAL_WORDS, "the", "cats", "sleep", "dog", ".", "cat", "chased"), "split", lower=True)
SHAPES = [
    SentenceNetworkShape("cbow", "sum", 6, words=len(KNOWN), top=5),
    SentenceNetworkShape("cbow", "mean", 6, words=len(KNOWN), top=5, activation="relu"),
    SentenceNetworkShape("pooling", "max", 6, words=len(KNOWN), layers=2, hidden=4, top=3),
    SentenceNetworkShape("pooling", "max", 10, mixed=2, directions=2, layers=1, hidden=4),
    SentenceNetworkShape("cbow", "mean", 10, mixed=2, directions=2, top=3),
]


def make_classifier(folder: Path, shape: SentenceNetworkShape) -> SentenceClassifier:
    """Save a classifier that was not trained; one that reads states reads those of a tiny language model."""
    torch.manual_seed(5)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(serialize_sentence_network(build_sentence_network(shape)))
    if shape.reads_states:
        make_recurrent(folder / "lm", directions=2)
    else:
        (folder / "vocabulary.json").write_bytes(KNOWN.to_json())
    model = load_model(f"classifier:{folder}")
    assert isinstance(model, SentenceClassifier)
    return model


def logits(model: SentenceClassifier, texts: list[str]) -> list[float]:
    scores = model.run(model.encode([Query(text) for text in texts]))
    assert all(each.logits[0] == 0 for each in scores)
    return [each.logits[1] for each in scores]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.network}-{shape.pool}-{shape.mixed}")
def test_padding_never_changes_a_score(shape: SentenceNetworkShape, tmp_path: Path) -> None:
    model = make_classifier(tmp_path / "made", shape)
    texts = ["The cats sleep.", "The", "The dog the cats chased sleep the dog the cat chased the cats.", "Cats sleep"]
    together = logits(model, texts)
    assert together == pytest.approx([logits(model, [text])[0] for text in texts], abs=1e-6)
    assert len({round(each, 5) for each in together}) == len(texts)


@pytest.mark.parametrize("network", ["cbow", "pooling"])
def test_the_content_of_padding_is_ignored(network: str) -> None:
    """A sum that counts the filling, or a maximum that may be taken from it, gives another number."""
    sizes = {"top": 5} if network == "cbow" else {"layers": 1, "hidden": 4}
    net = build_sentence_network(
        SentenceNetworkShape(network, "sum" if network == "cbow" else "max", 6, words=len(KNOWN), **sizes)
    ).eval()
    values, lengths = pad_sentences([[3, 4, 5], [6]]), torch.tensor([3, 1])
    other = values.clone()
    other[1:, 1] = 7
    assert torch.equal(net(values, lengths), net(other, lengths))
    assert not torch.equal(net(values, lengths), net(other, torch.tensor([3, 2])))


def test_cbow_is_blind_to_order_and_pooling_is_not(tmp_path: Path) -> None:
    texts = ["the cats chased the dog", "the dog chased the cats"]
    one, other = logits(make_classifier(tmp_path / "cbow", SHAPES[0]), texts)
    assert one == pytest.approx(other, abs=1e-6)
    one, other = logits(make_classifier(tmp_path / "pooling", SHAPES[2]), texts)
    assert abs(one - other) > 1e-5


def test_a_cbow_worked_by_hand(tmp_path: Path) -> None:
    shape = SentenceNetworkShape("cbow", "sum", 2, words=len(KNOWN), top=1)
    net = build_sentence_network(shape)
    with torch.no_grad():
        net.inputs.table.copy_(torch.arange(len(KNOWN) * 2).view(-1, 2) / 10)
        net.head.hidden.weight.copy_(torch.tensor([[0.5, -0.25]]))
        net.head.hidden.bias.fill_(0.1)
        net.head.output.weight.fill_(2.0)
        net.head.output.bias.fill_(-1.0)
    logit = net.eval()(torch.tensor([[3], [4]]), torch.tensor([2]))
    # Words 3 and 4 are (0.6, 0.7) and (0.8, 0.9): their sum (1.4, 1.6) gives 0.5 · 1.4 - 0.25 · 1.6 + 0.1 = 0.4.
    assert logit.item() == pytest.approx(2 * np.tanh(0.4) - 1, abs=1e-6)


@pytest.mark.parametrize("cell", ["lstm", "qrnn"])
def test_states_are_those_of_the_language_model_in_both_directions(cell: str, tmp_path: Path) -> None:
    lm = Recurrent(make_recurrent(tmp_path / "lm", cell, directions=2), eos=False, unknown="<unk>", lenient=True)
    found = compute_lm_states(lm.net, [each.word_ids for each in lm.encode([Query(text) for text in TEXTS])])
    for column, wanted in enumerate(compute_hidden_states(lm, TEXTS)):
        for stack, direction in enumerate(("forwards", "backwards")):
            for layer, rows in enumerate(wanted[direction][1:]):
                got = found[: len(rows), column, stack, layer].numpy()
                assert got[:, : rows.shape[1]] == pytest.approx(rows, abs=1e-6)
                assert not got[:, rows.shape[1] :].any()


def test_the_mix_of_layers_is_a_scaled_softmax_of_each_direction() -> None:
    mix = ScalarMix(directions=2, mixed=2)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([[0.0, 0.0], [0.0, np.log(3.0)]]))
        mix.scale.copy_(torch.tensor([1.0, 2.0]))
    given = torch.tensor([[1.0, 2.0], [3.0, 6.0], [4.0, 0.0], [8.0, 4.0]]).view(1, 1, 2, 2, 2)
    assert mix(given).flatten().tolist() == pytest.approx([2.0, 4.0, 2 * 7.0, 2 * 3.0])


def test_the_signature_follows_the_content_and_names_it(tmp_path: Path) -> None:
    model = make_classifier(tmp_path / "made", SHAPES[2])
    before = model.signature
    assert before.startswith("classifier:made@")
    assert load_model(f"classifier:{tmp_path / 'made'}@{before.rpartition('@')[2]}").signature == before
    with pytest.raises(ModelError, match="not 0123: it is another model"):
        load_model(f"classifier:{tmp_path / 'made'}@0123")
    torch.manual_seed(6)
    (tmp_path / "made" / "model.safetensors").write_bytes(serialize_sentence_network(build_sentence_network(SHAPES[2])))
    assert load_model(f"classifier:{tmp_path / 'made'}").signature != before


def test_a_folder_with_a_language_model_can_be_moved_and_needs_that_model(tmp_path: Path) -> None:
    model = make_classifier(tmp_path / "made", SHAPES[3])
    before = logits(model, TEXTS)
    shutil.move(tmp_path / "made", tmp_path / "elsewhere" / "made")
    moved = load_model(f"classifier:{tmp_path / 'elsewhere' / 'made'}")
    assert isinstance(moved, SentenceClassifier)
    assert logits(moved, TEXTS) == before
    make_recurrent(moved.folder / "lm", directions=1)
    with pytest.raises(ModelError, match="not the one that"):
        logits(load_model(f"classifier:{moved.folder}"), TEXTS)
    (moved.folder / "lm" / "vocabulary.json").unlink()
    with pytest.raises(ModelError, match=r"is incomplete: there is no lm/vocabulary.json"):
        load_model(f"classifier:{moved.folder}")


def test_refused_queries(tmp_path: Path) -> None:
    model = make_classifier(tmp_path / "made", SHAPES[0])
    for query, problem in (
        (Query("The cats sleep.", target=(0, 3)), "whole sentences"),
        (Query("The cats sleep.", context="Yes."), "whole sentences"),
        (Query("   "), "no word in it"),
        (Query("Linguists argue"), "knows none of its words"),
        (Query("the " * 513), "513 words, and the classifier reads at most 512"),
    ):
        with pytest.raises(QueryError, match=problem) as caught:
            model.encode([Query("The cats sleep."), query])
        assert caught.value.index == 1
    assert model.encode([Query("Linguists sleep " + "the " * 510)])[0].size == 512
    assert make_classifier(tmp_path / "states", SHAPES[3]).encode([Query("Phonologists argue")])[0].word_ids == (0, 0)


@pytest.mark.parametrize("options", ["acceptable=0", "dtype='bfloat16'"])
def test_options_of_transformers_have_no_meaning_here(options: str, tmp_path: Path) -> None:
    make_classifier(tmp_path / "made", SHAPES[0])
    with pytest.raises(ModelError, match="was trained here"):
        load_model(f"classifier:{tmp_path / 'made'}({options})")


def test_another_version_of_the_format_is_refused_with_advice(tmp_path: Path) -> None:
    make_classifier(tmp_path / "made", SHAPES[0])
    path = tmp_path / "made" / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(FORMAT.encode(), b"acceptability classifier 9"))
    assert is_sentence_classifier(tmp_path / "made")
    with pytest.raises(ModelError, match="'acceptability classifier 9', and this version reads.*train the classifier"):
        load_model(f"classifier:{tmp_path / 'made'}")


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    model = make_classifier(tmp_path / "made", SHAPES[0])
    (model.folder / "vocabulary.json").write_bytes(Vocabulary((*SPECIAL_WORDS, "the"), "split", lower=True).to_json())
    with pytest.raises(ModelError, match="belong to different classifiers"):
        logits(load_model(f"classifier:{model.folder}"), ["the"])


def test_impossible_architectures(tmp_path: Path) -> None:
    for wrong in (
        {"network": "gpt", "pool": "max"},
        {"network": "pooling", "pool": "sum"},
        {"network": "pooling", "pool": "max"},
        {"network": "cbow", "pool": "sum", "mixed": 1},
        {"network": "cbow", "pool": "sum", "activation": "sine"},
    ):
        with pytest.raises(ModelError):
            SentenceNetworkShape(**{"width": 3, "words": 7, **wrong})
    shape = SentenceNetworkShape("cbow", "sum", 3, words=7)
    (tmp_path / "model.safetensors").write_bytes(serialize_sentence_network(build_sentence_network(shape)))
    assert read_sentence_shape(tmp_path) == shape


def test_other_folders_go_to_transformers(tmp_path: Path, recurrent_dir: Path) -> None:
    assert not is_sentence_classifier(recurrent_dir)
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    assert not is_sentence_classifier(tmp_path)
    with pytest.raises(ModelError, match=r"no config.json"):
        load_model(f"classifier:{tmp_path}")


GLOVE = "the 0.5 1 -2\ncat 1 0 0.25\n. . . 0 1 2\n"


@pytest.mark.parametrize("packed", ["plain.txt", "packed.txt.gz", "packed.txt.xz", "headed.vec"])
def test_vectors_in_text_files(packed: str, tmp_path: Path) -> None:
    path = tmp_path / packed
    content = (("3 3\n" if packed == "headed.vec" else "") + GLOVE).encode()
    path.write_bytes({".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)(content))
    found = read_vectors(path)
    assert (found.words, found.dimension) == (("the", "cat", ". . ."), 3)
    assert found.vectors.tolist() == [[0.5, 1, -2], [1, 0, 0.25], [0, 1, 2]]
    assert found.unknown_vector == pytest.approx([0.5, 2 / 3, 0.25 / 3])
    assert read_vectors(path, extra_words=[". . ."], max_words=1).words == ("the", ". . .")


def test_vectors_in_npz_files_keep_their_precision(tmp_path: Path) -> None:
    words, vectors = np.array(["<unk>", "the", "cat"]), np.arange(6, dtype=np.float16).reshape(3, 2)
    np.savez(tmp_path / "all.npz", words=words, vectors=vectors)
    found = read_vectors(tmp_path / "all.npz", extra_words={"cat"}, max_words=1)
    assert found.words == ("<unk>", "cat")
    assert found.vectors.dtype == np.float16
    assert found.unknown_vector.tolist() == [0, 1]
    np.savez(tmp_path / "wrong.npz", words=words[:2], vectors=vectors)
    with pytest.raises(ModelError, match="one row of numbers per word"):
        read_vectors(tmp_path / "wrong.npz")
    (tmp_path / "no.npz").write_text("no")
    with pytest.raises(ModelError, match=r"no .npz file with the arrays"):
        read_vectors(tmp_path / "no.npz")


def test_a_duplicate_word_is_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "twice.txt").write_text("a 1 2\nb 3 4\na 5 6\n")
    found = read_vectors(tmp_path / "twice.txt")
    assert (found.words, found.duplicate_lines, found.vectors[0].tolist()) == (("a", "b"), 1, [1, 2])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("the 1 2\ncat 1\n", "line 2: 1 numbers; expected a word and 2 numbers"),
        ("the 1 2\ncat 1 x\n", "line 2: could not convert string to float: .*expected a word and 2 numbers"),
        ("the\n", "line 1: 0 numbers; expected a word and some numbers"),
        ("the 1 nan\n", "a number is not finite"),
        ("", "has no word vectors in it"),
    ],
)
def test_wrong_lines_of_vectors_are_named(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.txt").write_text(content)
    with pytest.raises(ModelError, match=problem):
        read_vectors(tmp_path / "wrong.txt")


def test_files_that_are_no_vectors(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file of word vectors"):
        read_vectors(tmp_path / "none.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelError, match="is it a binary file"):
        read_vectors(tmp_path / "binary.txt")
    (tmp_path / "packed.gz").write_bytes(b"the 1 2")
    with pytest.raises(ModelError, match="cannot read"):
        read_vectors(tmp_path / "packed.gz")


def test_the_architecture_is_a_single_metadata_entry(tmp_path: Path) -> None:
    content = serialize_sentence_network(build_sentence_network(SHAPES[2]))
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert list(header["__metadata__"]) == [FORMAT]
