"""Table 3 of Niu and Penn (2020) for a model of the user's own: the minimal structures of Linguistic Inquiry."""

from __future__ import annotations

from collections.abc import Iterator

from acceptability.studies.cells import Cell
from acceptability.studies.minimal import Structures
from acceptability.studies.niu_penn_pbc import SCALES, Scored, median, model_cell, over_sets, pbc


def table_3(model: str, minimal: Structures, found: Scored) -> Iterator[Cell]:
    """Yield the median correlation over the structures."""
    for norm, scores in found.items():
        for name, scale in SCALES.items():
            numbers = over_sets([pbc(strings, scores, scale) for strings in minimal.values()], {"median": median})
            yield model_cell("Table 3", f"{model}, {norm}", name, numbers["median"], model)
