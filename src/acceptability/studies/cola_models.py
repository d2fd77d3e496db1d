"""Language models on CoLA without training: rows of Tables 4 and 6, and the perplexity of section 4.1.

Warstadt, Singh and Bowman (2019) take Word LogProb Min-1 (Lau, Clark and Lappin 2017) with a threshold from ten-fold
cross-validation on the test sets. Ours are on the development sets, whose labels are public, and with every other
reduction too. MORCELA, which is fitted to ratings, and exp, which keeps the order of scores, have no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from acceptability.errors import MissingExtra
from acceptability.models import delivered
from acceptability.scoring import load_reduction
from acceptability.spelling import write
from acceptability.studies.cells import Cell, Key, Printed, not_compared
from acceptability.studies.cola_corpus import TARGETED
from acceptability.studies.cola_judging import DOMAINS, at_threshold, both_domains, cross_validated, fitted_threshold
from acceptability.studies.niu_penn_folder import slor_of, told_of, trained_on
from acceptability.studies.niu_penn_models import Asked
from acceptability.studies.niu_penn_pbc import Number, Scored, model_cell
from acceptability.studies.niu_penn_perplexity import table_1
from acceptability.studies.niu_penn_texts import Text
from acceptability.suites import load_suite

WLPM = "word_lp_min"
_PLAIN = ("lp", "mean_lp", "pen_lp")
_AGAINST = ("slor", "norm_lp_sub", "norm_lp_div", WLPM, "word_lp_mean", "word_lp_mean_q1", "word_lp_mean_q2")
_DEV = "development sets here, test sets there"
_CV = "threshold by ten-fold cross-validation on the same set, for the highest MCC"
_FROM_COLA = "threshold with the highest MCC on CoLA's two development sets"
_CASE = "the sets are published tokenized and in lower case"
_PERPLEXITY, _LSTM = "Section 4.1", "LSTM LM WLPM"


def language_model_cells(asked: Asked, values: Mapping[Key, Printed], texts: Sequence[Text]) -> list[Cell]:
    """Return the rows of a language model, also in the paper's row where it is of that kind."""
    model = asked.model
    reductions, noted = _reductions(model)
    found = [*_perplexity(asked, texts), *_table_4(asked, reductions), *_table_6(asked, reductions)]
    found = [replace(cell, note="; ".join(filter(None, (cell.note, noted, trained_on(full(model)))))) for cell in found]
    return [*_in_paper(model, values, found), *found]


def full(model: str) -> str:
    """Return a model's full spelling where it has a name of its own."""
    return delivered()[model].spelling() if model in delivered() and model != "uniform" else model


def row_of(model: str) -> str | None:
    """Return the paper's name for a language model of the same kind; None where it has none like it."""
    told = told_of(full(model))
    if told is None:
        return None
    if told.kind == "lstm":
        return _LSTM
    order = told.options.get("order") if told.kind == "ngram" else None
    return f"{order}-gram LM WLPM" if order in (2, 3, 4) else None


def _reductions(model: str) -> tuple[dict[str, str], str]:
    """Return the spellings of all reductions, and whose unigrams they take, or why some are not among them."""
    plain = {name: name for name in _PLAIN}
    slor, whose = slor_of(full(model))
    try:
        unigrams = load_reduction(slor).unigrams  # type: ignore[attr-defined]
    except MissingExtra as error:
        return plain, f"no Word LogProb Min-1: {error}"
    return plain | {name: write(name, {"unigrams": unigrams}) for name in _AGAINST}, whose


def _perplexity(asked: Asked, texts: Sequence[Text]) -> Iterator[Cell]:
    for cell in table_1(asked.model, texts, asked.progress) if texts else ():
        yield replace(cell, table=_PERPLEXITY)


def _table_4(asked: Asked, reductions: Mapping[str, str]) -> Iterator[Cell]:
    for title, place in DOMAINS.items():
        suite = load_suite(place)
        for name, scores in asked.scores(suite, reductions).items():
            for measure, (value, note) in cross_validated(suite, scores).items():
                number = value, "; ".join(filter(None, (_CV, note, scores.signature)))
                yield model_cell("Table 4", f"{asked.model}, {name}", f"{title} {measure}", number, asked.model)


def _table_6(asked: Asked, reductions: Mapping[str, str]) -> Iterator[Cell]:
    dev = both_domains()
    on_dev = asked.scores(dev, reductions)
    lines = {name: fitted_threshold(dev, scores) for name, scores in on_dev.items()}
    for column, place in TARGETED.items():
        suite = load_suite(place)
        scored: Scored = asked.scores(suite, reductions)
        for name, scores in scored.items():
            row = f"{asked.model}, {name}"
            value, why = at_threshold(suite.sentences, scores, lines[name])["MCC"]
            note = "; ".join(filter(None, (why, f"{_FROM_COLA}: {lines[name]:.6g}", _CASE, scores.signature)))
            yield model_cell("Table 6", row, column, (value, note), asked.model)
            own: Number = cross_validated(suite, scores)["MCC"]
            said = "; ".join((_CV, _CASE, scores.signature))
            yield model_cell("Table 6", row, f"{column}, own threshold", (own[0], said), asked.model)


def _in_paper(model: str, values: Mapping[Key, Printed], found: Sequence[Cell]) -> Iterator[Cell]:
    """Yield our numbers in the paper's row for a model of the same kind, compared with nothing."""
    row = row_of(model)
    if row is None:
        return
    perplexities = [cell for cell in found if cell.table == _PERPLEXITY]
    if row == _LSTM and perplexities:
        # The first text that was given stands for the BNC.
        first, key = perplexities[0], (_PERPLEXITY, "LSTM LM", "perplexity")
        source = f"{model} on {first.column}; the paper: the BNC"
        yield not_compared(values, key, first.ours, source, note=first.note)
    for cell in found:
        key = cell.table, row, cell.column
        if key in values and cell.row == f"{model}, {WLPM}":
            source = f"{model}, taught on other text; {_DEV}"
            yield not_compared(values, key, cell.ours, source, note=cell.note)
