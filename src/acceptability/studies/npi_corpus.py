"""Section 4 of the NPI paper: how many sentences, environments and pairs there are, counted in the published files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from acceptability.studies.cells import Cell, Key, Printed, beside
from acceptability.studies.npi_data import CHANGED, ENVIRONMENT, SHORT, material, paired
from acceptability.studies.npi_train import WILCOX
from acceptability.suites import load_suite
from acceptability.types import Suite

TABLE = "Section 4"
_SIMPLE = "simplequestions"
_SPLITS = {"training": "train", "development": "dev", "test": "test_full"}
_SOURCE = "published data"


def corpus_cells(values: Mapping[Key, Printed]) -> Iterator[Cell]:
    """Yield the counts of the published data beside those that the paper prints."""
    whole, found = load_suite("npi"), material()
    for row, ours in {**_counts(whole), **_pair_counts()}.items():
        yield beside(values, (TABLE, row, "count"), ours, _SOURCE)
    for changed, count in Counter(each.tags[CHANGED] for each in found.pairs.contrasts).items():
        yield beside(values, (TABLE, f"minimal pairs that differ in {changed}", "count"), count, _SOURCE)


def _counts(whole: Suite) -> dict[str, float | str]:
    several: dict[str, float | str] = {
        "sentences": len(whole.sentences),
        "environments": len({each.tags[ENVIRONMENT] for each in whole.sentences}),
        "NPIs": len({each.tags["npi"] for each in whole.sentences}),
    }
    for name, split in _SPLITS.items():
        sizes = Counter(each.tags[ENVIRONMENT] for each in whole.sentences if each.tags["split"] == split)
        several[f"{name} sentences of an environment"] = _thousands(sizes.values())
    return several | {"handcrafted sentences after Wilcox et al.": len(load_suite(WILCOX).sentences)}


def _pair_counts() -> dict[str, float | str]:
    """Return how many pairs are published, and how many of them the paper's rule makes of the test sentences."""
    found = material()
    ours, theirs = _texts(paired(found.test)), _texts(found.pairs)
    sets = {group: {e.tags["set"] for e in found.test.sentences if e.tags[ENVIRONMENT] == group} for group in SHORT}
    counts = Counter(each.tags[ENVIRONMENT] for each in found.pairs.contrasts)
    each = {counts[group] / len(sets[group]) for group in SHORT if group != _SIMPLE}
    return {
        "minimal pairs of a paradigm": each.pop() if len(each) == 1 else str(sorted(each)),
        "minimal pairs of a paradigm, simple questions": counts[_SIMPLE] / len(sets[_SIMPLE]),
        "minimal pairs published": len(found.pairs.contrasts),
        "of them made again by the rule": f"{len(ours & theirs)} of {len(ours)}",
        "cloze pairs published": len(found.cloze.contrasts),
    }


def _texts(suite: Suite) -> set[tuple[str, str]]:
    return {(suite.by_id[each.better].text, suite.by_id[each.worse].text) for each in suite.contrasts}


def _thousands(sizes: Iterable[int]) -> str:
    """Return a size that all share as the paper writes it.

    >>> _thousands([1000, 1000])
    '1K'
    """
    return " or ".join(sorted({f"{size / 1000:g}K" for size in sizes}))
