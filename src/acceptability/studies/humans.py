"""People as papers report them: CoLA's five annotators, BLiMP's crowd, the forced choices of Linguistic Inquiry.

CoLA: Warstadt, Singh and Bowman (2019), Table 4 and section 3; quoted by Vázquez Martínez (2021), Table 5. One of
the 1,000 answers is a 2. Counted as "not acceptable" it gives every mean that the paper prints; counted as a
third class, as missing, or as the number 2 it does not.

BLiMP: Warstadt, Parrish et al. (2020). Per paradigm the share of single right choices, and on how many of five
pairs the majority is right; the paper's values are means over paradigms.

Linguistic Inquiry: Sprouse, Schütze and Almeida (2013), in the file of Tjuatja et al. (2025), which has means and no
counts: no test and no interval can be made of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError
from acceptability.people.agreement import RaterAgreement, rater_agreement, summary
from acceptability.people.reading import read_responses
from acceptability.people.responses import Responses
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell, Key, Printed, beside, printed
from acceptability.studies.files import published
from acceptability.suites import load_suite
from acceptability.text import as_number, dict_rows

_COLA, _ADC, _BLIMP, _LI = (
    "CoLA (Warstadt et al. 2019)",
    "ADC (Vázquez Martínez 2021), Table 5",
    "BLiMP (Warstadt et al. 2020)",
    "Linguistic Inquiry (Sprouse et al. 2013)",
)
_DOMAINS = {"In-domain": "in", "Out-of-domain": "out"}
_TWO = "annotator_1's one answer 2 counts as 0"
_PAIRS_A_PARADIGM = 5


@dataclass(frozen=True)
class Paradigm:
    """What people did on one paradigm of BLiMP.

    Args:
        accuracy: The share of single choices that were right.
        majority: The share of pairs on which the majority was right; there were five.
        n: How many choices there were.
    """

    name: str
    phenomenon: str
    accuracy: float
    majority: float
    n: int


def cells(models: Sequence[str], *, engine: str | Engine = "local", progress: Progress | None = None) -> list[Cell]:
    """Return every number on people, with those that the papers print beside it."""
    if models:
        raise MeasureError("this study is about people, and takes no models; leave --model away")
    values = printed("humans")
    return [*cola_people(), *_blimp(values), *_linguistic_inquiry(values)]


def cola_people() -> list[Cell]:
    """Return the numbers on CoLA's five annotators, as its own paper and that of the ADC print them."""
    values = printed("humans")
    responses = read_responses("cola/human", kind="yes-no", raters="annotator_*", other="no")
    return [*_cola(values, responses), *_adc(values, responses)]


def blimp_people() -> list[Paradigm]:
    """Return what people did on each of BLiMP's 67 paradigms, as published."""
    files = published("blimp/people")
    summary_file, models_file = (next(path for path in files if part in path) for part in ("human", "models"))
    lines = [json.loads(line) for line in files[models_file].decode("utf-8").splitlines()]
    phenomena = {row["UID"]: row["linguistics_term"] for row in lines if row["UID"] != "overall"}
    # Two of the conditions were dropped from the benchmark, and have no phenomenon.
    rows = [row for _, row in dict_rows(files[summary_file], summary_file) if row["Condition"] in phenomena]
    return [
        Paradigm(
            row["Condition"],
            phenomena[row["Condition"]],
            float(row["total_mean"]),
            int(row["accepted"]) / _PAIRS_A_PARADIGM,
            int(row["count"]),
        )
        for row in rows
    ]


def _cola(values: dict[Key, Printed], responses: Responses) -> Iterator[Cell]:
    for title, domain in _DOMAINS.items():
        part = rater_agreement(responses.of(lambda each, domain=domain: each.tags["domain"] == domain))  # type: ignore[misc]
        mean = summary(list(part.raters.values()))
        for column, ours, majority in (
            ("Acc.", mean.accuracy, part.majority.accuracy),
            ("MCC", mean.mcc, part.majority.mcc),
        ):
            yield _cell(values, f"{_COLA}, Table 4", "Human Average", f"{title} {column}", ours, note=_TWO)
            yield _cell(values, f"{_COLA}, Table 4", "Human Aggregate", f"{title} {column}", majority)
    yield from _section_3(values, rater_agreement(responses))


def _section_3(values: dict[Key, Printed], found: RaterAgreement) -> Iterator[Cell]:
    mean, to_majority = summary(list(found.raters.values())), summary(list(found.to_majority.values()))
    pairs = summary(list(found.pairs.values()))
    rows = {
        "annotators, labels": (mean.accuracy, mean.mcc, _TWO),
        "majority, labels": (found.majority.accuracy, found.majority.mcc, ""),
        "annotators, majority": (to_majority.accuracy, to_majority.mcc, _TWO),
        "annotators, each other": (pairs.accuracy, pairs.mcc, _TWO),
    }
    for row, (accuracy, mcc, note) in rows.items():
        yield _cell(values, f"{_COLA}, section 3", row, "agreement (%)", _percent(accuracy), note=note)
        yield _cell(values, f"{_COLA}, section 3", row, "MCC", mcc, note=note)


def _adc(values: dict[Key, Printed], responses: Responses) -> Iterator[Cell]:
    found = rater_agreement(responses)
    mean = summary(list(found.raters.values()))
    yield _cell(values, _ADC, "Human", "Mean", mean.mcc, note=_TWO)
    yield _cell(values, _ADC, "Human", "STD", mean.mcc_sd, note=_TWO)
    yield _cell(values, _ADC, "Human", "Max", mean.mcc_max)
    yield _cell(values, _ADC, "Human", "Ensemble", found.majority.mcc)


def _blimp(values: dict[Key, Printed]) -> Iterator[Cell]:
    paradigms = blimp_people()
    for row in ("overall", *sorted({each.phenomenon for each in paradigms})):
        part = [each for each in paradigms if row in ("overall", each.phenomenon)]
        for column in ("accuracy", "majority"):
            ours = float(np.mean([getattr(each, column) for each in part]))
            yield _cell(values, _BLIMP, row, f"{column} (%)", 100 * ours, note=f"mean of {len(part)} paradigms")


def _linguistic_inquiry(values: dict[Key, Printed]) -> Iterator[Cell]:
    suite = load_suite("sprouse2013_li")
    pairs = [(suite.by_id[each.better].tags, suite.by_id[each.worse].tags) for each in suite.contrasts]
    for_good = np.array([1 - _number(worse["forced_choice"]) for _, worse in pairs])
    gaps = {"forced choice": for_good - 0.5}
    for name, tag in (("Likert", "likert"), ("magnitude estimation", "me")):
        gaps[name] = np.array([_number(better[tag]) - _number(worse[tag]) for better, worse in pairs])
    yield _cell(values, _LI, "forced choice", "mean share for the good sentence", float(for_good.mean()))
    for name, gap in gaps.items():
        ties = f"{int((gap == 0).sum())} of {len(gap)} pairs tie"
        yield _cell(values, _LI, name, "pairs in which people prefer the good one", float((gap > 0).mean()), note=ties)


def _cell(values: dict[Key, Printed], table: str, row: str, column: str, ours: float | None, *, note: str = "") -> Cell:
    return beside(values, (table, row, column), ours, "published answers", note=note)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _number(cell: str) -> float:
    number = as_number(cell)
    if number is None:
        raise MeasureError(f"sprouse2013_li: {cell!r} is no number")
    return number
