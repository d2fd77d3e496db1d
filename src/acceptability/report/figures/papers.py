"""Figures of the studies: bars by feature, learning curves, values by layer, and tables as heat maps.

They are told by what the cells of a study are called: ``MODEL: FEATURE`` with a mean and a standard deviation over
restarts, ``KIND, SIZE`` with a seed, ``layer N``; any other full table of shares or correlations is a heat map.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from acceptability.report.figures.correlations import heat
from acceptability.report.figures.panel import Chart, Panel, chart, listed
from acceptability.report.gather import Material, Row

FEATURES = (
    "The mean over restarts for each feature, with one standard deviation to both sides; a dashed line is the model's "
    "value over every sentence, a black or white tick that of people where it is known."
)
CURVE = "Each point is one training; the line joins their means. The horizontal axis is logarithmic."
LAYERS = "The value at each layer of the network, from the first to the last."
GRIDS = "A table of the study as colours: rows and columns as they are called there."

_FEATURE = re.compile(r"(?P<model>.+): (?P<feature>.+)")
_SIZE = re.compile(r"(?P<model>.+), (?P<size>\d+)")
_SEED = re.compile(r"(?P<measure>\w+), seed (?P<seed>\d+)")
_LAYER = re.compile(r"(.*?),? ?layer (\d+),? ?(.*)", re.IGNORECASE)
_WHOLE = "every sentence"
_PEOPLE = ("human", "people", "humans")


def _numbers(material: Material) -> Iterator[tuple[str, str, str, float]]:
    """Yield table, row, column and our number, where it is one."""
    for cell in material.cells:
        if isinstance(cell["ours"], int | float) and not isinstance(cell["ours"], bool):
            yield cell["table"], cell["row"], cell["column"], float(cell["ours"])


def features(material: Material) -> Iterator[Panel]:
    """Yield means and deviations by feature, a figure for each of a paper's."""
    tables: dict[str, dict[tuple[str, str], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for table, row, column, value in _numbers(material):
        named = _FEATURE.fullmatch(row)
        if named and column.partition(",")[0] == "MCC":
            tables[table][named["model"], named["feature"]][column.partition(", ")[2] or "mean"] = value
    for table, found in tables.items():
        whole = {model: each.get("mean") for (model, feature), each in found.items() if feature == _WHOLE}
        people = {feature: each.get("mean") for (model, feature), each in found.items() if model.lower() in _PEOPLE}
        rows = [
            {"model": model, "feature": feature, "mean": each["mean"], "sd": _deviation(each)}
            | {"whole": whole.get(model), "human": people.get(feature)}
            for (model, feature), each in found.items()
            if "mean" in each and feature != _WHOLE and model.lower() not in _PEOPLE
        ]
        if rows:
            count = len({row["feature"] for row in rows})
            said = f"Bars of {listed([row['model'] for row in rows])} for {count} features."
            yield Panel(f"MCC by feature, {table}", rows, said)


def _deviation(each: dict[str, float]) -> float | None:
    return next((value for name, value in each.items() if name.startswith(("std", "standard deviation", "sd"))), None)


def bars(rows: Sequence[Row]) -> Chart:
    """Return bars side by side, with deviations and lines."""
    base = chart().encode(y=alt.Y("feature:N", title=None, sort=None), yOffset=alt.YOffset("model:N", sort=None))
    ends = base.transform_calculate(low="datum.mean - datum.sd", high="datum.mean + datum.sd")
    shown = ["feature:N", "model:N", "mean:Q", "sd:Q"]
    layers = [
        base.mark_bar().encode(
            x=alt.X("mean:Q", title="MCC"), color=alt.Color("model:N", title=None, sort=None), tooltip=shown
        ),
        ends.transform_filter("isValid(datum.sd)").mark_rule().encode(x=alt.X("low:Q", title="MCC"), x2="high:Q"),
        chart()
        .transform_filter("isValid(datum.whole)")
        .mark_rule(strokeDash=[4, 3])
        .encode(x="mean(whole):Q", color="model:N"),
        chart()
        .transform_filter("isValid(datum.human)")
        .mark_tick(thickness=3)
        .encode(y="feature:N", x="mean(human):Q"),
    ]
    return alt.layer(*layers).properties(width="container", height={"step": 13, "for": "offset"})


def curves(material: Material) -> Iterator[Panel]:
    """Yield what was reached after how much, from a study's cells and from rows with a size."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for table, row, column, value in _numbers(material):
        size, seed = _SIZE.fullmatch(row), _SEED.fullmatch(column)
        if size and seed:
            told = {"model": size["model"], "size": int(size["size"]), "seed": int(seed["seed"]), "value": value}
            tables[f"{table}: {seed['measure']} by training sentences"].append(told)
    for each in material.sizes:
        told = {"model": each.get("model", ""), "size": each["size"], "seed": each.get("seed"), "value": each["value"]}
        tables[f"Learning curve: {each.get('measure', 'value')}"].append(told)
    for title, rows in tables.items():
        first, last = (pick(rows, key=lambda row: row["size"]) for pick in (min, max))
        said = (
            f"{len(rows)} points, from {first['size']} ({first['value']:.2f}) to {last['size']} ({last['value']:.2f})."
        )
        yield Panel(title, rows, said)


def curve(rows: Sequence[Row]) -> Chart:
    """Return points, and a line through their means."""
    x = alt.X("size:Q", title="learnt from", scale=alt.Scale(type="log"))
    base = chart().encode(x=x, color=alt.Color("model:N", title=None, sort=None))
    points = base.mark_point(opacity=0.7).encode(y="value:Q", tooltip=["model:N", "size:Q", "seed:Q", "value:Q"])
    lines = base.mark_line().encode(y=alt.Y("mean(value):Q", title="value"))
    return alt.layer(points, lines).properties(width="container", height=280)


def layers(material: Material) -> Iterator[Panel]:
    """Yield values by layer, from a study's cells and from rows with a layer."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in material.layers:
        named = [str(row[name]) for name in ("model", "probe", "task", "group") if row.get(name)]
        tables[f"{row.get('measure', 'Value')} by layer"].append(
            {"line": ", ".join(named) or "value", "layer": row["layer"], "value": row["value"]}
        )
    for table, row_name, column, value in _numbers(material):
        for text, other in ((column, row_name), (row_name, column)):
            named_layer = _LAYER.fullmatch(text)
            if named_layer:
                line = ", ".join(filter(None, (other, named_layer[1], named_layer[3])))
                tables[f"{table} by layer"].append({"line": line, "layer": int(named_layer[2]), "value": value})
                break
    for title, rows in tables.items():
        best = max(rows, key=lambda row: row["value"])
        count, highest = len({row["layer"] for row in rows}), f"{best['value']:.2f} at layer {best['layer']}"
        said = f"Lines over {count} layers; the highest is {highest} ({best['line']})."
        yield Panel(title, rows, said)


def by_layer(rows: Sequence[Row]) -> Chart:
    """Return a line over the layers for each model or probe."""
    return (
        chart()
        .mark_line(point=True)
        .encode(
            x=alt.X("layer:Q", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("value:Q", scale=alt.Scale(zero=False)),
            color=alt.Color("line:N", title=None, sort=None),
            strokeDash=alt.StrokeDash("line:N", title=None, sort=None),
            tooltip=["line:N", "layer:Q", "value:Q"],
        )
        .properties(width="container", height=280)
    )


def grids(material: Material) -> Iterator[Panel]:
    """Yield the tables that are full and of one scale: shares, correlations or percentages."""
    tables: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for table, row, column, value in _numbers(material):
        is_feature = _FEATURE.fullmatch(row) and column.partition(",")[0] == "MCC"
        if not (is_feature or _SEED.fullmatch(column) or _LAYER.fullmatch(column) or _LAYER.fullmatch(row)):
            tables[table][row, column] = value
    for table, cells in tables.items():
        names = [list(dict.fromkeys(key[side] for key in cells)) for side in (0, 1)]
        size = len(names[0]) * len(names[1])
        if min(map(len, names)) < 3 or len(cells) < 0.6 * size or _domain([*cells.values()]) is None:
            continue
        rows: list[dict[str, Any]] = [
            {"row": row, "column": column, "value": value} for (row, column), value in cells.items()
        ]
        lowest, highest = (pick(rows, key=lambda row: row["value"]) for pick in (min, max))
        ends = f"from {lowest['value']:.2f} to {highest['value']:.2f}"
        said = f"Heat map of {len(names[0])} rows and {len(names[1])} columns, {ends}."
        yield Panel(table, rows, said)


def _domain(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the scale that values are on; None where it is neither of shares, correlations nor percentages."""
    low, high = min(values), max(values)
    if low >= -1 and high <= 1:
        return (-1.0, 1.0) if low < 0 else (0.0, 1.0)
    return (0.0, 100.0) if low >= 0 and high <= 100 else None


def grid(rows: Sequence[Row]) -> Chart:
    """Return a table as a heat map."""
    domain = _domain([row["value"] for row in rows])
    assert domain is not None
    return heat(
        x=alt.X("column:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("row:N", title=None, sort=None),
        value="value",
        domain=domain,
        tooltip=["row:N", "column:N", "value:Q"],
    )
