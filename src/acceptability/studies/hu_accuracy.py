"""The accuracies that Hu, Chen and Levy (2020) published, computed again from their surprisals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acceptability.studies.cells import Cell, Key, Printed, beside
from acceptability.studies.hu import Combination, Right, accuracies, right_as_marked, right_by_position

_TABLE = "Hu et al. (2020)"
_SCORES = "published scores"
_BY_POSITION = "total_acc, by mismatch_position"


def accuracy_cells(every: Sequence[Combination]) -> list[Cell]:
    """Return each published accuracy with ours beside it."""
    known = {each.key: each for each in every}
    return [cell for name, row in accuracies().items() for cell in _row(known.get(name), " ".join(name), row)]


def _row(of: Combination | None, name: str, row: Mapping[str, str]) -> list[Cell]:
    values: dict[Key, Printed] = {(_TABLE, name, column): Printed(value) for column, value in row.items()}
    if of is None:
        note = "the surprisals of this model, which Niu and Penn leave aside, are not among the files read here"
        return [beside(values, key, None, "not computed", note=note) for key in values]
    right = right_as_marked(of)
    ours = right.shares()
    found = [beside(values, key, ours[key[2]], _SCORES, note=_ties(right, key[2])) for key in values]
    wrong = int((of.marked != of.is_good).sum()) * len(of.items)
    if wrong:
        share = right_by_position(of).shares()["total_acc"]
        note = f"the published one follows the column grammatical, which contradicts the sentences on {wrong:,} rows"
        found.append(beside({}, (_TABLE, name, _BY_POSITION), share, _SCORES, note=note))
    return found


def _ties(right: Right, column: str) -> str:
    """Say how ties were broken; only the total accuracy breaks them."""
    if column != "total_acc" or not right.tied.any():
        return ""
    expected = float((right.total + right.tied / 3).mean())
    return (
        f"{right.tied.sum()} of {len(right.tied)} sets tie; the published accuracy counts a tie as right once in "
        f"three, at random, so that {expected:.3f} was to be expected; ours counts none"
    )
