"""Which models differ from the best one by more than chance would give, for the marks in a table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures import load_measure
from acceptability.report.gather import Material, Row, model_name
from acceptability.signature import parse
from acceptability.stats.bootstrap import mean_of
from acceptability.stats.corrections import holm
from acceptability.stats.permutation import permutation_test
from acceptability.types import Units

NOTE = "Marks: different from the best (bold) by a permutation test, Holm: * p < .05, ** p < .01, *** p < .001."
_DRAWS = 2000
_ABOUT = ("suite", "measure", "model", "reduction", "unit")

Key = tuple[str, str, str]
"""Suite, measure and model."""


def marks(material: Material) -> Mapping[Key, str]:
    """Return a mark for each model that is surely not the best under a measure that is a mean of rows."""
    parts: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in material.units:
        if row.get("measure") and "model" in row:
            parts[row["suite"], row["measure"]][model_name(row)].append(row)
    by = {(row["suite"], row["measure"]): _by(row.get("signature") or "") for row in material.results}
    found: dict[Key, str] = {}
    for (suite, measure), models in parts.items():
        if len(models) > 1:
            ps = _ps(measure, models, by.get((suite, measure), ""))
            found |= {(suite, measure, model): mark(p) for model, p in ps.items()}
    return found


def mark(p: float | None) -> str:
    """Return the mark of a corrected p.

    >>> mark(0.03), mark(0.0004), mark(0.2), mark(None)
    ('*', '***', '', '')
    """
    if p is None:
        return ""
    return next((sign for limit, sign in ((0.001, "***"), (0.01, "**"), (0.05, "*")) if p < limit), "")


def _by(signature: str) -> str:
    """Return the tag whose values were drawn whole for the interval; the test swaps the same."""
    named = re.search(r"by=([^,]+),", parse(signature).get("ci", "")) if signature else None
    return "" if named is None or named[1] == "row" else named[1]


def _ps(measure: str, models: Mapping[str, Sequence[Row]], by: str) -> Mapping[str, float | None]:
    """Return the corrected p of each model against the best one; none where rows differ or there is no test."""
    asked = load_measure(measure)
    if not all(mean_of(asked) in row for rows in models.values() for row in rows):
        return {}
    units = {name: _units(rows) for name, rows in models.items()}
    best = max(units, key=lambda name: asked.value(units[name]))
    others = [name for name in units if name != best and units[name].ids == units[best].ids]
    ps: list[float | None] = []
    for name in others:
        try:
            ps.append(permutation_test(asked, units[best], units[name], by=by, draws=_DRAWS).p)
        except Undefined:
            ps.append(None)
    return dict(zip(others, holm(ps), strict=True))


def _units(rows: Sequence[Row]) -> Units:
    shared = set(rows[0]).intersection(*rows)
    names = [name for name in rows[0] if name in shared and name not in _ABOUT and not name.startswith("tag/")]
    columns = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in names}
    tags = tuple({name[4:]: str(row[name]) for name in row if name.startswith("tag/")} for row in rows)
    return Units(tuple(row["unit"] for row in rows), columns, tags)
