"""CoLA itself: Table 2 (sources), Table 3 (a sample), Figure 1 (features) and the targeted sets of section 7.2.

Warstadt, Singh and Bowman (2019). The test sets, 530 and 533 sentences, are not public with their labels: counts and
shares by source are of the 9,594 other sentences, and stand beside the paper's without being the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from acceptability.studies.cells import Cell, Key, Printed, beside, not_compared
from acceptability.studies.cola_splits import PUBLIC, PUBLISHED, SOURCES, find_split
from acceptability.studies.niu_penn_cola import labelled_cola
from acceptability.suites import load_suite
from acceptability.types import Sentence

Values = Mapping[Key, Printed]

FEATURES = ("Simple", "Adjunct", "Comp Clause", "to-VP", "Arg Altern", "Binding", "Question", "Violations")
"""The eight of fifteen classes that Figures 1 and 4 show."""

TARGETED = {
    "SVO": "cola/targeted/svo",
    "Wh": "cola/targeted/wh_extraction",
    "Causative": "cola/targeted/inchoative",
    "SV Agr.": "cola/targeted/singular_pl",
    "Reflexive": "cola/targeted/reflexive",
}
"""The columns of Table 6, and their suites."""

SETS = {
    "training set": "cola/train",
    "in-domain development set": "cola/in_domain_dev",
    "out-of-domain development set": "cola/out_of_domain_dev",
}
_TEST = "the paper's number counts the test sets (530 and 533 sentences), which are not public with their labels"
_PAPER_ONLY = "the topic is the authors' word; the files do not have it"
_MARKS = {1: "✓", 0: "*"}
_SAMPLE = 10


def having(sentences: Sequence[Sentence], grain: str, feature: str) -> list[Sentence]:
    """Return the sentences of the analysis set that have a feature, major or minor."""
    return [each for each in sentences if each.tags[f"{grain}/{feature}"] == "1"]


def features_of(sentences: Sequence[Sentence], grain: str) -> list[str]:
    """Return the names of the 15 major or the 63 minor features, in the order of the file."""
    return [name.partition("/")[2] for name in sentences[0].tags if name.startswith(f"{grain}/")]


def corpus_cells(values: Values) -> list[Cell]:
    """Return all that can be said of CoLA without a model."""
    return [*_sets(values), *_table_2(values), *_table_3(values), *_figure_1(values), *_targeted(values)]


def _sets(values: Values) -> Iterator[Cell]:
    for row, name in SETS.items():
        size = len(load_suite(name).sentences)
        yield beside(values, ("Section 3", row, "sentences"), size, "public files")
    for row in ("in-domain test set", "out-of-domain test set"):
        yield beside(values, ("Section 3", row, "sentences"), None, "not public")
    for row, names in (("in-domain sources", list(SETS)[:2]), ("out-of-domain sources", list(SETS)[2:])):
        sources = {each.tags["source"] for name in names for each in load_suite(SETS[name]).sentences}
        yield beside(values, ("Section 3", row, "sources"), len(sources), "public files")


def _table_2(values: Values) -> Iterator[Cell]:
    everything = labelled_cola().sentences
    outside = find_split(PUBLISHED, values).outside
    inside = [code for code in SOURCES if code not in outside]
    rows = {SOURCES[code]: (code,) for code in inside} | {"In-Domain": tuple(inside)}
    rows |= {SOURCES[code]: (code,) for code in SOURCES if code in outside}
    rows |= {"Out-of-Domain": outside, "Total": tuple(SOURCES)}
    for row, codes in rows.items():
        of = [each for each in everything if each.tags["source"] in codes]
        share = 100 * float(np.mean([each.label or 0 for each in of]))
        yield _public_count(values, row, len(of))
        yield not_compared(values, ("Table 2", row, "%"), share, PUBLIC, note=_TEST)
        if ("Table 2", row, "Topic") in values:
            yield beside(values, ("Table 2", row, "Topic"), None, "not in the files", note=_PAPER_ONLY)


def _public_count(values: Values, row: str, count: int) -> Cell:
    # The paper's sum of sources in domain is set beside its own table; ours gets a column of its own there.
    if row == "In-Domain":
        return beside({}, ("Table 2", row, "N, public"), count, PUBLIC, note=_TEST)
    return not_compared(values, ("Table 2", row, "N"), count, PUBLIC, note=_TEST)


def _table_3(values: Values) -> Iterator[Cell]:
    """Yield the paper's ten sentences as the training set has them, and ten of our own draw."""
    train = load_suite("cola/train").sentences
    by_text = {each.text: each for each in train}
    for number in range(1, _SAMPLE + 1):
        row = f"sentence {number}"
        found = by_text.get(values["Table 3", row, "Sentence"].value)
        note = "" if found else "version 1.1 does not have the sentence as it is printed"
        for column, ours in _shown(found).items():
            yield beside(values, ("Table 3", row, column), ours, "training set, version 1.1", note=note)
    for number, place in enumerate(np.random.default_rng(0).permutation(len(train))[:_SAMPLE], start=1):
        for column, ours in _shown(train[place]).items():
            yield beside({}, ("Table 3", f"our draw {number}", column), ours, "training set, seed 0")


def _shown(sentence: Sentence | None) -> dict[str, str | None]:
    if sentence is None:
        return dict.fromkeys(("Label", "Sentence", "Source"))
    label, source = _MARKS[sentence.label or 0], SOURCES[sentence.tags["source"]]
    return {"Label": label, "Sentence": sentence.text, "Source": source}


def _figure_1(values: Values) -> Iterator[Cell]:
    sentences = load_suite("cola/analysis").sentences
    source = f"analysis set, {len(sentences):,} sentences"
    major, minor = (features_of(sentences, grain) for grain in ("major", "minor"))
    marked = sum(len(having(sentences, "major", name)) for name in major)
    note = "of the 15 classes; all eight that the figure shows are among them"
    yield beside(values, ("Figure 1", "a sentence", "features"), marked / len(sentences), source, note=note)
    yield beside(values, ("Figure 1", "every class", "features"), len(major), source)
    yield beside(values, ("Figure 1", "every fine-grained feature", "features"), len(minor), source)
    column = "sentences (%)"
    for name in (*FEATURES, *(each for each in major if each not in FEATURES)):
        share = _percent(sentences, "major", name)
        told = values.get(("Figure 1", name, column))
        # The paper says "over 40" of argument alternations, and gives the others as bars only.
        agrees = share > float(told.value.removeprefix("over ")) if told else None
        note = "" if name in FEATURES else "not among the eight that the figure shows"
        yield Cell("Figure 1", name, column, told.value if told else None, share, source, agrees, note)
    name = "Infl/Agr Violation"
    share = _percent(sentences, "minor", name)
    note = "the paper: about 6% of CoLA have morphological violations"
    yield beside(values, ("Figure 1", name, column), share, source, note=note)


def _percent(sentences: Sequence[Sentence], grain: str, feature: str) -> float:
    return 100 * len(having(sentences, grain, feature)) / len(sentences)


def _targeted(values: Values) -> Iterator[Cell]:
    """Yield what the targeted sets hold."""
    suites = {name: load_suite(place).sentences for name, place in TARGETED.items()}
    sizes = {name: len(sentences) for name, sentences in suites.items()}
    good = {name: sum(each.label == 1 for each in sentences) for name, sentences in suites.items()}
    pairs = sizes["Causative"] // 2
    counted: dict[tuple[str, str], float | str] = {
        ("SVO", "sentences"): sizes["SVO"],
        ("Wh", "pairs"): sizes["Wh"] // 2,
        ("Causative", "verb/object pairs"): pairs,
        # Every pair is acceptable with an agent; those that alternate are so without one too.
        ("Causative", "pairs that alternate"): good["Causative"] - pairs,
        ("SV Agr.", "quadruples"): sizes["SV Agr."] // 4,
        ("Reflexive", "sentences"): sizes["Reflexive"],
        ("Reflexive", "acceptable"): f"1 of {sizes['Reflexive'] / good['Reflexive']:g}",
    }
    for place, ours in counted.items():
        yield beside(values, ("Section 7.2", *place), ours, "public files")
