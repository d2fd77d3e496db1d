"""Groups of like sentences in CoLA, and Table 4 of Niu and Penn (2020) over them.

The paper's microgroups, made by a linguist over the first 2,010 sentences, are not published. These groups are
ours and made by a rule: a sentence joins the one before it where both have the same source and at least
0.6 of their words are alike in order, by ``difflib``'s ratio (twice the matching words over all words, in lower case).
0.6 is what ``difflib`` itself calls close; it was not fitted to anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from acceptability.models.splitting import spans
from acceptability.studies.cells import Cell, Key, Printed, beside, not_compared
from acceptability.studies.niu_penn_pbc import SCALES, Scored, lower, mean, median, model_cell, over_sets, pbc, upper
from acceptability.suites import load_suite
from acceptability.types import Sentence

SENTENCES = 2010
"""How many sentences are grouped: as many as in the paper, the first of the training set."""

THRESHOLD = 0.6
LARGE = 4
"""The paper looks at groups of more sentences than this by themselves."""

_STATISTICS = {"median": median, "upper breakpoint": upper, "lower breakpoint": lower, "mean": mean}
_SOURCE = "our groups"
_RULE = f"our groups, not the paper's: neighbours of one source, alike in {THRESHOLD} of their words or more (difflib)"

Group = tuple[Sentence, ...]


def microgroups() -> list[Group]:
    """Return the groups of the sentences that the paper groups, those of one sentence among them."""
    return grouped(load_suite("cola/train").sentences[:SENTENCES])


def grouped(sentences: Sequence[Sentence], threshold: float = THRESHOLD) -> list[Group]:
    """Return runs of sentences in which each is like the one before it.

    >>> texts = ["Ann saw him.", "Ann saw he.", "It rains."]
    >>> [len(each) for each in grouped([Sentence(text, text, tags={"source": "a"}) for text in texts])]
    [2, 1]
    """
    found: list[list[Sentence]] = []
    for each in sentences:
        if found and is_alike(found[-1][-1], each, threshold):
            found[-1].append(each)
        else:
            found.append([each])
    return [tuple(group) for group in found]


def is_alike(first: Sentence, second: Sentence, threshold: float = THRESHOLD) -> bool:
    """Tell whether two sentences are of one source and have so many words alike, in order."""
    if first.tags["source"] != second.tags["source"]:
        return False
    return SequenceMatcher(None, _words(first), _words(second), autojunk=False).ratio() >= threshold


def has_both(group: Group) -> bool:
    """Tell whether a group has acceptable and unacceptable sentences, as a correlation needs."""
    return {each.label for each in group} >= {0, 1}


def table_4(model: str, groups: Sequence[Group], found: Scored) -> Iterator[Cell]:
    """Yield how the correlations within groups spread, over all groups and over the large ones."""
    both = [group for group in groups if has_both(group)]
    sizes = {"groups of 2 or more": both, f"groups above {LARGE}": [group for group in both if len(group) > LARGE]}
    for norm, scores in found.items():
        for name, scale in SCALES.items():
            for size, chosen in sizes.items():
                numbers = over_sets([pbc(group, scores, scale) for group in chosen], _STATISTICS)
                for statistic, number in numbers.items():
                    row = f"{model}, {norm} {name}"
                    yield model_cell("Table 4", row, f"our {size}, {statistic}", number, model, _RULE)


def group_counts(groups: Sequence[Group]) -> list[Cell]:
    """Return how many of our groups have which size, which the paper does not tell of its own."""
    sizes = [len(group) for group in groups]
    both = [len(group) for group in groups if has_both(group)]
    counts = {f"groups of {size}": sizes.count(size) for size in range(1, LARGE + 1)}
    counts |= {
        f"groups above {LARGE}": sum(size > LARGE for size in sizes),
        "groups with both classes": len(both),
        f"groups above {LARGE} with both classes": sum(size > LARGE for size in both),
    }
    return [
        beside({}, ("Section 5.1", "microgroups", name), count, _SOURCE, note=_RULE) for name, count in counts.items()
    ]


def told_counts(values: Mapping[Key, Printed], groups: Sequence[Group]) -> dict[Key, Cell]:
    """Return our counts beside those that the paper tells of its own groups, with which nothing is compared."""
    several = [len(group) for group in groups if len(group) > 1]
    row = "Section 5.1", "microgroups"
    counts: dict[Key, float] = {
        (*row, "sentences"): sum(map(len, groups)),
        (*row, "groups, with those of one sentence"): len(groups),
        (*row, "of those of two or more, of size 2 to 4 (%)"): 100 * sum(n <= LARGE for n in several) / len(several),
    }
    return {key: not_compared(values, key, count, _SOURCE, note=_RULE) for key, count in counts.items()}


def _words(sentence: Sentence) -> list[str]:
    return [sentence.text[start:end].lower() for start, end in spans(sentence.text, "split")]
