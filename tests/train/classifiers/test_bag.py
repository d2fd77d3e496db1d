"""The bag of words of the NPI paper: the greatest of each number over the words' vectors, whatever their order."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from acceptability import Sentence, Suite, judge  # noqa: E402
from acceptability.models.sentence_networks import network_of  # noqa: E402
from acceptability.models.sentence_shape import Shape  # noqa: E402
from acceptability.train.classifiers import teach  # noqa: E402
from acceptability.train.classifiers.words import Cbow  # noqa: E402


def test_the_greatest_of_each_number_counts_and_what_fills_up_does_not() -> None:
    net = network_of(Shape("cbow", "max", 2, words=4)).eval()
    net.inputs.table = torch.nn.Parameter(torch.tensor([[9.0, 9.0], [1.0, -5.0], [-3.0, -2.0], [0.0, 0.0]]))
    values = torch.tensor([[1, 2], [2, 0]])
    found = net.sentences(values, torch.tensor([2, 1]))
    assert found.tolist() == [[1.0, -2.0], [-3.0, -2.0]]


def test_it_learns_which_words_there_are_but_not_their_order(tmp_path: Path) -> None:
    nouns = ("cat", "dog", "bird", "child", "guest", "boy")
    made = [(f"the {noun} {word} sang.", int(word == "once")) for noun in nouns for word in ("once", "ever")] * 4
    suite = Suite("made", tuple(Sentence(str(n), text, label) for n, (text, label) in enumerate(made)))
    told = teach(Cbow(pool="max", activation="relu", rate=0.01, epochs=20), [suite], tmp_path / "bag")
    assert told["results"]["held out"]["mcc"] == 1.0
    one, other, bad = judge(
        ["the cat once sang.", "once the cat sang.", "the cat ever sang."], f"classifier:{tmp_path}/bag"
    )
    assert one.score == pytest.approx(other.score, rel=1e-6)
    assert one.score > 0 > bad.score
