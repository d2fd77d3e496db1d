"""From labelled sentences to contrasts: every acceptable member of an item against every unacceptable one.

As LI-Adger was made (Vázquez Martínez 2021, section 4 and appendix A): sentences that share
an item, lexically matched, become pairs by exhaustive enumeration.
"""

from __future__ import annotations

from acceptability.errors import SuiteError, suggestion
from acceptability.types import Contrast, Sentence, Suite, contrast


def paired(suite: Suite, by: str = "item") -> Suite:
    """Return the suite with all contrasts within items, those that it has and new ones.

    Args:
        by: The tag whose values are the items.

    >>> tags = {"item": "8"}
    >>> sentences = tuple(Sentence(str(i), f"s{i}", label=i, tags=tags) for i in (0, 1))
    >>> paired(Suite("s", sentences)).contrasts[0].id
    '1 > 0'
    """
    items: dict[str, list[Sentence]] = {}
    for sentence in suite.sentences:
        if by in sentence.tags and sentence.label is not None:
            items.setdefault(sentence.tags[by], []).append(sentence)
    if not items:
        has = ", ".join(suite.tag_names) or "none"
        hint = suggestion(by, suite.tag_names)
        raise SuiteError(f"suite {suite.name!r} has no labelled sentences with the tag {by!r}; its tags: {has}.{hint}")
    made = [
        contrast(better, worse)
        for members in items.values()
        for better in members
        if better.label == 1
        for worse in members
        if worse.label == 0
    ]
    if not made:
        raise SuiteError(f"suite {suite.name!r}: no {by} has both an acceptable and an unacceptable sentence")
    there = {(each.better, each.worse): each for each in suite.contrasts}
    everything: dict[tuple[str, str], Contrast] = {(each.better, each.worse): each for each in made} | there
    return Suite(suite.name, suite.sentences, tuple(everything.values()))
