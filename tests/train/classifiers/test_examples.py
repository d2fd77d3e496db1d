"""The training sentences of a classifier: both labels, and a tenth held out by source and label."""

from __future__ import annotations

from collections import Counter

import pytest

from acceptability import Sentence, Suite
from acceptability.errors import TrainError
from acceptability.train.classifiers import LabelledSentences, read_labelled_sentences, split_held_out


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
    labelled = read_labelled_sentences(
        [suite({("a", 1): 70, ("a", 0): 30, ("b", 1): 20, ("b", 0): 9, ("c", 1): 4, ("c", 0): 7})]
    )
    train_set, held_out_set = split_held_out(labelled)
    assert len(held_out_set) == 14
    counts = Counter((each.tags["source"], each.label) for each in held_out_set.sentences)
    assert (counts["a", 1], counts["a", 0], counts["b", 1]) == (7, 3, 2)
    assert not {each.id for each in train_set.sentences} & {each.id for each in held_out_set.sentences}
    assert len(train_set) + len(held_out_set) == len(labelled)
    assert split_held_out(labelled)[1] == held_out_set
    assert split_held_out(labelled, seed=5)[1] != held_out_set


def test_one_label_alone_is_an_error() -> None:
    with pytest.raises(TrainError, match="all 20 sentences are acceptable"):
        read_labelled_sentences([suite({("a", 1): 20})])
    with pytest.raises(TrainError, match="one label only: give more"):
        split_held_out(read_labelled_sentences([suite({("a", 1): 20, ("a", 0): 1})]))
    with pytest.raises(TrainError, match="2 sentences have no label"):
        LabelledSentences(suite({("a", 1): 1, ("a", None): 2}).sentences)
