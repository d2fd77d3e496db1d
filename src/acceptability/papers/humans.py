"""Human judgements as papers report them: CoLA's five annotators, BLiMP's crowd, Linguistic Inquiry's forced choices.

CoLA: Warstadt, Singh and Bowman (2019), Table 4 and section 3; quoted by Vázquez Martínez (2021), Table 5. One of
the 1,000 responses is a 2. Counted as "not acceptable" it gives every mean that the paper prints; counted as a
third class, as missing, or as the number 2 it does not.

BLiMP: Warstadt, Parrish et al. (2020). For each paradigm, the share of correct choices, and the share of five pairs on
which the majority is correct; the paper's values are means over paradigms.

Linguistic Inquiry: Sprouse, Schütze and Almeida (2013), in the file of Tjuatja et al. (2025), which has means and no
counts, so that neither tests nor intervals can be computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from acceptability.api.scoring import ProgressCallback
from acceptability.errors import MeasureError
from acceptability.papers import Paper
from acceptability.papers.cells import (
    Cell,
    PublishedValues,
    make_cell,
    read_published_files,
    read_published_values,
)
from acceptability.people.reliability import RaterAgreement, compute_rater_agreement, summarise_agreement
from acceptability.people.responses import Responses, read_responses
from acceptability.protocols import Engine
from acceptability.suites import load_suite
from acceptability.text.io import parse_number, read_dict_rows
from acceptability.types import Sentence

_COLA, _ADC, _BLIMP, _LI = (
    "CoLA (Warstadt et al. 2019)",
    "ADC (Vázquez Martínez 2021), Table 5",
    "BLiMP (Warstadt et al. 2020)",
    "Linguistic Inquiry (Sprouse et al. 2013)",
)
# Columns of Table 4, with the value of the tag ``domain`` that selects their sentences.
_DOMAINS = {"In-domain": "in", "Out-of-domain": "out"}
_ANSWER_2_NOTE = "annotator_1's one answer 2 counts as 0"
# The crowd judged five pairs of each paradigm; the file has the number on which the majority was correct.
_PAIRS_PER_PARADIGM = 5


@dataclass(frozen=True)
class HumanParadigmAccuracy:
    """Human accuracy on one paradigm of BLiMP.

    Args:
        name: The paradigm.
        phenomenon: Its phenomenon, in the paper's term.
        accuracy: The share of single choices that were correct.
        majority: The share of its five pairs on which the majority was correct.
        n: The number of choices.
    """

    name: str
    phenomenon: str
    accuracy: float
    majority: float
    n: int


def cells(
    models: Sequence[str], *, engine: str | Engine = "local", progress: ProgressCallback | None = None
) -> list[Cell]:
    """Return every number on human judgements beside the printed one.

    Args:
        models: Must be empty; the study has the arguments of every other one.
        engine: Not used.
        progress: Not used.
    """
    # Refused rather than ignored: a user who names a model expects rows for it.
    if models:
        raise MeasureError("this study is about human judgements and takes no models: omit --model")
    values = read_published_values("humans")
    return [*compute_cola_agreement(), *_compute_blimp(values), *_compute_linguistic_inquiry(values)]


def compute_cola_agreement() -> list[Cell]:
    """Return the agreement of CoLA's five annotators, as its own paper and the ADC paper report it."""
    values = read_published_values("humans")
    # other="no": the response 2 counts as "not acceptable", for the reason in the module's docstring.
    responses = read_responses("cola/human", kind="yes-no", raters="annotator_*", other="no")
    return [*_compute_cola(values, responses), *_compute_adc_table_5(values, responses)]


def read_blimp_human_accuracy() -> list[HumanParadigmAccuracy]:
    """Return human accuracy on each of BLiMP's 67 paradigms, from the published summary."""
    files = read_published_files("blimp/people")
    summary_file, models_file = (next(path for path in files if part in path) for part in ("human", "models"))
    lines = [json.loads(line) for line in files[models_file].decode("utf-8").splitlines()]
    phenomena = {row["UID"]: row["linguistics_term"] for row in lines if row["UID"] != "overall"}
    # The summary has two more conditions, which were dropped from the benchmark and have no phenomenon.
    rows = [row for _, row in read_dict_rows(files[summary_file], summary_file) if row["Condition"] in phenomena]
    return [
        HumanParadigmAccuracy(
            row["Condition"],
            phenomena[row["Condition"]],
            float(row["total_mean"]),
            int(row["accepted"]) / _PAIRS_PER_PARADIGM,
            int(row["count"]),
        )
        for row in rows
    ]


def _compute_cola(values: PublishedValues, responses: Responses) -> Iterator[Cell]:
    for title, domain in _DOMAINS.items():
        agreement = compute_rater_agreement(responses.select(partial(_has_domain, domain=domain)))
        mean = summarise_agreement(list(agreement.raters.values()))
        for column, ours, majority in (
            ("Acc.", mean.accuracy, agreement.majority.accuracy),
            ("MCC", mean.mcc, agreement.majority.mcc),
        ):
            yield _make_cell(
                values, f"{_COLA}, Table 4", "Human Average", f"{title} {column}", ours, note=_ANSWER_2_NOTE
            )
            yield _make_cell(values, f"{_COLA}, Table 4", "Human Aggregate", f"{title} {column}", majority)
    # Section 3 is about both domains together, Table 4 about each by itself.
    yield from _compute_section_3(values, compute_rater_agreement(responses))


def _has_domain(sentence: Sentence, domain: str) -> bool:
    return sentence.tags["domain"] == domain


def _compute_section_3(values: PublishedValues, agreement: RaterAgreement) -> Iterator[Cell]:
    mean, to_majority = (
        summarise_agreement(list(agreement.raters.values())),
        summarise_agreement(list(agreement.to_majority.values())),
    )
    pairs = summarise_agreement(list(agreement.pairs.values()))
    rows = {
        "annotators, labels": (mean.accuracy, mean.mcc, _ANSWER_2_NOTE),
        "majority, labels": (agreement.majority.accuracy, agreement.majority.mcc, ""),
        "annotators, majority": (to_majority.accuracy, to_majority.mcc, _ANSWER_2_NOTE),
        "annotators, each other": (pairs.accuracy, pairs.mcc, _ANSWER_2_NOTE),
    }
    for row, (accuracy, mcc, note) in rows.items():
        yield _make_cell(values, f"{_COLA}, section 3", row, "agreement (%)", _to_percent(accuracy), note=note)
        yield _make_cell(values, f"{_COLA}, section 3", row, "MCC", mcc, note=note)


def _compute_adc_table_5(values: PublishedValues, responses: Responses) -> Iterator[Cell]:
    agreement = compute_rater_agreement(responses)
    mean = summarise_agreement(list(agreement.raters.values()))
    # The ADC paper treats humans like its restarts of BERT: mean, deviation and best of five, and their majority.
    yield _make_cell(values, _ADC, "Human", "Mean", mean.mcc, note=_ANSWER_2_NOTE)
    yield _make_cell(values, _ADC, "Human", "STD", mean.mcc_sd, note=_ANSWER_2_NOTE)
    yield _make_cell(values, _ADC, "Human", "Max", mean.mcc_max)
    yield _make_cell(values, _ADC, "Human", "Ensemble", agreement.majority.mcc)


def _compute_blimp(values: PublishedValues) -> Iterator[Cell]:
    paradigms = read_blimp_human_accuracy()
    for row in ("overall", *sorted({paradigm.phenomenon for paradigm in paradigms})):
        part = [paradigm for paradigm in paradigms if row in ("overall", paradigm.phenomenon)]
        for column in ("accuracy", "majority"):
            ours = float(np.mean([getattr(paradigm, column) for paradigm in part]))
            yield _make_cell(values, _BLIMP, row, f"{column} (%)", 100 * ours, note=f"mean of {len(part)} paradigms")


def _compute_linguistic_inquiry(values: PublishedValues) -> Iterator[Cell]:
    suite = load_suite("sprouse2013_li")
    pairs = [(suite.by_id[contrast.better].tags, suite.by_id[contrast.worse].tags) for contrast in suite.contrasts]
    # The file gives the share of choices for the unacceptable sentence.
    shares_for_good = np.array([1 - _parse_number(worse["forced_choice"]) for _, worse in pairs])
    # All gaps are positive where the acceptable sentence is preferred, so that one comparison with zero serves for all.
    gaps = {"forced choice": shares_for_good - 0.5}
    for name, tag in (("Likert", "likert"), ("magnitude estimation", "me")):
        gaps[name] = np.array([_parse_number(better[tag]) - _parse_number(worse[tag]) for better, worse in pairs])
    yield _make_cell(values, _LI, "forced choice", "mean share for the good sentence", float(shares_for_good.mean()))
    for name, gap in gaps.items():
        # A tie counts as no preference for the good sentence; the note says how many could have gone either way.
        ties = f"{int((gap == 0).sum())} of {len(gap)} pairs tie"
        yield _make_cell(
            values, _LI, name, "pairs in which people prefer the good one", float((gap > 0).mean()), note=ties
        )


def _make_cell(
    values: PublishedValues, table: str, row: str, column: str, ours: float | None, *, note: str = ""
) -> Cell:
    return make_cell(values, (table, row, column), ours, "published answers", note=note)


def _to_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _parse_number(cell: str) -> float:
    number = parse_number(cell)
    if number is None:
        raise MeasureError(f"sprouse2013_li: {cell!r} is not a number")
    return number


PAPER = Paper(
    "Human judgements as papers report them: CoLA, BLiMP and Linguistic Inquiry.",
    cells,
    tables=(f"{_COLA}, section 3", f"{_COLA}, Table 4", _ADC, _BLIMP, _LI),
    takes_models=False,
)
