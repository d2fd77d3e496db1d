"""The bag of words of the NPI paper: max pooling over word vectors, which ignores their order."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from acceptability import Sentence, Suite, judge
from acceptability.models.sentence import SentenceNetworkShape
from acceptability.models.sentence.network import build_sentence_network
from acceptability.train.classifiers import train_classifier
from acceptability.train.classifiers.word_classifiers import CbowRecipe


def test_max_pooling_ignores_padding() -> None:
    net = build_sentence_network(SentenceNetworkShape("cbow", "max", 2, words=4)).eval()
    net.inputs.table = torch.nn.Parameter(torch.tensor([[9.0, 9.0], [1.0, -5.0], [-3.0, -2.0], [0.0, 0.0]]))
    values = torch.tensor([[1, 2], [2, 0]])
    vectors = net.encode_sentences(values, torch.tensor([2, 1]))
    assert vectors.tolist() == [[1.0, -2.0], [-3.0, -2.0]]


def test_it_learns_which_words_occur_but_not_their_order(tmp_path: Path) -> None:
    nouns = ("cat", "dog", "bird", "child", "guest", "boy")
    made = [(f"the {noun} {word} sang.", int(word == "once")) for noun in nouns for word in ("once", "ever")] * 4
    suite = Suite("made", tuple(Sentence(str(n), text, label) for n, (text, label) in enumerate(made)))
    metadata = train_classifier(
        CbowRecipe(pool="max", activation="relu", learning_rate=0.01, epochs=20), [suite], tmp_path / "bag"
    )
    assert metadata["results"]["held out"]["mcc"] == 1.0
    first, reordered, bad = judge(
        ["the cat once sang.", "once the cat sang.", "the cat ever sang."], model=f"classifier:{tmp_path}/bag"
    )
    assert first.score == pytest.approx(reordered.score, rel=1e-6)
    assert first.score > 0 > bad.score
