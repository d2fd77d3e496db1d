"""Number agreement: Linzen et al. (2016), Gulordava et al. (2018), Marvin and Linzen (2018).

The region ``target`` is the verb (or other word) that agrees, in both members of a pair.

Traps: Gulordava's nonsense sentences go on after the target with a word that fits neither
form, since only the forms after the prefix are compared; so our sentences end with the
target. Linzen's sentences are whole; in 4 of 7,489 the text has another word at the place.
In Marvin and Linzen's NPI tests one good sentence has two bad ones, a contrast each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from acceptability.suites.catalog import Entry
from acceptability.suites.pairs import Pair, pair, suite_of_pairs, with_word
from acceptability.text import dict_rows, lines, tab_rows
from acceptability.types import Contrast, Sentence, Suite

_ALTERNATIVES = " ||| "


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the pairs of whichever set the entry names."""
    if entry.id.startswith("marvin_linzen2018/"):
        return _templates(entry, files)
    reader = _gulordava if entry.id.startswith("gulordava2018/") else _linzen
    return suite_of_pairs(entry.id, reader(entry, files))


def _gulordava(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Pair]:
    ((path, content),) = files.items()
    rows = [row for _, row in dict_rows(content, f"{entry.folder}/{path}", delimiter="\t")]
    for number, (good, bad) in enumerate(zip(rows[::2], rows[1::2], strict=True), start=1):
        names = {"pattern": "pattern", "type": "type", "number": "correct_number", "attractors": "n_attr"}
        tags = {name: good[column] for name, column in names.items()} | {"language": entry.language}
        words = good["prefix"].split()
        forms = [with_word([*words, ""], len(words), row["form"]) for row in (good, bad)]
        yield _targeted(pair(f"{entry.id}/{number}", forms[0][0], forms[1][0], tags), forms)


def _linzen(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Pair]:
    texts, golds = (lines(content, f"{entry.folder}/{path}") for path, content in sorted(files.items(), reverse=True))
    for (number, text), (_, gold) in zip(texts, golds, strict=True):
        place, good, bad, attractors = gold.split("\t")
        words = text.removesuffix(" <eos>").split()
        forms = [with_word(words, int(place), form) for form in (good, bad)]
        made = pair(f"{entry.id}/{number}", forms[0][0], forms[1][0], {"attractors": attractors})
        yield _targeted(made, forms)


def _targeted(made: Pair, forms: list[tuple[str, tuple[int, int]]]) -> Pair:
    good, bad = (replace(each, regions={"target": span}) for each, (_, span) in zip(made, forms, strict=True))
    return good, bad


def _templates(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    ((path, content),) = files.items()
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    rows = tab_rows(content, f"{entry.folder}/{path}", width=5)
    next(rows)
    for number, (test, condition, _, good, bad) in rows:
        item = f"{entry.id}/{test}/{number - 1}"
        tags = {"phenomenon": test, "condition": condition, "item": item}
        sentences.append(Sentence(f"{item}/good", good, label=1, tags=tags))
        for place, alternative in enumerate(bad.split(_ALTERNATIVES), start=1):
            name = f"{item}/bad" if place == 1 else f"{item}/bad{place}"
            sentences.append(Sentence(name, alternative, label=0, tags=tags))
            contrasts.append(Contrast(f"{item}/good", name, tags))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))
