"""The cells of each paper without a model of one's own, which tests of several files look at: computed once."""

from __future__ import annotations

from functools import cache

from acceptability.papers import study
from acceptability.papers.cells import Cell


@cache
def compute_published_cells(name: str) -> tuple[Cell, ...]:
    """Return what ``study`` gives for a paper; who uses it has asked for the data, where the paper needs them."""
    return tuple(study(name))
