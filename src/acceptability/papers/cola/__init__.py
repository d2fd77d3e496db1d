"""Warstadt, Singh and Bowman (2019), "Neural Network Acceptability Judgments" (CoLA), recomputed.

Numbers that need no model are always there: the corpus, its splits, and human agreement. The user's own language models
and classifiers join under the paper's protocol; folders of restarts fill the rows that are means over restarts, the
learning curve and the splits. Table 5 and Figures 2 and 3 of the ADC paper, whose classifiers are on CoLA too, are here
as well.

This module assembles the cells, and computes the rows of language models in Tables 4 and 6 and section 4.1. The paper
takes Word LogProb Min-1 (Lau, Clark and Lappin 2017) with a threshold from ten-fold cross-validation on the test sets.
We use the development sets, whose labels are public, and every other reduction too. Two have no rows: MORCELA, which is
fitted to ratings, and exp, which leaves the order of scores as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acceptability.api.interface.arguments import as_reduction
from acceptability.api.scoring import ProgressCallback
from acceptability.errors import MissingExtra, SpecError
from acceptability.models import expand_named_model
from acceptability.papers import CORPUS, RESTARTS, Paper, StudyOption
from acceptability.papers.cells import (
    Cell,
    PublishedValues,
    make_cell,
    make_uncompared_cell,
    read_published_values,
)
from acceptability.papers.cola.classifier_tables import (
    ADC_TABLE,
    CROSS_VALIDATED_MCC,
    DOMAINS,
    ClassifierRestarts,
    compute_classifier_cells,
    fit_threshold,
    load_both_dev_sets,
    load_group_restarts,
    measure_at_threshold,
    measure_cross_validated,
    read_adc_values,
)
from acceptability.papers.cola.cola_training import ColaPlanSize, train_study_classifiers
from acceptability.papers.cola.corpus_tables import (
    TARGETED_SUITES,
    compute_corpus_cells,
    compute_paper_claim_cells,
    compute_split_cells,
)
from acceptability.papers.cola.learning_curve import compute_figure_3_cells, compute_table_5_cells
from acceptability.papers.cola.restart_groups import RestartGroup, find_groups, find_trained_classifier
from acceptability.papers.humans import compute_cola_agreement
from acceptability.papers.niu_penn.model_rows import choose_slor, describe_training_text, read_recipe_metadata
from acceptability.papers.niu_penn.pbc_tables import NumberOrReason, ScoresByNorm, make_model_cell
from acceptability.papers.niu_penn.user_models import (
    NamedCorpus,
    StudyModel,
    StudyTexts,
    compute_table_1,
    read_study_texts,
)
from acceptability.protocols import Engine
from acceptability.specs import format_spec, parse_model_spec
from acceptability.suites import load_suite

WLPM = "word_lp_min"
"""The reduction of the paper's language models, Word LogProb Min-1."""

# Reductions of the second kind need unigram probabilities, which come from a package that may not be installed.
_PLAIN_REDUCTIONS = ("lp", "mean_lp", "pen_lp")
_UNIGRAM_REDUCTIONS = ("slor", "norm_lp_sub", "norm_lp_div", WLPM, "word_lp_mean", "word_lp_mean_q1", "word_lp_mean_q2")
_DEV_NOTE = "development sets here, test sets there"
_CV_NOTE = (
    "threshold by ten-fold cross-validation on the same set, for the highest MCC, "
    f"mean over {CROSS_VALIDATED_MCC.seeds} splits into folds"
)
_THRESHOLD_NOTE = "threshold with the highest MCC on CoLA's two development sets"
_CASE_NOTE = "the sets are published tokenized and in lower case"
_PERPLEXITY_TABLE, _LSTM_ROW = "Section 4.1", "LSTM LM WLPM"

# Human agreement is computed for both papers in one place, and its tables are named there by paper.
_HUMAN_TABLES = {
    "CoLA (Warstadt et al. 2019), Table 4": "Table 4",
    "CoLA (Warstadt et al. 2019), section 3": "Section 3",
    "ADC (Vázquez Martínez 2021), Table 5": ADC_TABLE,
}

# What would fill a row, by table; shown beside the paper's value.
_MISSING_NOTES = {
    "Section 4.1": "needs the language model: --model recurrent:DIR with --corpus FILE",
    "Table 4": "the paper's models are not published; --model and --restarts fill the row with ours",
    "Table 5": "the paper's models are not published; --restarts DIR, with folders split-NAME, fills the row with ours",
    "Table 6": "the paper's models are not published; --model and --restarts fill the row with ours",
    ADC_TABLE: "the papers' models are not published; --restarts fills the row of a classifier of the same kind",
}

# The order of the paper, with each section's tables where they are discussed; those of the ADC paper come last.
_TABLE_ORDER = (
    "Section 3",
    "Table 2",
    "Table 3",
    "Figure 1",
    "Section 4.1",
    "Table 4",
    "Figure 3",
    "Table 5",
    "Section 6",
    "Figure 4",
    "Section 7.2",
    "Table 6",
    ADC_TABLE,
    "ADC paper, Figure 2",
    "ADC paper, Figure 3",
)


def cells(
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    restarts: Sequence[str | Path] = (),
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and those of the user's models.

    Args:
        models: Language models, and classifiers (``classifier:DIR``).
        corpus: Texts for the perplexities of language models.
        restarts: Folders of classifiers that were trained with several seeds.
        engine: Where the models run: ``local`` or ``ray(...)``.
        progress: Called with the progress of scoring.
    """
    if corpus and not models:
        raise SpecError("--corpus is text to measure models on: give a --model too")
    # Texts and folders are read first, so that a wrong path fails before any model runs.
    values, texts, restart_groups = (
        read_published_values("cola") | read_adc_values(),
        read_study_texts(corpus),
        find_groups(restarts),
    )
    computed = [
        *compute_corpus_cells(values),
        *compute_split_cells(values),
        *compute_paper_claim_cells(values),
        *_compute_human_cells(),
    ]
    for model in models:
        computed += _compute_model_cells(StudyModel(model, engine, progress), values, texts)
    computed += _group_cells(restart_groups, values, StudyModel("", engine, progress))
    # Last, since it depends on which cells the models have filled.
    computed += _list_missing_cells(values, computed)
    return _sort_cells(computed, values)


def _compute_human_cells() -> list[Cell]:
    """Return the rows of human agreement, under the names that their tables have in this study."""
    columns = {"Mean": "mean", "STD": "standard deviation", "Max": "max", "Ensemble": "ensemble"}
    renamed = [replace(cell, table=_HUMAN_TABLES[cell.table]) for cell in compute_cola_agreement()]
    return [
        replace(cell, row="Human (Warstadt et al.)", column=columns[cell.column]) if cell.table == ADC_TABLE else cell
        for cell in renamed
    ]


def _compute_model_cells(study_model: StudyModel, values: PublishedValues, texts: StudyTexts) -> list[Cell]:
    if parse_model_spec(study_model.model)[0] != "classifier":
        return compute_language_model_cells(study_model, values, texts.plain_corpora)
    return compute_classifier_cells(
        # A single classifier is treated as a group of one, which has no statistics over restarts.
        ClassifierRestarts(study_model.model, (study_model,), find_trained_classifier(study_model.model)),
        values,
    )


def _group_cells(restart_groups: Sequence[RestartGroup], values: PublishedValues, template: StudyModel) -> list[Cell]:
    curve = [group for group in restart_groups if group.size is not None]
    splits = [group for group in restart_groups if group.split]
    computed = [*compute_figure_3_cells(curve, template), *compute_table_5_cells(splits, values, template)]
    # A folder that is named neither by a size nor by a split is the experiment of Tables 4 and 6 and Figure 4.
    for group in restart_groups:
        if group not in curve and group not in splits:
            computed += compute_classifier_cells(load_group_restarts(group, template), values)
    return computed


def compute_language_model_cells(
    study_model: StudyModel, values: PublishedValues, texts: Sequence[NamedCorpus]
) -> list[Cell]:
    """Return the rows of a language model, and its numbers in the paper's row for a model of the same kind."""
    model = study_model.model
    reductions, reduction_note = _list_reductions(model)
    own_cells = [
        *_compute_perplexity_cells(study_model, texts),
        *_compute_table_4_cells(study_model, reductions),
        *_compute_table_6_cells(study_model, reductions),
    ]
    own_cells = [
        replace(
            cell,
            note="; ".join(
                filter(None, (cell.note, reduction_note, describe_training_text(expand_named_model(model))))
            ),
        )
        for cell in own_cells
    ]
    return [*_compute_paper_row_cells(model, values, own_cells), *own_cells]


def find_paper_row(model: str) -> str | None:
    """Return the paper's row for a language model of this kind; None if the paper has none like it."""
    training = read_recipe_metadata(expand_named_model(model))
    if training is None:
        return None
    # The paper's language models are one LSTM, and n-gram models of order 2, 3 and 4.
    if training.kind == "lstm":
        return _LSTM_ROW
    order = training.options.get("order") if training.kind == "ngram" else None
    return f"{order}-gram LM WLPM" if order in (2, 3, 4) else None


def _list_reductions(model: str) -> tuple[dict[str, str], str]:
    """Return the specs of all reductions, and a note on the unigrams they use.

    Without unigrams, only the plain reductions are returned, and the note gives the reason.
    """
    plain = {name: name for name in _PLAIN_REDUCTIONS}
    # All reductions must subtract the same unigrams, or differences between their rows would be of unigrams too.
    slor, unigram_note = choose_slor(expand_named_model(model))
    try:
        unigrams = as_reduction(slor).unigrams  # type: ignore[attr-defined]
    except MissingExtra as error:
        return plain, f"no Word LogProb Min-1: {error}"
    return plain | {name: format_spec(name, {"unigrams": unigrams}) for name in _UNIGRAM_REDUCTIONS}, unigram_note


def _compute_perplexity_cells(study_model: StudyModel, texts: Sequence[NamedCorpus]) -> Iterator[Cell]:
    # Without texts ``compute_table_1`` asks for some in a cell; here the missing perplexity of the paper has that note.
    for cell in compute_table_1(study_model.model, texts, study_model.progress) if texts else ():
        yield replace(cell, table=_PERPLEXITY_TABLE)


def _compute_table_4_cells(study_model: StudyModel, reductions: Mapping[str, str]) -> Iterator[Cell]:
    for title, suite_name in DOMAINS.items():
        suite = load_suite(suite_name)
        for name, scores in study_model.compute_scores(suite, reductions).items():
            for measure, (value, note) in measure_cross_validated(suite, scores).items():
                number = value, "; ".join(filter(None, (_CV_NOTE, note, scores.signature)))
                yield make_model_cell(
                    "Table 4", f"{study_model.model}, {name}", f"{title} {measure}", number, study_model.model
                )


def _compute_table_6_cells(study_model: StudyModel, reductions: Mapping[str, str]) -> Iterator[Cell]:
    # A threshold from CoLA measures whether a model's idea of acceptability carries over to the targeted set. The sets
    # are small and of one construction each, so that a threshold fitted on the set itself is shown as a second column.
    dev = load_both_dev_sets()
    on_dev = study_model.compute_scores(dev, reductions)
    thresholds = {name: fit_threshold(dev, scores) for name, scores in on_dev.items()}
    for column, suite_name in TARGETED_SUITES.items():
        suite = load_suite(suite_name)
        scored: ScoresByNorm = study_model.compute_scores(suite, reductions)
        for name, scores in scored.items():
            row = f"{study_model.model}, {name}"
            value, reason = measure_at_threshold(suite.sentences, scores, thresholds[name])["MCC"]
            note = "; ".join(
                filter(None, (reason, f"{_THRESHOLD_NOTE}: {thresholds[name]:.6g}", _CASE_NOTE, scores.signature))
            )
            yield make_model_cell("Table 6", row, column, (value, note), study_model.model)
            own_number: NumberOrReason = measure_cross_validated(suite, scores)["MCC"]
            own_note = "; ".join((_CV_NOTE, own_number[1], _CASE_NOTE, scores.signature))
            yield make_model_cell(
                "Table 6", row, f"{column}, own threshold", (own_number[0], own_note), study_model.model
            )


def _compute_paper_row_cells(model: str, values: PublishedValues, own_cells: Sequence[Cell]) -> Iterator[Cell]:
    """Yield our numbers in the paper's row for a model of the same kind, compared with nothing."""
    row = find_paper_row(model)
    if row is None:
        return
    # A different text, a different training set: the numbers are put beside the paper's, and not compared with them.
    perplexities = [cell for cell in own_cells if cell.table == _PERPLEXITY_TABLE]
    if row == _LSTM_ROW and perplexities:
        # The paper has a single perplexity, on the BNC. Of several texts the first is put beside it.
        first, key = perplexities[0], (_PERPLEXITY_TABLE, "LSTM LM", "perplexity")
        source = f"{model} on {first.column}; the paper: the BNC"
        yield make_uncompared_cell(values, key, first.ours, source, note=first.note)
    for cell in own_cells:
        key = cell.table, row, cell.column
        if key in values and cell.row == f"{model}, {WLPM}":
            source = f"{model}, trained on other text; {_DEV_NOTE}"
            yield make_uncompared_cell(values, key, cell.ours, source, note=cell.note)


def _list_missing_cells(values: PublishedValues, computed: Sequence[Cell]) -> list[Cell]:
    """Return the printed values that nothing of ours stands beside, each with a note on what it would need."""
    computed_keys = {(cell.table, cell.row, cell.column) for cell in computed}
    return [
        make_cell(values, key, None, "not computed", note=_MISSING_NOTES.get(key[0], ""))
        for key in values
        if key not in computed_keys
    ]


def _sort_cells(unsorted: Sequence[Cell], values: PublishedValues) -> list[Cell]:
    """Return the cells in the order of the tables; within one, those that the paper prints come first, in its order."""
    # The sort is stable: cells that the paper does not have share the last position, and keep the order in which they
    # were computed.
    printed_order = {key: number for number, key in enumerate(values)}

    def sort_key(cell: Cell) -> tuple[int, int]:
        return _TABLE_ORDER.index(cell.table), printed_order.get(
            (cell.table, cell.row, cell.column), len(printed_order)
        )

    return sorted(unsorted, key=sort_key)


def train_and_compute(
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    restarts: Sequence[str | Path] = (),
    train: bool = False,
    quick: bool = False,
    short: bool = False,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
    **training: Any,
) -> list[Cell]:
    """Return every number of the paper, after training the classifiers if a plan is chosen.

    Args:
        models: As in ``cells``; with training, also the networks to fine-tune.
        corpus: As in ``cells``; with training, the text to train on (perplexities are then measured on the option
            ``dev``).
        restarts: Folders of classifiers that were trained earlier.
        train: Whether to train the paper's plan, 20 restarts of each kind.
        quick: Whether to train a small plan for two cores, which needs neither ``corpus`` nor ``models``.
        short: Whether to train a plan for half an hour of a GPU.
        engine: Where the models are scored.
        progress: Called with the progress of training and scoring.
        training: The options of ``cola_training.train_study_classifiers``.
    """
    if train or quick or short:
        # The smallest plan wins: --train --quick is a way to say that the quick plan is to be trained.
        size: ColaPlanSize = "quick" if quick else "short" if short else "full"
        models, trained = train_study_classifiers(size, models, corpus=corpus, progress=progress, **training)
        # Perplexities must be measured on text that no model was trained on.
        corpus, restarts = trained.dev, [*restarts, trained.folder]
    return cells(models, corpus=corpus, restarts=restarts, engine=engine, progress=progress)


_ANY_TRAINING = ("train", "quick", "short")
PAPER = Paper(
    "Warstadt, Singh and Bowman (2019), Neural Network Acceptability Judgments (CoLA).",
    train_and_compute,
    tables=_TABLE_ORDER,
    options=(
        CORPUS,
        RESTARTS,
        StudyOption("train", bool, "Train the paper's classifiers first, into --out; resumes if stopped."),
        StudyOption("quick", bool, "As --train, but few, small and short, for two cores; needs nothing else."),
        StudyOption("short", bool, "As --train, but five restarts of each kind, for half an hour of a GPU."),
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
        StudyOption(
            "dev", list[Path], "Other text like --corpus, for early stopping of encoders.", requires=_ANY_TRAINING
        ),
        StudyOption("vectors", str, "A file of word vectors, such as GloVe's.", requires=_ANY_TRAINING),
    ),
)
