"""Suites of minimal pairs: BLiMP, our starter suite, and number agreement.

BLiMP (Warstadt et al. 2020; ``read_blimp``) has 67 paradigms of 1,000 pairs. The paradigm is a tag, and so are
the phenomenon, the field and the item. Ids: ``PHENOMENON/PARADIGM/PAIR/good`` and ``.../bad``. Seven pairs
have the same sentence twice.

The starter suite (``read_starter``) was written for this package, so that it can be used without downloads:
minimal pairs of English in twelve phenomena, and single labelled sentences.

Number agreement (``read_number_agreement``): Linzen et al. (2016), Gulordava et al. (2018), Marvin and Linzen
(2018). In the first two, the region ``target`` is the agreeing word in both sentences of a pair. In 4 of 7,489
sentences of Linzen et al. the text has another word in that position.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from acceptability.suites import MinimalPair, build_pair_suite, make_pair, replace_word
from acceptability.suites.catalog import CatalogEntry
from acceptability.text.io import read_dict_rows, read_lines, read_tab_rows
from acceptability.types import Contrast, Sentence, Suite, make_contrast

# The data have 13 linguistics terms where the paper has 12 phenomena, since the paper counts s-selection as argument
# structure. One field is spelled with a slash in a single paradigm.
_PAPER_NAMES = {"s-selection": "argument_structure", "syntax/semantics": "syntax_semantics"}


def read_blimp(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the pairs of all paradigms of BLiMP."""
    rows = (line for path, content in files.items() for _, line in read_lines(content, f"{entry.folder}/{path}"))
    return build_pair_suite(entry.id, (_parse_pair(json.loads(row)) for row in rows))


def _parse_pair(row: Mapping[str, str]) -> MinimalPair:
    term = row["linguistics_term"]
    phenomenon = _PAPER_NAMES.get(term, term)
    item = f"{phenomenon}/{row['UID']}/{row['pairID']}"
    tags = {
        "field": _PAPER_NAMES.get(row["field"], row["field"]),
        "phenomenon": phenomenon,
        "linguistics_term": term,
        "paradigm": row["UID"],
    }
    return make_pair(item, row["sentence_good"], row["sentence_bad"], tags)


def read_starter(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the starter suite: pairs and then single sentences, numbered within their phenomenon."""
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    counts: dict[str, int] = {}
    for _, row in read_dict_rows(files["starter/pairs.tsv"], "starter/pairs.tsv", delimiter="\t"):
        item = _next_item_id(row["phenomenon"], counts)
        tags = {"phenomenon": row["phenomenon"], "item": item}
        good = Sentence(f"{item}/good", row["good"], label=1, tags=tags)
        bad = Sentence(f"{item}/bad", row["bad"], label=0, tags=tags)
        sentences += good, bad
        contrasts.append(make_contrast(good, bad))
    for _, row in read_dict_rows(files["starter/sentences.tsv"], "starter/sentences.tsv", delimiter="\t"):
        item = _next_item_id(row["phenomenon"], counts)
        tags = {"phenomenon": row["phenomenon"], "item": item}
        sentences.append(Sentence(f"{item}/single", row["sentence"], label=int(row["label"]), tags=tags))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))


def _next_item_id(phenomenon: str, counts: dict[str, int]) -> str:
    counts[phenomenon] = counts.get(phenomenon, 0) + 1
    return f"{phenomenon}/{counts[phenomenon]}"


# In the NPI tests of Marvin and Linzen, a cell holds two bad sentences.
_ALTERNATIVES = " ||| "


def read_number_agreement(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the pairs of one of the number agreement sets, chosen by the entry's id."""
    if entry.id.startswith("marvin_linzen2018/"):
        return _read_marvin_linzen(entry, files)
    if entry.id.startswith("gulordava2018/"):
        return replace(build_pair_suite(entry.id, _read_gulordava(entry, files)), derived_tags=("construction",))
    return build_pair_suite(entry.id, _read_linzen(entry, files))


def _read_gulordava(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[MinimalPair]:
    ((path, content),) = files.items()
    rows = [row for _, row in read_dict_rows(content, f"{entry.folder}/{path}", delimiter="\t")]
    # Rows alternate between the correct and the wrong form of an item.
    for number, (good, bad) in enumerate(zip(rows[::2], rows[1::2], strict=True), start=1):
        names = {"pattern": "pattern", "type": "type", "number": "correct_number", "attractors": "n_attr"}
        tags = {name: good[column] for name, column in names.items()} | {"language": entry.language}
        # Numbers of constructions start anew in every pattern and file. The tag is derived, and so not in the hash.
        tags["construction"] = f"{entry.id}/{good['pattern']}/{good['constr_id']}"
        # The sentences end with the target. The published nonsense sentences continue with a word that fits neither
        # form, since only the two forms after the prefix are meant to be compared.
        words = good["prefix"].split()
        forms = [replace_word([*words, ""], len(words), row["form"]) for row in (good, bad)]
        yield _add_target_regions(make_pair(f"{entry.id}/{number}", forms[0][0], forms[1][0], tags), forms)


def _read_linzen(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[MinimalPair]:
    # Two files of parallel lines; in reverse alphabetical order the texts come before the gold forms.
    texts, golds = (
        read_lines(content, f"{entry.folder}/{path}") for path, content in sorted(files.items(), reverse=True)
    )
    for (number, text), (_, gold) in zip(texts, golds, strict=True):
        word_index, good, bad, attractors = gold.split("\t")
        words = text.removesuffix(" <eos>").split()
        forms = [replace_word(words, int(word_index), form) for form in (good, bad)]
        pair = make_pair(f"{entry.id}/{number}", forms[0][0], forms[1][0], {"attractors": attractors})
        yield _add_target_regions(pair, forms)


def _add_target_regions(pair: MinimalPair, forms: list[tuple[str, tuple[int, int]]]) -> MinimalPair:
    good, bad = (replace(sentence, regions={"target": span}) for sentence, (_, span) in zip(pair, forms, strict=True))
    return good, bad


def _read_marvin_linzen(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    ((path, content),) = files.items()
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    rows = read_tab_rows(content, f"{entry.folder}/{path}", width=5)
    next(rows)
    for number, (test, condition, _, good, bad) in rows:
        item = f"{entry.id}/{test}/{number - 1}"
        tags = {"phenomenon": test, "condition": condition, "item": item}
        sentences.append(Sentence(f"{item}/good", good, label=1, tags=tags))
        for alternative_number, alternative in enumerate(bad.split(_ALTERNATIVES), start=1):
            # Each of the bad sentences is a contrast with the good one; the first keeps the usual id.
            name = f"{item}/bad" if alternative_number == 1 else f"{item}/bad{alternative_number}"
            sentences.append(Sentence(name, alternative, label=0, tags=tags))
            contrasts.append(Contrast(f"{item}/good", name, tags))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))
