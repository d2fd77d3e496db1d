"""CoLA itself: Table 2 (sources), Table 3 (a sample), Figure 1 (features), and the targeted sets of section 7.2.

Warstadt, Singh and Bowman (2019). The labels of the test sets (530 and 533 sentences) are not public. Counts and
percentages by source are therefore of the 9,594 other sentences, and stand beside the paper's without being compared.

The second half of the module divides CoLA by its sources: the published split, the five others of Table 5, and random
ones by the same rule (section 6). Sources are drawn until they have more than 750 sentences: those are out of domain.
As many in-domain sentences are held out too, and the others form the training set. Without the labels of the test sets,
every part is smaller here than in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import UnknownName
from acceptability.papers.cells import Cell, PublishedValues, make_cell, make_uncompared_cell
from acceptability.papers.niu_penn.pbc_tables import load_labelled_cola
from acceptability.suites import load_suite
from acceptability.types import Sentence, Suite

# The order of the entries matters: ``draw_random_split`` permutes it, so that another order gives other splits.
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
"""The sources, by their code in the files, as Table 2 names them."""

FEATURES = ("Simple", "Adjunct", "Comp Clause", "to-VP", "Arg Altern", "Binding", "Question", "Violations")
"""The features that Figures 1 and 4 show: eight of the fifteen major ones."""

TARGETED_SUITES = {
    "SVO": "cola/targeted/svo",
    "Wh": "cola/targeted/wh_extraction",
    "Causative": "cola/targeted/inchoative",
    "SV Agr.": "cola/targeted/singular_pl",
    "Reflexive": "cola/targeted/reflexive",
}
"""The columns of Table 6, and their suites."""

PUBLIC_SETS = {
    "training set": "cola/train",
    "in-domain development set": "cola/in_domain_dev",
    "out-of-domain development set": "cola/out_of_domain_dev",
}
_TEST_SET_NOTE = (
    "the paper's number counts the test sets (530 and 533 sentences), which are not public with their labels"
)
_TOPIC_NOTE = "the topic is the authors' word; the files do not have it"

# The marks of Table 3. The paper prints ten sentences there.
_LABEL_MARKS = {1: "✓", 0: "*"}
_SAMPLE_SIZE = 10

PUBLISHED_SPLIT = "orig."
PUBLIC_FILES = "public files: training set and both development sets"
# The column "Out Sources" of Table 5. The paper drew splits 1 to 5 at random and prints no seed, so they are copied.
_OUT_OF_DOMAIN = {
    PUBLISHED_SPLIT: ("c-05", "j_71", "s_97", "clc95", "w_80", "swb04"),
    "1": ("bc01", "b_73"),
    "2": ("kl93", "sgww85", "w_80", "d_98", "b_73", "g_81"),
    "3": ("ad03", "d_98", "g_81"),
    "4": ("b_82", "swb04", "cj99"),
    "5": ("m_02", "bc01", "cj99"),
}
_MIN_OUT_OF_DOMAIN = 750  # section 6
_TEST_SPLIT_NOTE = "the paper counts test sentences too, which are not public with their labels"


def select_by_feature(sentences: Sequence[Sentence], grain: str, feature: str) -> list[Sentence]:
    """Return the sentences of the analysis set that have a feature.

    Args:
        sentences: Sentences of the analysis set.
        grain: ``major`` or ``minor``: which of the two inventories the feature is from.
        feature: Its name in the file.
    """
    return [sentence for sentence in sentences if sentence.tags[f"{grain}/{feature}"] == "1"]


def list_features(sentences: Sequence[Sentence], grain: str) -> list[str]:
    """Return the names of the 15 ``major`` or the 63 ``minor`` features, in the order of the file."""
    return [name.partition("/")[2] for name in sentences[0].tags if name.startswith(f"{grain}/")]


def compute_corpus_cells(values: PublishedValues) -> list[Cell]:
    """Return every number about CoLA that needs no model."""
    return [
        *_compute_set_size_cells(values),
        *_compute_table_2_cells(values),
        *_compute_table_3_cells(values),
        *_compute_figure_1_cells(values),
        *_compute_targeted_set_cells(values),
    ]


def _compute_set_size_cells(values: PublishedValues) -> Iterator[Cell]:
    for row, name in PUBLIC_SETS.items():
        size = len(load_suite(name).sentences)
        yield make_cell(values, ("Section 3", row, "sentences"), size, "public files")
    for row in ("in-domain test set", "out-of-domain test set"):
        yield make_cell(values, ("Section 3", row, "sentences"), None, "not public")
    # The training set and the in-domain development set come from the same sources.
    for row, names in (("in-domain sources", list(PUBLIC_SETS)[:2]), ("out-of-domain sources", list(PUBLIC_SETS)[2:])):
        sources = {sentence.tags["source"] for name in names for sentence in load_suite(PUBLIC_SETS[name]).sentences}
        yield make_cell(values, ("Section 3", row, "sources"), len(sources), "public files")


def _compute_table_2_cells(values: PublishedValues) -> Iterator[Cell]:
    labelled = load_labelled_cola().sentences
    out_of_domain = find_split(PUBLISHED_SPLIT, values).out_of_domain_sources
    in_domain = [code for code in SOURCES if code not in out_of_domain]
    # In the order of the printed table: in-domain sources and their sum, then out-of-domain ones and theirs.
    rows = {SOURCES[code]: (code,) for code in in_domain} | {"In-Domain": tuple(in_domain)}
    rows |= {SOURCES[code]: (code,) for code in SOURCES if code in out_of_domain}
    rows |= {"Out-of-Domain": out_of_domain, "Total": tuple(SOURCES)}
    for row, codes in rows.items():
        selected = [sentence for sentence in labelled if sentence.tags["source"] in codes]
        share = 100 * float(np.mean([sentence.label or 0 for sentence in selected]))
        yield _public_count_cell(values, row, len(selected))
        yield make_uncompared_cell(values, ("Table 2", row, "%"), share, PUBLIC_FILES, note=_TEST_SET_NOTE)
        if ("Table 2", row, "Topic") in values:
            yield make_cell(values, ("Table 2", row, "Topic"), None, "not in the files", note=_TOPIC_NOTE)


def _public_count_cell(values: PublishedValues, row: str, count: int) -> Cell:
    # The row "In-Domain" is taken: ``compute_paper_claim_cells`` checks the paper's sum against the rows of its own
    # table. The count of the public files gets a column of its own.
    if row == "In-Domain":
        return make_cell({}, ("Table 2", row, "N, public"), count, PUBLIC_FILES, note=_TEST_SET_NOTE)
    return make_uncompared_cell(values, ("Table 2", row, "N"), count, PUBLIC_FILES, note=_TEST_SET_NOTE)


def _compute_table_3_cells(values: PublishedValues) -> Iterator[Cell]:
    """Yield the paper's ten sentences as they are in the training set, and ten drawn by us."""
    train = load_suite("cola/train").sentences
    # By exact text: version 1.1 of the corpus words one of the ten sentences differently, which the note reports.
    by_text = {sentence.text: sentence for sentence in train}
    for number in range(1, _SAMPLE_SIZE + 1):
        row = f"sentence {number}"
        sentence = by_text.get(values["Table 3", row, "Sentence"].value)
        note = "" if sentence else "version 1.1 does not have the sentence as it is printed"
        for column, ours in _format_table_3_row(sentence).items():
            yield make_cell(values, ("Table 3", row, column), ours, "training set, version 1.1", note=note)
    for number, index in enumerate(np.random.default_rng(0).permutation(len(train))[:_SAMPLE_SIZE], start=1):
        for column, ours in _format_table_3_row(train[index]).items():
            yield make_cell({}, ("Table 3", f"our draw {number}", column), ours, "training set, seed 0")


def _format_table_3_row(sentence: Sentence | None) -> dict[str, str | None]:
    if sentence is None:
        return dict.fromkeys(("Label", "Sentence", "Source"))
    label, source = _LABEL_MARKS[sentence.label or 0], SOURCES[sentence.tags["source"]]
    return {"Label": label, "Sentence": sentence.text, "Source": source}


def _compute_figure_1_cells(values: PublishedValues) -> Iterator[Cell]:
    sentences = load_suite("cola/analysis").sentences
    source = f"analysis set, {len(sentences):,} sentences"
    major, minor = (list_features(sentences, grain) for grain in ("major", "minor"))
    feature_count = sum(len(select_by_feature(sentences, "major", name)) for name in major)
    note = "of the 15 classes; all eight that the figure shows are among them"
    yield make_cell(values, ("Figure 1", "a sentence", "features"), feature_count / len(sentences), source, note=note)
    yield make_cell(values, ("Figure 1", "every class", "features"), len(major), source)
    yield make_cell(values, ("Figure 1", "every fine-grained feature", "features"), len(minor), source)
    column = "sentences (%)"
    for name in (*FEATURES, *(feature for feature in major if feature not in FEATURES)):
        share = _feature_percent(sentences, "major", name)
        published = values.get(("Figure 1", name, column))
        # The text says "over 40" of argument alternations; all others are bars without numbers. A bound cannot be
        # reproduced by rounding, hence the comparison here.
        agrees = share > float(published.value.removeprefix("over ")) if published else None
        note = "" if name in FEATURES else "not among the eight that the figure shows"
        yield Cell("Figure 1", name, column, published.value if published else None, share, source, agrees, note)
    name = "Infl/Agr Violation"
    share = _feature_percent(sentences, "minor", name)
    note = "the paper: about 6% of CoLA have morphological violations"
    yield make_cell(values, ("Figure 1", name, column), share, source, note=note)


def _feature_percent(sentences: Sequence[Sentence], grain: str, feature: str) -> float:
    return 100 * len(select_by_feature(sentences, grain, feature)) / len(sentences)


def _compute_targeted_set_cells(values: PublishedValues) -> Iterator[Cell]:
    """Yield the sizes of the targeted sets."""
    suites = {column: load_suite(name).sentences for column, name in TARGETED_SUITES.items()}
    sizes = {column: len(sentences) for column, sentences in suites.items()}
    good = {column: sum(sentence.label == 1 for sentence in sentences) for column, sentences in suites.items()}
    pairs = sizes["Causative"] // 2
    counts: dict[tuple[str, str], float | str] = {
        ("SVO", "sentences"): sizes["SVO"],
        ("Wh", "pairs"): sizes["Wh"] // 2,
        ("Causative", "verb/object pairs"): pairs,
        # Every verb is acceptable with an agent ("jessica opened the door"), and only verbs that alternate without one
        # ("the door opened"). So the acceptable sentences beyond one for each pair belong to alternating verbs.
        ("Causative", "pairs that alternate"): good["Causative"] - pairs,
        ("SV Agr.", "quadruples"): sizes["SV Agr."] // 4,
        ("Reflexive", "sentences"): sizes["Reflexive"],
        ("Reflexive", "acceptable"): f"1 of {sizes['Reflexive'] / good['Reflexive']:g}",
    }
    for row_and_column, ours in counts.items():
        yield make_cell(values, ("Section 7.2", *row_and_column), ours, "public files")


@dataclass(frozen=True)
class Split:
    """A division of CoLA's sources into in-domain and out-of-domain ones.

    Args:
        name: Its name in Table 5, or ``random-SEED``.
        out_of_domain_sources: The codes of the sources that are held out as out of domain.
    """

    name: str
    out_of_domain_sources: tuple[str, ...]


@dataclass(frozen=True)
class SplitSuites:
    """The sentences of a split: the training set, and held-out sentences of the same and of other sources."""

    train: Suite
    in_domain: Suite
    out_of_domain: Suite


def list_paper_splits() -> tuple[Split, ...]:
    """Return the published split and the five others of Table 5."""
    return tuple(Split(name, sources) for name, sources in _OUT_OF_DOMAIN.items())


def draw_random_split(values: PublishedValues, seed: int) -> Split:
    """Return a split by the paper's rule: sources are drawn at random until they have more than 750 sentences.

    Args:
        values: The paper's values, for the sizes of the sources in Table 2.
        seed: Seeds the draw.
    """
    # A permutation, so that no source is drawn twice. The last one may exceed the minimum by any amount: the rule stops
    # after it, and does not look for a better fit.
    drawn_sources: list[str] = []
    total = 0
    # The sizes of Table 2 and not those of the public files: they count the test sets, and the paper's rule did too.
    for index in np.random.default_rng(seed).permutation(len(SOURCES)):
        drawn_sources.append(list(SOURCES)[index])
        total += count_paper_sentences(values, drawn_sources[-1:])
        if total > _MIN_OUT_OF_DOMAIN:
            break
    return Split(f"random-{seed}", tuple(drawn_sources))


def find_split(name: str, values: PublishedValues) -> Split:
    """Return the split with a name: ``orig.``, ``1`` to ``5``, or ``random-SEED``."""
    kind, _, seed = name.partition("-")
    if kind == "random" and seed.isdigit():
        return draw_random_split(values, int(seed))
    if name not in _OUT_OF_DOMAIN:
        hint = f"There are {', '.join(_OUT_OF_DOMAIN)}, and random-0, random-1, ..."
        raise UnknownName("split of CoLA", name, list(_OUT_OF_DOMAIN), hint=hint)
    return Split(name, _OUT_OF_DOMAIN[name])


def build_split_suites(split: Split, *, seed: int = 0, labelled: Suite | None = None) -> SplitSuites:
    """Return the three parts of a split, made of all sentences with public labels.

    Args:
        split: Which sources are out of domain.
        seed: Seeds the draw of the in-domain sentences that are held out: as many as there are out of domain.
        labelled: All sentences with public labels, to save reading them again.
    """
    # The published split was not drawn by the rule below: its development sets are files of their own.
    if split.name == PUBLISHED_SPLIT:
        return SplitSuites(*(load_suite(f"cola/{name}") for name in ("train", "in_domain_dev", "out_of_domain_dev")))
    sentences = (labelled or load_labelled_cola()).sentences
    out_of_domain = [sentence for sentence in sentences if sentence.tags["source"] in split.out_of_domain_sources]
    in_domain = [sentence for sentence in sentences if sentence.tags["source"] not in split.out_of_domain_sources]
    held_out = set(np.random.default_rng(seed).permutation(len(in_domain))[: len(out_of_domain)].tolist())
    return SplitSuites(
        _make_split_suite(split, "train", (sentence for i, sentence in enumerate(in_domain) if i not in held_out)),
        _make_split_suite(split, "in domain", (sentence for i, sentence in enumerate(in_domain) if i in held_out)),
        _make_split_suite(split, "out of domain", out_of_domain),
    )


def _make_split_suite(split: Split, part: str, sentences: Iterable[Sentence]) -> Suite:
    return Suite(f"cola, split {split.name}, {part}", tuple(sentences))


def count_paper_sentences(values: PublishedValues, sources: Iterable[str]) -> int:
    """Return how many sentences some sources have together, according to Table 2."""
    return sum(int(values["Table 2", SOURCES[source], "N"].value) for source in sources)


def compute_split_cells(values: PublishedValues, n_random: int = 5) -> Iterator[Cell]:
    """Yield the sizes of the splits of Table 5 and of some random ones: in the public files, and according to Table 2.

    Args:
        values: The paper's values.
        n_random: How many random splits to add, with the seeds 0, 1, ...
    """
    # Read once for all splits: each of them divides the same sentences.
    labelled = load_labelled_cola()
    for split in list_paper_splits():
        yield from _compute_size_cells(values, split, labelled, "the sources of the public files")
    for seed in range(n_random):
        yield from _compute_size_cells(values, draw_random_split(values, seed), labelled, "drawn by the paper's rule")


def _compute_size_cells(values: PublishedValues, split: Split, labelled: Suite, source: str) -> Iterator[Cell]:
    split_suites, row = build_split_suites(split, labelled=labelled), split.name
    yield make_cell(
        values, ("Table 5", row, "Out Sources"), ", ".join(map(short_source_name, split.out_of_domain_sources)), source
    )
    size = count_paper_sentences(values, split.out_of_domain_sources)
    yield make_cell(values, ("Table 5", row, "Out N"), size, "the paper's Table 2, summed")
    for column, suite in (
        ("Out N", split_suites.out_of_domain),
        ("In N", split_suites.in_domain),
        ("train N", split_suites.train),
    ):
        note = _TEST_SPLIT_NOTE if column == "Out N" else ""
        yield make_cell({}, ("Table 5", row, f"{column}, public"), len(suite.sentences), PUBLIC_FILES, note=note)


def short_source_name(source: str) -> str:
    """Return the name of a source in Table 5.

    >>> short_source_name("c-05"), short_source_name("j_71")
    ('C05', 'J71')
    """
    return source.replace("-", "").replace("_", "").upper()


def compute_paper_claim_cells(values: PublishedValues) -> Iterator[Cell]:
    """Yield the paper's claims about its own Tables 2 and 5, recomputed from the numbers printed there."""
    in_domain = [source for source in SOURCES if source not in _OUT_OF_DOMAIN[PUBLISHED_SPLIT]]
    yield make_cell(
        values,
        ("Table 2", "In-Domain", "N"),
        count_paper_sentences(values, in_domain),
        "the paper's own Table 2, summed",
    )
    source = "the paper's own Table 5"
    gaps = [
        _published_number(values, name, "In-Domain MCC") - _published_number(values, name, "Out-of-Domain MCC")
        for name in _OUT_OF_DOMAIN
    ]
    sizes = [_published_number(values, name, "Out N") for name in _OUT_OF_DOMAIN]
    column = "in-domain MCC above out-of-domain"
    yield make_cell(values, ("Section 6", "original split", column), gaps[0], source)
    yield make_cell(values, ("Section 6", "largest difference", column), max(gaps), source)
    yield make_cell(values, ("Section 6", "smallest out-of-domain set", "sentences"), min(sizes), source)
    yield make_cell(values, ("Section 6", "largest out-of-domain set", "sentences"), max(sizes), source)


def _published_number(values: PublishedValues, row: str, column: str) -> float:
    return float(values["Table 5", row, column].value)
