"""Warstadt et al. (2019), "Investigating BERT's Knowledge of Language: Five Analysis Methods with NPIs", recomputed.

Five methods on nine environments: Boolean acceptability (Figure 1), absolute and gradient minimal pairs (Figure 2), the
cloze test (Figure 3) and probing (Figure 4), with the variants of the appendix. The counts of the data need no model
and are always there. Language models join in the cloze test, folders of classifiers fill the other figures, and a file
of ratings the human validation.

In the cloze test (Figure 3) a language model compares the two words in which a pair of sentences differs. A masked
model sees the rest of the sentence with the word masked, a causal one only what precedes it. All tokens of a word are
masked together, and their log-probabilities summed.

In the human validation, ratings from 1 to 6 are compared with the labels. The paper's 10,000 ratings are not published.
A user's file has a row for each answer: participant, sentence (or its id), response; and optionally environment, npi
(the word) and label, which otherwise come from the suite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from acceptability.api.contrasts import score_target_contrasts
from acceptability.api.scoring import ProgressCallback
from acceptability.errors import SpecError, SuiteError, Undefined
from acceptability.measures.target_contrast import ClozePair
from acceptability.papers import RESTARTS, Paper, StudyOption
from acceptability.papers.cells import (
    Cell,
    PublishedValues,
    make_cell,
    make_uncompared_cell,
    read_published_values,
)
from acceptability.papers.npi.npi_data import (
    ENVIRONMENT,
    ENVIRONMENT_LABELS,
    FACTORS,
    VARIED_FACTOR,
    NpiData,
    add_factor_tags,
    environment_label,
    load_npi_data,
    make_minimal_pairs,
)
from acceptability.papers.npi.npi_figures import (
    BY_TRAINING,
    ProbeFunction,
    compute_figure_cells,
    compute_finding_cells,
    compute_probing_cells,
    load_judgements,
)
from acceptability.papers.npi.npi_training import (
    WILCOX_SUITE,
    PlanFolder,
    confine_plan,
    read_plan_folder,
    short_model_name,
    train_study_classifiers,
)
from acceptability.people.choices import PAIRING_UNITS, signed_rank_by_label, split_by_tag, validate_labels
from acceptability.people.responses import Responses, read_responses, read_source_rows
from acceptability.protocols import Engine
from acceptability.specs import parse_model_spec
from acceptability.stats.effects.effect_sizes import format_effect_size
from acceptability.suites import load_suite
from acceptability.types import Sentence, Suite

_CORPUS_TABLE = "Section 4"
_SIMPLE_QUESTIONS = "simplequestions"
_SPLITS = {"training": "train", "development": "dev", "test": "test_full"}
_SOURCE = "published data"

_CLOZE_TABLE = "Figure 3"
_PAPER_MODEL = "BERT MLM"

_PEOPLE_TABLE = "Human validation"
_AGREEMENT = "agreement %"
_SENTENCE_COLUMNS = (ENVIRONMENT, "label")
"""The columns of a ratings file that make a suite unnecessary: it describes its sentences itself."""

# What would fill a row, by table; shown beside the paper's value.
_MISSING_NOTES = {
    "Figure 1": "needs classifiers: --train --out DIR, or --restarts DIR",
    "Figure 3": "needs a language model: --model masked:DIR",
    "Findings": "needs classifiers: --train --out DIR, or --restarts DIR",
    _PEOPLE_TABLE: "the ratings are not published; --ratings FILE fills the row with yours",
}

_SHARED_ROW_TABLES = ("Figure 1", "Figure 3", "Findings")
"""Tables in which the paper's numbers, of other models, are shown in the rows of ours."""

_TABLE_ORDER = (
    "Section 4",
    _PEOPLE_TABLE,
    "Findings",
    "Figure 1",
    BY_TRAINING,
    *(f"Figure 2, {factor}" for factor in FACTORS),
    *(f"Figure {number}" for number in range(3, 10)),
)


def cells(
    models: Sequence[str] = (),
    *,
    restarts: Sequence[str | Path | PlanFolder] = (),
    suite: str = "",
    ratings: str | Path = "",
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
    probe: ProbeFunction | None = None,
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and those of the user's models.

    Args:
        models: Language models, for the cloze test.
        restarts: Folders of classifiers that were trained with ``--train``. A plan may name what is in its folder,
            suites of the catalog and named models; one that names more has been through ``confine_plan``.
        suite: A file of sentences for the cloze test, in place of the published ones.
        ratings: A file of human ratings, for the validation.
        engine: Where the language models run: ``local`` or ``ray(...)``.
        progress: Called with the progress of scoring and probing.
        probe: The function that probes encoders; by default ``acceptability.probing.probe``.
    """
    values = read_published_values("npi")
    computed = [*compute_corpus_cells(values)]
    for path in restarts:
        computed += _compute_folder_cells(path, values, progress, probe)
    for model in models:
        if parse_model_spec(model)[0] == "classifier":
            raise SpecError(f"{model}: a classifier has no cloze test; folders of classifiers join by --restarts")
        computed += cloze_cells(model, load_npi_data(suite), values, engine=engine, progress=progress)
    if ratings:
        computed += compute_people_cells(ratings, suite, values)
    # The sort is stable: within a table, cells keep the order in which they were computed.
    return sorted([*computed, *_list_missing_cells(values, computed)], key=lambda cell: _TABLE_ORDER.index(cell.table))


def _compute_folder_cells(
    restarts: str | Path | PlanFolder,
    values: PublishedValues,
    progress: ProgressCallback | None,
    probe: ProbeFunction | None,
) -> Iterator[Cell]:
    folder = restarts if isinstance(restarts, PlanFolder) else confine_plan(read_plan_folder(restarts))
    all_judgements = load_judgements(folder, progress)
    yield from compute_finding_cells(all_judgements, values)
    for judgements in all_judgements:
        yield from compute_figure_cells(judgements, values)
    yield from compute_probing_cells(folder, progress, probe)


def _list_missing_cells(values: PublishedValues, computed: Sequence[Cell]) -> Iterator[Cell]:
    """Yield the printed values that nothing of ours stands beside, each with a note on what it would need."""
    # In the figures our rows carry the name of our model and show the paper's number as well: repeating it in a row of
    # its own would list every published value twice.
    computed_keys = {(cell.table, cell.row, cell.column) for cell in computed}
    filled_tables = {cell.table for cell in computed if cell.table in _SHARED_ROW_TABLES}
    for key in values:
        if key not in computed_keys and key[0] not in filled_tables:
            yield make_cell(values, key, None, "not computed", note=_MISSING_NOTES.get(key[0], ""))


def compute_corpus_cells(values: PublishedValues) -> Iterator[Cell]:
    """Yield the counts of section 4: sentences, environments and pairs in the published files."""
    all_sentences, data = load_suite("npi"), load_npi_data()
    for row, ours in {**_count_sentences(all_sentences), **_summarise_minimal_pairs()}.items():
        yield make_cell(values, (_CORPUS_TABLE, row, "count"), ours, _SOURCE)
    for factor, count in Counter(pair.tags[VARIED_FACTOR] for pair in data.pairs.contrasts).items():
        yield make_cell(values, (_CORPUS_TABLE, f"minimal pairs that differ in {factor}", "count"), count, _SOURCE)


def _count_sentences(all_sentences: Suite) -> dict[str, float | str]:
    counts: dict[str, float | str] = {
        "sentences": len(all_sentences.sentences),
        "environments": len({sentence.tags[ENVIRONMENT] for sentence in all_sentences.sentences}),
        "NPIs": len({sentence.tags["npi"] for sentence in all_sentences.sentences}),
    }
    for name, split in _SPLITS.items():
        in_split = [sentence for sentence in all_sentences.sentences if sentence.tags["split"] == split]
        sizes = Counter(sentence.tags[ENVIRONMENT] for sentence in in_split)
        counts[f"{name} sentences of an environment"] = _format_thousands(sizes.values())
    return counts | {"handcrafted sentences after Wilcox et al.": len(load_suite(WILCOX_SUITE).sentences)}


def _summarise_minimal_pairs() -> dict[str, float | str]:
    """Return how many pairs are published, in all and per paradigm, and how many of ours are among them."""
    data = load_npi_data()
    # By text, since the ids of published pairs are not those of the test sentences.
    ours, theirs = _pair_texts(make_minimal_pairs(data.test)), _pair_texts(data.pairs)
    sets = {
        environment: {
            sentence.tags["set"] for sentence in data.test.sentences if sentence.tags[ENVIRONMENT] == environment
        }
        for environment in ENVIRONMENT_LABELS
    }
    counts = Counter(pair.tags[ENVIRONMENT] for pair in data.pairs.contrasts)
    # Simple questions are counted apart: scope does not vary in their paradigms, so that these have fewer pairs.
    rates = {counts[name] / len(sets[name]) for name in ENVIRONMENT_LABELS if name != _SIMPLE_QUESTIONS}
    return {
        "minimal pairs of a paradigm": rates.pop() if len(rates) == 1 else str(sorted(rates)),
        "minimal pairs of a paradigm, simple questions": counts[_SIMPLE_QUESTIONS] / len(sets[_SIMPLE_QUESTIONS]),
        "minimal pairs published": len(data.pairs.contrasts),
        "of them made again by the rule": f"{len(ours & theirs)} of {len(ours)}",
        "cloze pairs published": len(data.cloze.contrasts),
    }


def _pair_texts(suite: Suite) -> set[tuple[str, str]]:
    return {(suite.by_id[pair.better].text, suite.by_id[pair.worse].text) for pair in suite.contrasts}


def _format_thousands(sizes: Iterable[int]) -> str:
    """Return sizes as the paper writes them: equal ones once.

    >>> _format_thousands([1000, 1000])
    '1K'
    """
    return " or ".join(sorted({f"{size / 1000:g}K" for size in sizes}))


def cloze_cells(
    model: str,
    data: NpiData,
    values: PublishedValues,
    *,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Iterator[Cell]:
    """Yield how often a language model gives the word of the acceptable sentence the higher probability.

    Args:
        model: A language model.
        data: The pairs.
        values: The paper's values.
        engine: Where the model runs.
        progress: Called with the progress of scoring.
    """
    # Without ``multi_token``, pairs in which a word is split into several tokens would be left out, and which ones
    # these are differs between tokenizers.
    scored = score_target_contrasts(data.cloze, model, multi_token=True, engine=engine, progress=progress)
    units = ClozePair().units(scored.suite, scored.scores)
    pair_note = "; ".join((f"{len(units.ids)} of {len(data.cloze.contrasts)} pairs", *scored.notes(), *units.notes))
    rows = list(zip(units.tags, units["correct"].tolist(), strict=True))
    for factor in FACTORS:
        correct_by_group = {
            group: [correct for tags, correct in rows if (tags[VARIED_FACTOR], tags[ENVIRONMENT]) == (factor, group)]
            for group in data.environments
        }
        shares = {environment_label(group): fmean(correct) for group, correct in correct_by_group.items() if correct}
        # Scope is never a matter of a single word: there are no cloze pairs for it.
        if not shares:
            continue
        notes = {environment_label(group): f"{len(correct)} pairs" for group, correct in correct_by_group.items()}
        # The paper prints no numbers in its heat map, only the lowest and the highest in the text.
        extremes = {"lowest": min(shares.values()), "highest": max(shares.values())}
        for column in (*notes, *extremes):
            published = values.get((_CLOZE_TABLE, f"{_PAPER_MODEL}: {factor}", column))
            paper_note = f"the paper's is of {_PAPER_MODEL}" if published else ""
            full_note = "; ".join(filter(None, (notes.get(column, ""), pair_note, paper_note, scored.scores.signature)))
            row, value = f"{short_model_name(model)}: {factor}", (shares | extremes).get(column)
            yield Cell(
                _CLOZE_TABLE,
                row,
                column,
                published.value if published else None,
                value,
                _describe_source(model),
                None,
                full_note,
            )


def _describe_source(model: str) -> str:
    return f"re-scored with {model}"


def compute_people_cells(file: str | Path, suite: str, values: PublishedValues) -> Iterator[Cell]:
    """Yield how often ratings agree with labels: for all sentences, by NPI, by environment, and by both.

    Args:
        file: The ratings.
        suite: A file of sentences that the ratings refer to; empty for the published ones.
        values: The paper's values.
    """
    responses = read_ratings(file, suite)
    source = f"ratings in {Path(file).name}"
    for row, row_responses in _group_responses(responses):
        for column, (ours, note) in _validation_numbers(row_responses):
            yield make_uncompared_cell(values, (_PEOPLE_TABLE, row, column), ours, source, note=note)


def read_ratings(file: str | Path, suite: str = "") -> Responses:
    """Return ratings whose sentences have a label, an environment and a ``word``: the NPI of their paradigm."""
    # A file that describes its sentences itself may be about sentences of no suite.
    header, _ = read_source_rows(file)
    known = None if all(name in header for name in _SENTENCE_COLUMNS) else add_factor_tags(load_suite(suite or "npi"))
    responses = read_responses(file, kind="likert", suite=known)
    return replace(
        responses, sentences=tuple(_add_npi_word(sentence, responses.name) for sentence in responses.sentences)
    )


def _add_npi_word(sentence: Sentence, name: str) -> Sentence:
    """Return a sentence with its NPI, or that of its paradigm, as the tag ``word``."""
    if ENVIRONMENT not in sentence.tags:
        raise SuiteError(f"{name}: {sentence.id!r} has no tag {ENVIRONMENT!r}")
    # Files use different columns. In some ``npi`` holds the word, in others 0 or 1 for its presence, with the word in
    # ``npi_word``; ``add_factor_tags`` moves the word of the published files to ``word``.
    candidates = (sentence.tags.get(tag, "") for tag in ("word", "npi_word", "npi"))
    word = next((word for word in candidates if word and word not in ("0", "1")), "")
    return replace(sentence, tags={**sentence.tags, "word": word} if word else sentence.tags)


def _group_responses(responses: Responses) -> Iterator[tuple[str, Responses]]:
    """Yield the name of each row of the table, and the answers it is computed from."""
    yield "all sentences", responses
    for label, name in ((1, "acceptable sentences"), (0, "unacceptable sentences")):
        subset = responses.select(_has_label(label))
        if subset.sentences:
            yield name, subset
    yield from split_by_tag(responses, "word")
    for environment, subset in split_by_tag(responses, ENVIRONMENT):
        yield environment_label(environment), subset
        for word, part in split_by_tag(subset, "word"):
            yield f"{environment_label(environment)}, {word}", part


def _has_label(label: int) -> Callable[[Sentence], bool]:
    return lambda sentence: sentence.label == label


def _validation_numbers(responses: Responses) -> Iterator[tuple[str, tuple[float | None, str]]]:
    result = validate_labels(responses)
    size_note = f"{result.answers} answers to {result.sentences} sentences"
    yield _AGREEMENT, (100 * result.overall, size_note)
    # Rows for sentences of one label (such as "acceptable sentences") have no contrast to test.
    if result.acceptable is None or result.unacceptable is None:
        return
    yield "acceptable, rated acceptable %", (100 * result.acceptable, size_note)
    yield "unacceptable, rated acceptable %", (100 * (1 - result.unacceptable), size_note)
    for raw, scale_name in ((True, "ratings"), (False, "Booleans")):
        for unit in PAIRING_UNITS:
            yield f"signed-rank p, {scale_name}, by {unit}", _test_signed_ranks(responses, unit, raw)


def _test_signed_ranks(responses: Responses, unit: str, raw: bool) -> tuple[float | None, str]:
    # A row of few answers may have no pair to test. That is a note in one cell, and no reason to stop.
    try:
        result = signed_rank_by_label(responses, unit, raw=raw)
    except Undefined as error:
        return None, str(error)
    return result.p, f"one-sided, {result.n} pairs, {format_effect_size(result.effect_size)}"


def train_and_compute(
    models: Sequence[str] = (),
    *,
    restarts: Sequence[str | Path] = (),
    suite: str = "",
    ratings: str | Path = "",
    train: bool = False,
    quick: bool = False,
    allow: Sequence[str] = (),
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
    **training: Any,
) -> list[Cell]:
    """Return every number of the paper, after training the classifiers where that is asked for.

    Args:
        models: As for ``cells``; with training, also the encoders to fine-tune.
        restarts: Folders of classifiers that were trained earlier.
        suite: As for ``cells``; with training, the sentences to train on.
        ratings: A file of human ratings, for the validation.
        train: Whether to train the paper's plan.
        quick: Whether to train a plan for two cores, which needs nothing else.
        allow: What the plans in the folders may open besides these, see ``TrustBoundary``.
        engine: Where the models are scored.
        progress: Called with the progress of training and scoring.
        training: The options of ``npi_training.train_study_classifiers``.
    """
    # Before a training of hours. The plan that is trained now is the user's own.
    folders = [confine_plan(read_plan_folder(path), allow) for path in restarts]
    if train or quick:
        models, folder = train_study_classifiers(
            "quick" if quick else "full", models, suite=suite, progress=progress, **training
        )
        folders.append(read_plan_folder(folder))
    return cells(models, restarts=folders, suite=suite, ratings=ratings, engine=engine, progress=progress)


_ANY_TRAINING = ("train", "quick")
PAPER = Paper(
    "Warstadt et al. (2019), Investigating BERT's Knowledge of Language with NPIs.",
    train_and_compute,
    tables=_TABLE_ORDER,
    options=(
        RESTARTS,
        StudyOption(
            "allow",
            list[str],
            "What the plan of such a folder may open outside it: hub, plugin:NAME or a path; repeatable.",
            requires=("restarts",),
        ),
        StudyOption("suite", str, "A file of sentences, in place of the published ones."),
        StudyOption("ratings", Path, "Human ratings from 1 to 6: a table with a row for each answer."),
        StudyOption("train", bool, "Train the paper's classifiers first, into --out; resumes if stopped."),
        StudyOption("quick", bool, "As --train, but few, small and short, for two cores; needs nothing else."),
        StudyOption("out", Path, "The folder for the classifiers.", requires=_ANY_TRAINING),
        StudyOption("workers", int, "How many classifiers are trained at once.", requires=_ANY_TRAINING),
        StudyOption(
            "training_engine",
            str,
            "Where they are trained: local, ray(...).",
            default="local",
            flags=("--engine",),
            requires=_ANY_TRAINING,
        ),
        StudyOption("vectors", str, "A file of word vectors, such as GloVe's.", requires=_ANY_TRAINING),
        StudyOption(
            "restarts_each",
            int,
            "How many seeds each classifier is trained from; 1 by default.",
            requires=_ANY_TRAINING,
        ),
        StudyOption(
            "intermediate",
            list[str],
            "A file of another task, on which encoders are trained first; repeatable.",
            requires=_ANY_TRAINING,
        ),
    ),
)
