"""The three suites of Park, Park and Song (2021), as far as they can be had.

Suite I is a user's file of pairs. Without one, 98 pairs of our own stand in for DeKeyser's, which are
unpublished; they are called ours. The paper says that there are 98 pairs of 11 kinds and names some kinds; not how
many pairs each has. Ours have nine each, word order eight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from acceptability.studies.park_textbooks import textbook_pairs, textbook_sentences
from acceptability.suites import load_suite
from acceptability.suites.targets import Exclusion
from acceptability.types import Suite

OURS = "ours"
INQUIRY = "Sprouse et al. (2013)"
DEKEYSER = "DeKeyser (2000)"
BOOK_TOTAL = "Subtotal of II"


@dataclass(frozen=True, eq=False)
class Part:
    """One of the three suites.

    Args:
        name: "I", "II" or "III".
        source: What its sentences are from.
        pairs: Its contrasts, before any is left out for lack of a target.
        original: How many sentences there were, by the row of Table 1 that the paper has for them.
        unpaired: Unacceptable sentences that no acceptable one goes with.
    """

    name: str
    source: str
    pairs: Suite
    original: Mapping[str, int]
    unpaired: tuple[Exclusion, ...] = ()

    def row_of(self, book: str | None) -> str:
        """Return the row of Table 1 in which a contrast counts."""
        return book or next(iter(self.original))


def ours() -> Suite:
    """Return our 98 pairs, which stand in for DeKeyser's: the tag ``kind`` says what is contrasted.

    >>> suite = ours()
    >>> len(suite.contrasts), suite.contrasts[0].tags["kind"]
    (98, 'past_tense')
    """
    with as_file(files("acceptability.studies").joinpath("park_ours.jsonl")) as path:
        return load_suite(str(path))


def suites(inquiry: Suite, suite_i: str | Path | None = None) -> tuple[Part, Part, Part]:
    """Return suites I, II and III.

    Args:
        inquiry: The sentences and pairs of Linguistic Inquiry.
        suite_i: A file of pairs for suite I.
    """
    first = load_suite(str(suite_i)) if suite_i else ours()
    one = Part("I", Path(suite_i).name if suite_i else OURS, first, {DEKEYSER: len(first.sentences)})
    sentences = textbook_sentences()
    pairs, unpaired = textbook_pairs(sentences)
    books = sorted({each.tags["book"] for each in sentences})
    original = {book: sum(each.tags["book"] == book for each in sentences) for book in books}
    two = Part("II", "CoLA's public files", pairs, original, unpaired)
    three = Part("III", "LI-Adger", inquiry, {INQUIRY: len(inquiry.sentences)})
    return one, two, three
