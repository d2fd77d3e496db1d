"""What a classifier learns from: both labels, and a tenth held out by source and label."""

from __future__ import annotations

from collections import Counter

import pytest

from acceptability import Sentence, Suite
from acceptability.errors import TrainError
from acceptability.train.classifiers import Examples, held_out, read_examples


def suite(sizes: dict[tuple[str, int | None], int]) -> Suite:
    return Suite(
        "made",
        tuple(
            Sentence(f"{source}-{label}-{number}", f"Sentence {number} of {source}.", label, tags={"source": source})
            for (source, label), count in sizes.items()
            for number in range(count)
        ),
    )


def test_a_tenth_of_every_source_and_label_is_held_out_and_always_the_same() -> None:
    examples = read_examples([suite({("a", 1): 70, ("a", 0): 30, ("b", 1): 20, ("b", 0): 9, ("c", 1): 4, ("c", 0): 7})])
    learn, held = held_out(examples)
    assert len(held) == 14
    found = Counter((each.tags["source"], each.label) for each in held.sentences)
    assert (found["a", 1], found["a", 0], found["b", 1]) == (7, 3, 2)
    assert not {each.id for each in learn.sentences} & {each.id for each in held.sentences}
    assert len(learn) + len(held) == len(examples)
    assert held_out(examples)[1] == held
    assert held_out(examples, seed=5)[1] != held


def test_one_label_alone_teaches_nothing() -> None:
    with pytest.raises(TrainError, match="all 20 sentences are acceptable"):
        read_examples([suite({("a", 1): 20})])
    with pytest.raises(TrainError, match="one label only: give more"):
        held_out(read_examples([suite({("a", 1): 20, ("a", 0): 1})]))
    with pytest.raises(TrainError, match="2 sentences have no label"):
        Examples(suite({("a", 1): 1, ("a", None): 2}).sentences)
