"""The rows of Pereira's, Mikolov's and the QRNN models in Niu and Penn (2020), and which model of ours stands in each.

The paper's own are not published. A model of the same kind that was trained here stands in their place: in the
column of the BNC where it was trained in lower case, as the paper's are on that text, and in the column of
WikiText-103 where it was not. The text is another one and of another size, so that nothing is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptability.errors import SpellingError
from acceptability.studies.cells import Cell, Key, Printed, not_compared
from acceptability.studies.niu_penn_folder import Told, told_of
from acceptability.studies.niu_penn_sense import SENSE

NOT_COMPUTED = "not computed"
_RECIPES = {
    "Pereira": "aggregate-markov",
    "Mikolov": "rnn",
    "QRNN regular": "qrnn with another output than tas_double",
    "QRNN TAS": "qrnn with output=tas_double",
}
_IN_TABLE_1 = {"QRNN (regular)": "QRNN regular", "QRNN (TAS)": "QRNN TAS"}
_IN_TABLE_6 = {"QRNN-R": "QRNN regular", "QRNN": "QRNN TAS"}
_READING = "the paper does not say what QRNN-R is: it is taken for the regular QRNN, and QRNN for the one with TAS"
_TEXTS = {"BNC": "BNC, about 100 million words", "WT103": "WikiText-103, about 103 million words"}
_CASES = {"BNC": "lower-cased", "WT103": "cased"}


@dataclass(frozen=True)
class Place:
    """One of the paper's models.

    Args:
        name: As Table 2 calls it.
        text: What it was trained on: BNC or WT103.
    """

    name: str
    text: str

    def wanted(self) -> str:
        """Return which model of ours would stand there."""
        lower = str(self.text == "BNC").lower()
        return f"a model of our recipe {_RECIPES[self.name]}, lower={lower}, stands here when --model gives it"


def place_of(model: str) -> Place | None:
    """Return which of the paper's models a model answers to, by its ``recipe.json``; None where to none."""
    told = told_of(model)
    name = _name(told) if told else None
    if told is None or name is None:
        return None
    return Place(name, "BNC" if told.options.get("lower") is True else "WT103")


def _name(told: Told) -> str | None:
    if told.kind == "qrnn":
        return "QRNN TAS" if told.options.get("output") == "tas_double" else "QRNN regular"
    return {"aggregate-markov": "Pereira", "rnn": "Mikolov"}.get(told.kind)


def placed(models: Sequence[str]) -> dict[Place, str]:
    """Return the user's models by the paper's that they answer to; two for one are an error."""
    found: dict[Place, str] = {}
    for model in models:
        place = place_of(model)
        if place in found:
            raise SpellingError(
                f"{found[place]} and {model} would both stand in the paper's row {place.name}, column {place.text}, "
                "by their recipe.json: give one of them"
            )
        if place:
            found[place] = model
    return found


def place_in(key: Key) -> Place | None:
    """Return whose number stands at a place of the paper; None where it is of none of these models.

    >>> place_in(("Table 2", "QRNN TAS, Raw", "WT103 LOG"))
    Place(name='QRNN TAS', text='WT103')
    >>> place_in(("Table 4", "Mikolov BNC, Norm EXP", "groups above 4, median"))
    Place(name='Mikolov', text='BNC')
    """
    table, row, column = key
    name, text = row.partition(",")[0], column.partition(" ")[0]
    if table == "Table 1":
        name = _IN_TABLE_1.get(name, name)
    elif table == "Table 4":
        name, _, text = name.rpartition(" ")
    elif table == "Table 5":
        text = "WT103"  # as section 5.5 says; that its numbers are the BNC's is told under Contradictions
    elif table == "Table 6":
        name, text = _IN_TABLE_6.get(name, name), {"WT": "WT103"}.get(text, text)
    return Place(name, text) if name in _RECIPES and text in _TEXTS else None


def in_paper(values: Mapping[Key, Printed], models: Mapping[Place, str], own: Mapping[Key, Cell]) -> dict[Key, Cell]:
    """Return the paper's places that the user's models fill, each number beside what the paper prints.

    Args:
        own: What stands in the models' own rows, by table, row and column.
    """
    found = {}
    for key in values:
        place = place_in(key)
        model = models.get(place) if place else None
        cell = _own_cell(key, model, own) if model else None
        if place and model and cell:
            source = NOT_COMPUTED if cell.ours is None else _source(model, place)
            found[key] = not_compared(values, key, cell.ours, source, note=_note(key, cell))
    return found


def _note(key: Key, cell: Cell) -> str:
    return "; ".join(filter(None, (cell.note, _READING if key[1].startswith(("QRNN,", "QRNN-R,")) else "")))


def _own_cell(key: Key, model: str, own: Mapping[Key, Cell]) -> Cell | None:
    """Return what stands in a model's own row for a place of the paper."""
    table, row, column = key
    if table == "Table 1":
        return next((cell for (of, name, _), cell in own.items() if (of, name) == (table, model)), None)
    columns = {"Table 4": f"our {column}", "Table 5": column, "Table 6": SENSE}
    return own.get((table, f"{model}, {row.rpartition(', ')[2]}", columns.get(table, column.rpartition(" ")[2])))


def _source(model: str, place: Place) -> str:
    """Return how ours was trained, and on what the paper's was."""
    told = told_of(model)
    assert told is not None
    output = f" (output {told.options['output']})" if "output" in told.options else ""
    known = told.options.get("vocabulary")
    words = f"vocabulary {known:,}" if known else "every word known"
    theirs = ", lower-cased for this model" if place == Place("Pereira", "WT103") else ""
    return (
        f"our recipe {told.kind}{output} on {told.words:,} words of other text (sha256 {told.corpus[:8]}…), "
        f"{_CASES[place.text]}, {words}; the paper: {_TEXTS[place.text]}{theirs}"
    )
