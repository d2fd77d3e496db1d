"""CoLA divided by its sources: the split as published, the five others of Table 5, and random ones by the same rule.

Warstadt, Singh and Bowman (2019), section 6: sources are drawn until their sentences are more than 750; these are out
of domain, all others in domain. Of the sentences in domain about as many are set aside, and the rest is learnt from.
The test sets are not public with their labels, so that every part is smaller here than in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from acceptability.errors import UnknownName
from acceptability.studies.cells import Cell, Key, Printed, beside
from acceptability.studies.niu_penn_cola import labelled_cola
from acceptability.suites import load_suite
from acceptability.types import Sentence, Suite

SOURCES = {
    "ad03": "Adger (2003)",
    "b_82": "Baltin (1982)",
    "bc01": "Baltin and Collins (2001)",
    "b_73": "Bresnan (1973)",
    "c_13": "Carnie (2013)",
    "cj99": "Culicover and Jackendoff (1999)",
    "d_98": "Dayal (1998)",
    "g_81": "Gazdar (1981)",
    "gj04": "Goldberg and Jackendoff (2004)",
    "kl93": "Kadmon and Landman (1993)",
    "ks08": "Kim and Sells (2008)",
    "l-93": "Levin (1993)",
    "m_02": "Miller (2002)",
    "rhl07": "Rappaport Hovav and Levin (2008)",
    "r-67": "Ross (1967)",
    "sgww85": "Sag et al. (1985)",
    "sks13": "Sportiche et al. (2013)",
    "clc95": "Chung et al. (1995)",
    "c-05": "Collins (2005)",
    "j_71": "Jackendoff (1971)",
    "s_97": "Sag (1997)",
    "swb04": "Sag et al. (2003)",
    "w_80": "Williams (1980)",
}
"""The sources as the files name them, and as Table 2 does."""

PUBLISHED = "orig."
PUBLIC = "public files: training set and both development sets"
_OUTSIDE = {
    PUBLISHED: ("c-05", "j_71", "s_97", "clc95", "w_80", "swb04"),
    "1": ("bc01", "b_73"),
    "2": ("kl93", "sgww85", "w_80", "d_98", "b_73", "g_81"),
    "3": ("ad03", "d_98", "g_81"),
    "4": ("b_82", "swb04", "cj99"),
    "5": ("m_02", "bc01", "cj99"),
}
_ENOUGH = 750
_NO_TEST = "the paper counts test sentences too, which are not public with their labels"


@dataclass(frozen=True)
class Split:
    """Which sources are out of domain.

    Args:
        name: As Table 5 calls it, or ``random-SEED``.
    """

    name: str
    outside: tuple[str, ...]


@dataclass(frozen=True)
class Parts:
    """The sentences of a split: to learn from, and of sources that were learnt from and that were not."""

    train: Suite
    in_domain: Suite
    out_of_domain: Suite


def paper_splits() -> tuple[Split, ...]:
    """Return the split as published, and the five others of Table 5."""
    return tuple(Split(name, outside) for name, outside in _OUTSIDE.items())


def random_split(values: Mapping[Key, Printed], seed: int) -> Split:
    """Return a split by the paper's rule: sources at random, until their sizes sum to more than 750.

    Args:
        values: What the paper prints; sizes are those of Table 2, which count the test sets, as the paper's own do.
    """
    chosen: list[str] = []
    total = 0
    for place in np.random.default_rng(seed).permutation(len(SOURCES)):
        chosen.append(list(SOURCES)[place])
        total += paper_size(values, chosen[-1:])
        if total > _ENOUGH:
            break
    return Split(f"random-{seed}", tuple(chosen))


def find_split(name: str, values: Mapping[Key, Printed]) -> Split:
    """Return the split of a name: ``orig.``, ``1`` to ``5``, or ``random-SEED``."""
    kind, _, seed = name.partition("-")
    if kind == "random" and seed.isdigit():
        return random_split(values, int(seed))
    if name not in _OUTSIDE:
        hint = f"There are {', '.join(_OUTSIDE)}, and random-0, random-1, ..."
        raise UnknownName("split of CoLA", name, list(_OUTSIDE), hint=hint)
    return Split(name, _OUTSIDE[name])


def parts(split: Split, *, seed: int = 0, of: Suite | None = None) -> Parts:
    """Return the three parts of a split, of all sentences whose labels are public; the published one as published.

    Args:
        seed: Of the draw of the sentences in domain that are not learnt from: as many as there are out of domain.
        of: All sentences with public labels, where they were read before.
    """
    if split.name == PUBLISHED:
        return Parts(*(load_suite(f"cola/{name}") for name in ("train", "in_domain_dev", "out_of_domain_dev")))
    everything = (of or labelled_cola()).sentences
    outside = [each for each in everything if each.tags["source"] in split.outside]
    inside = [each for each in everything if each.tags["source"] not in split.outside]
    aside = set(np.random.default_rng(seed).permutation(len(inside))[: len(outside)].tolist())
    return Parts(
        _suite(split, "train", (each for place, each in enumerate(inside) if place not in aside)),
        _suite(split, "in domain", (each for place, each in enumerate(inside) if place in aside)),
        _suite(split, "out of domain", outside),
    )


def _suite(split: Split, part: str, sentences: Iterable[Sentence]) -> Suite:
    return Suite(f"cola, split {split.name}, {part}", tuple(sentences))


def paper_size(values: Mapping[Key, Printed], sources: Iterable[str]) -> int:
    """Return how many sentences sources have by Table 2."""
    return sum(int(values["Table 2", SOURCES[each], "N"].value) for each in sources)


def split_cells(values: Mapping[Key, Printed], randoms: int = 5) -> Iterator[Cell]:
    """Yield how large the splits of Table 5 are, here and by Table 2, and some random ones.

    Args:
        randoms: How many random splits, of the seeds 0, 1, ...
    """
    everything = labelled_cola()
    for split in paper_splits():
        yield from _size_cells(values, split, everything, "the sources of the public files")
    for seed in range(randoms):
        yield from _size_cells(values, random_split(values, seed), everything, "drawn by the paper's rule")


def _size_cells(values: Mapping[Key, Printed], split: Split, everything: Suite, source: str) -> Iterator[Cell]:
    found, row = parts(split, of=everything), split.name
    yield beside(values, ("Table 5", row, "Out Sources"), ", ".join(map(short_name, split.outside)), source)
    size = paper_size(values, split.outside)
    yield beside(values, ("Table 5", row, "Out N"), size, "the paper's Table 2, summed")
    for column, suite in (("Out N", found.out_of_domain), ("In N", found.in_domain), ("train N", found.train)):
        note = _NO_TEST if column == "Out N" else ""
        yield beside({}, ("Table 5", row, f"{column}, public"), len(suite.sentences), PUBLIC, note=note)


def short_name(source: str) -> str:
    """Return a source as Table 5 names it.

    >>> short_name("c-05"), short_name("j_71")
    ('C05', 'J71')
    """
    return source.replace("-", "").replace("_", "").upper()


def told_cells(values: Mapping[Key, Printed]) -> Iterator[Cell]:
    """Yield what the paper says of its own Tables 2 and 5, from what these print."""
    inside = [each for each in SOURCES if each not in _OUTSIDE[PUBLISHED]]
    yield beside(values, ("Table 2", "In-Domain", "N"), paper_size(values, inside), "the paper's own Table 2, summed")
    itself = "the paper's own Table 5"
    gaps = [_printed(values, name, "In-Domain MCC") - _printed(values, name, "Out-of-Domain MCC") for name in _OUTSIDE]
    sizes = [_printed(values, name, "Out N") for name in _OUTSIDE]
    column = "in-domain MCC above out-of-domain"
    yield beside(values, ("Section 6", "original split", column), gaps[0], itself)
    yield beside(values, ("Section 6", "largest difference", column), max(gaps), itself)
    yield beside(values, ("Section 6", "smallest out-of-domain set", "sentences"), min(sizes), itself)
    yield beside(values, ("Section 6", "largest out-of-domain set", "sentences"), max(sizes), itself)


def _printed(values: Mapping[Key, Printed], row: str, column: str) -> float:
    return float(values["Table 5", row, column].value)
