from __future__ import annotations

import pytest

from acceptability.errors import SuiteError
from acceptability.suites import pair_within_items
from acceptability.types import Sentence, Suite


def test_the_example_of_the_delta_criterion_paper() -> None:
    """Adger's ch8.150-152: one unacceptable sentence against two acceptable ones gives two pairs."""
    rows = [
        ("ch8.150.*.01", "Melissa seems that is happy.", 0),
        ("ch8.151.g.01", "It seems that Melissa is happy.", 1),
        ("ch8.152.g.01", "Melissa seems to be happy.", 1),
    ]
    sentences = tuple(Sentence(name, text, label, tags={"item": "ch8.150-152.01"}) for name, text, label in rows)
    suite = pair_within_items(Suite("adger", (*sentences, Sentence("other", "He left.", 0, tags={"item": "9"}))))
    assert [(contrast.better, contrast.worse) for contrast in suite.contrasts] == [
        ("ch8.151.g.01", "ch8.150.*.01"),
        ("ch8.152.g.01", "ch8.150.*.01"),
    ]
    assert pair_within_items(suite).contrasts == suite.contrasts


def test_nothing_to_pair_is_an_error() -> None:
    suite = Suite("s", (Sentence("a", "x", 1, tags={"itm": "1"}), Sentence("b", "y", 1, tags={"itm": "1"})))
    with pytest.raises(SuiteError, match="Did you mean 'itm'"):
        pair_within_items(suite)
    with pytest.raises(SuiteError, match="no itm has both"):
        pair_within_items(suite, by="itm")
