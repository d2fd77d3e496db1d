"""The example sentences and pairs of Vázquez Martínez (2021): Tables 2–4 and 6–8, and Appendix E's count.

Each table is a question to the scores, and each printed pair is looked for in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from acceptability.differing import Differing, differing
from acceptability.measures.pairs import PairAccuracy
from acceptability.studies.adc_scores import COLA, LOGPROB, MLM, SLOR, SOURCE, Judge, Published
from acceptability.studies.adc_tables import Values
from acceptability.studies.cells import Cell, beside

_ASKED = "answers the question"
_YES = {True: "yes", False: "no"}
Found = dict[str, Differing]


def sentences(data: Published, values: Values) -> Iterator[Cell]:
    """Yield the sentences of Tables 2 and 3 by their ids, and the ratings of Table 3."""
    for table, row, column in values:
        if table in ("Table 2", "Table 3"):
            sentence = data.suite.by_id[row]
            ours = sentence.text if column == "sentence" else sentence.rating
            yield beside(values, (table, row, column), ours, SOURCE)


def table_4(data: Published, values: Values) -> Iterator[Cell]:
    """Yield the gaps of two pairs, and which criteria the trigram's log-probabilities meet."""
    judge = data.judges[LOGPROB]
    strict = judge.adc(1.0)
    units, plain = strict.units(data.suite, judge.scores), PairAccuracy().units(data.suite, judge.scores)
    rows = {name.partition(" > ")[0]: row for row, name in enumerate(units.ids)}
    for table, better, column in values:
        if table == "Table 4":
            row = rows[better]
            ours: dict[str, float | str] = {
                "human gap": float(units["human_gap"][row]),
                "model gap": float(units["gap"][row]),
                "BLiMP criterion met": _YES[bool(plain["correct"][row])],
                "ADC 1.0 met": _YES[bool(units["met"][row])],
            }
            yield beside(values, (table, better, column), ours[column], SOURCE)


def pairs(data: Published, values: Values) -> Iterator[Cell]:
    """Yield the printed pairs of Tables 6–8: whether each answers the table's question, and its numbers."""
    answers = {"Table 6": not_people(data), "Table 7": only_classifiers(data), "Table 8": only_trigram(data)}
    for table, row, column in values:
        if table in answers:
            yield _pair_cell(data, values, (table, row, column), answers[table])


def appendix_e(data: Published, values: Values) -> Iterator[Cell]:
    """Yield how many pairs meet the BLiMP criterion and not the ADC at 5, and how many people see otherwise."""
    for name in COLA:
        found = past_people(data, data.judges[name])
        against = sum(each.human_gap is not None and each.human_gap < 0 for each in found.values())
        yield beside(values, ("Appendix E", name, "pairs"), len(found), SOURCE)
        ours = "all" if against == len(found) else f"{against} of {len(found)}"
        yield beside(values, ("Appendix E", name, "where people prefer the other sentence"), ours, SOURCE)
    yield beside(values, ("Appendix E", "all three", "pairs"), len(not_people(data)), SOURCE)


def past_people(data: Published, judge: Judge) -> Found:
    """Return the pairs that a model gets right by the experts' label and not by people's gap."""
    found = differing(data.suite, PairAccuracy(), judge.scores, judge.scores, against=judge.adc(5.0))
    return {each.contrast: each for each in found}


def not_people(data: Published) -> Found:
    """Return the pairs for which all three classifiers meet the BLiMP criterion and not the ADC at 5 (Table 6)."""
    return _in_all([past_people(data, data.judges[name]) for name in COLA])


def only_classifiers(data: Published) -> Found:
    """Return the pairs for which all three classifiers meet the ADC at .5 and the trigram does not (Table 7)."""
    return _in_all([_first_only(data, name, SLOR) for name in COLA])


def only_trigram(data: Published) -> Found:
    """Return the pairs for which the trigram meets the ADC at .5 and no classifier does (Table 8)."""
    return _in_all([_first_only(data, SLOR, name) for name in COLA])


def _first_only(data: Published, first: str, second: str) -> Found:
    one, two = data.judges[first], data.judges[second]
    found = differing(data.suite, one.adc(0.5), one.scores, two.scores, against=two.adc(0.5))
    return {each.contrast: each for each in found}


def _in_all(found: list[Found]) -> Found:
    return {name: each for name, each in found[-1].items() if all(name in other for other in found)}


def _pair_cell(data: Published, values: Values, key: tuple[str, str, str], answer: Found) -> Cell:
    """Return one printed number of a pair; the row names its contrast by id."""
    table, row, column = key
    if column == _ASKED:
        note = f"{len(answer)} pairs do" + (_also(data, row) if table == "Table 8" else "")
        return beside(values, key, _YES[row in answer], SOURCE, note=note)
    member, _, what = column.partition(": ")
    sentence = data.suite.by_id[row.split(" > ")[0 if member == "acceptable" else 1]]
    if what == "sentence":
        return beside(values, key, sentence.text, SOURCE)
    numbers = {
        "human": sentence.rating,
        "trigram SLOR": data.z(SLOR)[sentence.id],
        "BERT": data.z(COLA[2])[sentence.id],
    }
    return beside(values, key, numbers[what], SOURCE)


def _also(data: Published, contrast: str) -> str:
    """Return which BERTs without fine-tuning meet the criterion for a pair of Table 8; its caption says none."""
    meeting = [name for name in MLM if contrast not in _first_only(data, SLOR, name)]
    return f"; of the six BERTs {', '.join(meeting)} meet it too" if meeting else ""
