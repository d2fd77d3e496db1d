"""Tables 1 to 4 of Park, Park and Song (2021) for the suites that can be had, and for a user's models.

Counts are in the paper's unit, sentences: twice the pairs. None of our counts is compared with the paper's but that
of the sentences of Linguistic Inquiry: its suites are unpublished, and a user's models are not its BERTs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from acceptability.measures.interaction import CLASSES, interaction
from acceptability.studies.cells import Cell, Key, Printed, beside
from acceptability.studies.park_judged import Judged, Side, accuracy, by, repulsions
from acceptability.studies.park_suites import BOOK_TOTAL, DEKEYSER, INQUIRY, Part
from acceptability.studies.park_types import types_of_examples
from acceptability.suites.targets import Exclusion, counted, with_targets

Values = Mapping[Key, Printed]

_TOTAL = "Total"
_CLASSES = "our classes"
_BERTS = "base BERT correct", "large BERT correct"
_TWO = "what the paper prints is of its base and its large BERT"
_POOLED = "what the paper prints is of both BERTs together"


def counts(values: Values, parts: Sequence[Part]) -> Iterator[Cell]:
    """Yield how many sentences each suite had, and how many are left in pairs with one target (Table 1)."""
    with_one = {part.name: with_targets(part.pairs)[0].contrasts for part in parts}
    left = {
        part.name: Counter(
            part.row_of(each.tags.get("book") if part.name == "II" else None) for each in with_one[part.name]
        )
        for part in parts
    }
    for part in parts:
        for row, original in part.original.items():
            yield from _counted(values, row, _label(part, row), original, 2 * left[part.name][row], _note(part))
        if part.name == "II":
            sums = sum(part.original.values()), 2 * left["II"].total()
            yield from _counted(values, BOOK_TOTAL, "II", *sums, _note(part))
    every = sum(sum(part.original.values()) for part in parts), 2 * sum(each.total() for each in left.values())
    yield from _counted(values, _TOTAL, "I, II and III", *every, "")


def _counted(values: Values, row: str, label: str, original: int, left: int, note: str) -> Iterator[Cell]:
    for column, ours in (("original", original), ("manipulated", left)):
        paper, shown = values["Table 1", row, column].value, f"{ours:,}"
        is_same = row == INQUIRY and column == "original"
        told = "" if is_same else note
        yield Cell("Table 1", label, column, paper, shown, "our suites", shown == paper if is_same else None, told)


def _label(part: Part, row: str) -> str:
    return f"{part.name}: {row if row != DEKEYSER else part.source}"


def _note(part: Part) -> str:
    return {
        "I": f"{part.source} in the place of DeKeyser's",
        "II": "without CoLA's test sentences, whose labels are not public, and the counterparts that the authors wrote",
        "III": "pairs with one target to the left, of whatever tokens; the paper's are in BERT's vocabulary",
    }[part.name]


def left_out(parts: Sequence[Part]) -> Iterator[Cell]:
    """Yield how many pairs have no target, and how many sentences no partner, for each reason."""
    for part in parts:
        reasons = {"sentences": part.unpaired, "pairs": with_targets(part.pairs)[1]}
        yield from _reasons(part.name, reasons, "our suites")


def left_out_by(side: Side) -> Iterator[Cell]:
    """Yield how many pairs each model was not asked about, for each reason; and how many it cannot tell apart."""
    for model in side.models:
        for part in side.parts:
            row, source, found = (
                f"{model}, {side.name}: {part.name}",
                f"re-scored with {model}",
                side.found[model, part.name],
            )
            yield from _reasons(row, {"pairs": found.exclusions}, source)
            for note in found.notes()[len(counted(found.exclusions)) :]:
                yield Cell("Left out", row, "pairs: kept, but tied", None, note.partition(" ")[0], source, None, note)


def _reasons(row: str, reasons: Mapping[str, Sequence[Exclusion]], source: str) -> Iterator[Cell]:
    for unit, exclusions in reasons.items():
        for reason, count in counted(exclusions).items():
            yield Cell("Left out", row, f"{unit}: {reason}", None, str(count), source, None)


def interactions(values: Values) -> Iterator[Cell]:
    """Yield what we say of accuracy and repulsion together beside what Table 3 has in the same place."""
    for key in values:
        if key[0] == "Table 3":
            right, apart = (each.rpartition(" ")[2] for each in key[1:])
            yield beside(values, key, CLASSES[right, apart], _CLASSES)


def convergence(values: Values, side: Side) -> Iterator[Cell]:
    """Yield how often each model is right, by source (Table 2)."""
    for model in side.models:
        rows = side.of(model=model)
        found = by(rows, lambda each: each.row)
        groups = {row: (row, found[row]) for part in side.parts for row in part.original if row in found}
        second = [each for each in rows if each.part == "II"]
        groups |= {BOOK_TOTAL: ("II", second), _TOTAL: ("I, II and III", rows)}
        for row, (label, chosen) in groups.items():
            label = side.parts[0].source if row == DEKEYSER else label
            yield from _correct(values, row, f"{model}, {side.name}: {label}", chosen, f"re-scored with {model}")


def _correct(values: Values, row: str, label: str, chosen: Sequence[Judged], source: str) -> Iterator[Cell]:
    for column, ours in (("correct", _share(chosen)), ("correct %", 100 * accuracy(chosen))):
        theirs = [values["Table 2", row, each + column.removeprefix("correct")].value for each in _BERTS]
        yield Cell("Table 2", label, column, "; ".join(theirs), ours, source, None, _TWO)


def _share(chosen: Sequence[Judged]) -> str:
    return f"{2 * sum(each.is_correct for each in chosen)}/{2 * len(chosen)}"


def error_types(values: Values, side: Side) -> Iterator[Cell]:
    """Yield the rows of Table 4: all models together, as the paper has it, and why a type has no pair."""
    found = by(side.of(part="III"), lambda each: each.kind)
    for name in (row for table, row, column in values if (table, column) == ("Table 4", "class")):
        chosen = found.get(name, [])
        note = _POOLED if chosen else f"no pair is left: {_why(side, name)}"
        for column, ours in {"correct": _share(chosen), **_of_type(chosen)}.items():
            paper = values["Table 4", name, column].value
            yield Cell("Table 4", f"{side.name}: {name}", column, paper, ours, side.source, None, note)


def _of_type(chosen: Sequence[Judged]) -> dict[str, float | str]:
    given = repulsions(chosen)
    if not given:
        return {}
    mean = float(np.mean(given)) / 100
    return {"correct %": 100 * accuracy(chosen), "repulsion": mean, "class": interaction(accuracy(chosen), mean)}


def _why(side: Side, name: str) -> str:
    """Return the reasons for which the pairs of a type are left out."""
    ids = {each for each, its in types_of_examples().items() if its == name}
    suite = next(part.pairs for part in side.parts if part.name == "III")
    chosen = {each.id for each in suite.contrasts if suite.by_id[each.worse].tags["type"] in ids}
    excluded = side.found[side.models[0], "III"].exclusions
    return ", ".join(counted([each for each in excluded if each.contrast in chosen]))


def classes(side: Side) -> Iterator[Cell]:
    """Yield how many error types are in each class of Table 3."""
    found = by(side.of(part="III"), lambda each: each.kind).values()
    said = Counter(
        interaction(accuracy(rows), float(np.mean(given)) / 100) for rows in found if (given := repulsions(rows))
    )
    for name in CLASSES.values():
        yield Cell("Table 3", f"{side.name}: {name}", "types", None, str(said[name]), side.source, None)


def kinds(side: Side) -> Iterator[Cell]:
    """Yield how the models do on each kind of suite I."""
    part = side.parts[0]
    for name, rows in by(side.of(part="I"), lambda each: each.kind).items():
        given = repulsions(rows)
        columns = {"correct": _share(rows), "repulsion": float(np.mean(given)) / 100 if given else None}
        for column, ours in columns.items():
            yield Cell(f"Suite I: {part.source}", f"{side.name}: {name}", column, None, ours, side.source, None)
