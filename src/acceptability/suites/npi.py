"""Negative polarity items in nine environments (Warstadt et al. 2019, five analysis methods).

``npi``: paradigms that cross licensor, scope and NPI; ``npi/pairs`` and ``npi/cloze``:
minimal pairs; ``npi/wilcox``: items after Wilcox et al. (2019).

Traps: the published splits hold 108,000 of the paper's 136,000 sentences. Metadata
are joined by hyphens, but crucial items contain hyphens too. Two folders of the splits
(``conditionals``, ``quantifiers``) are spelled otherwise than the metadata and the pair
files; ids follow the folders, the tag ``environment`` the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from acceptability.errors import SuiteError
from acceptability.suites.catalog import Entry
from acceptability.text import tab_rows
from acceptability.types import Contrast, Sentence, Suite, contrast

_KEYS = (
    "experiment",
    "env",
    "npi",
    "crucial_item",
    "distractor",
    "licensor",
    "scope",
    "npi_present",
    "paradigm",
)
_KEY = re.compile(rf"(?:^|-)({'|'.join(_KEYS)})=")
_PAIR = re.compile(r"env=(?P<environment>\w+?)_(?P<varied>licensor=.*)")


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the paradigms, the pairs or the Wilcox items, whichever the entry names."""
    if entry.id in ("npi/pairs", "npi/cloze"):
        return _pairs(entry, files)
    return Suite(entry.id, tuple(_factors(entry, files)))


def _factors(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    for path, content in files.items():
        split = path.removesuffix(".tsv").removeprefix("splits/")
        for number, (metadata, label, _, text) in tab_rows(content, f"{entry.folder}/{path}", width=4):
            tags = _tags(metadata)
            if entry.id == "npi":
                tags |= {"split": split.split("/")[1], "set": f"{tags['environment']}/{tags['paradigm']}"}
                yield Sentence(f"{split}/{number}", text, label=int(label), tags=tags)
            else:
                tags |= {"set": tags["paradigm"]}
                yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _tags(metadata: str) -> dict[str, str]:
    """Return the factors of a metadata string.

    >>> _tags("experiment=NPI-env=only-npi=any-crucial_item=no-one-licensor=1-paradigm=7")["crucial_item"]
    'no-one'
    """
    parts = _KEY.split(metadata)[1:]
    tags = dict(zip(parts[::2], parts[1::2], strict=True))
    del tags["experiment"]
    return {"environment": tags.pop("env")} | tags


def _pairs(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    ((path, content),) = files.items()
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for number, (_, first, second, label, condition) in tab_rows(content, f"{entry.folder}/{path}", width=5):
        tags = _condition(condition, f"{path}, line {number}") | {"item": f"{entry.id}/{number}"}
        pair = [
            Sentence(f"{entry.id}/{number}/{place}", text, label=int((place == 2) == (label == "1")), tags=tags)
            for place, text in ((1, first), (2, second))
        ]
        sentences += pair
        contrasts.append(contrast(*sorted(pair, key=lambda each: each.label == 0)))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))


def _condition(text: str, where: str) -> dict[str, str]:
    found = _PAIR.fullmatch(text)
    if not found:
        raise SuiteError(f"{where}: cannot read the condition {text!r}")
    return {"environment": found["environment"], "condition": found["varied"]}
