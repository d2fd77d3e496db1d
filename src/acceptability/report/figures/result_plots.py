"""Figures of results: values with intervals, by group, differences of models, correlations, and the cells of papers.

The cells of a paper are recognised by the names of their rows and columns: ``MODEL: FEATURE`` with a mean and a
standard deviation over restarts, ``MODEL, SIZE`` with a seed, ``layer N``. Any other full table of shares, correlations
or percentages becomes a heat map.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt

from acceptability.report.figures.panel import Chart, Panel, facet_chart, join_names, make_chart
from acceptability.report.report_data import ReportData, Row, format_model_name
from acceptability.text.io import parse_number
from acceptability.types import Suite

CAPTION = "The correlation of every two columns; blue is positive, orange negative."


def make_matrix_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the correlation matrix, with both halves, for each run of ``correlate``."""
    rows_by_signature: dict[str, list[Row]] = {}
    for row in report_data.correlations:
        rows_by_signature.setdefault(str(row.get("signature") or ""), []).append(row)
    for signature, signature_rows in rows_by_signature.items():
        known = [row for row in signature_rows if row["r"] is not None]
        pairs = [(row["first"], row["second"], row) for row in known]
        # The input has each pair once; a reader looks up a model in rows and in columns.
        both = [*pairs, *((second, first, row) for first, second, row in pairs)]
        rows = [
            {"first": first, "second": second}
            | {name: row.get(name) for name in ("r", "low", "high", "p", "holm", "n")}
            for first, second, row in both
        ]
        if rows:
            # A description is read aloud, and must end.
            alt_text = "; ".join(f"{row['first']} and {row['second']} {row['r']:.2f}" for row in known[:12])
            yield Panel(f"Correlations: {signature.partition('|')[0] or 'every two'}", rows, f"Heat map. {alt_text}.")


def draw_matrix(rows: Sequence[Row]) -> Chart:
    """Return the correlation matrix as a heat map."""
    return draw_heat_map(
        x=alt.X("first:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("second:N", title=None, sort=None),
        value="r",
        domain=(-1.0, 1.0),
        tooltip=["first:N", "second:N", "r:Q", "p:Q", "n:Q"],
    )


def draw_heat_map(x: alt.X, y: alt.Y, value: str, domain: tuple[float, float], tooltip: list[str]) -> Chart:
    """Return a heat map with the numbers in its squares.

    Args:
        x, y: The encodings of columns and rows.
        value: The field of the numbers.
        domain: The ends of the scale; a negative lower end gives a diverging scale.
        tooltip: The fields of the tooltip.
    """
    low, high = domain
    # Orange and blue, which people with any kind of colour vision can distinguish.
    scheme = ["#b35806", "#f6f6f2", "#2166ac"] if low < 0 else ["#f6f6f2", "#7fb3d9", "#08457e"]
    scale = alt.Scale(domain=[low, (low + high) / 2, high], range=scheme, clamp=True)
    base = make_chart().encode(x=x, y=y)
    squares = base.mark_rect().encode(color=alt.Color(f"{value}:Q", title=value, scale=scale), tooltip=tooltip)
    # White numbers on dark squares.
    dark = f"datum['{value}'] > {low + 0.8 * (high - low)}" + (f" || datum['{value}'] < {low * 0.8}" if low < 0 else "")
    ink = alt.condition(dark, alt.value("#ffffff"), alt.value("#111111"))
    # Percentages have no decimals, which would not fit into a square.
    digits = ".2f" if high <= 1 else ".0f"
    numbers = base.mark_text(fontSize=11).encode(text=alt.Text(f"{value}:Q", format=digits), color=ink)
    return alt.layer(squares, numbers).properties(width={"step": 46}, height={"step": 28})


FEATURES_CAPTION = (
    "The mean over restarts for each feature, with one standard deviation to both sides; a dashed line is the model's "
    "value over every sentence, a black or white tick that of people where it is known."
)
CURVE_CAPTION = "Each point is one training run; the line joins their means. The horizontal axis is logarithmic."
LAYERS_CAPTION = "The value at each layer of the network, from the first to the last."
GRIDS_CAPTION = "A table of the paper as a heat map."

_FEATURE = re.compile(r"(?P<model>.+): (?P<feature>.+)")
_SIZE = re.compile(r"(?P<model>.+), (?P<size>\d+)")
_SEED = re.compile(r"(?P<measure>\w+), seed (?P<seed>\d+)")
_LAYER = re.compile(r"(.*?),? ?layer (\d+),? ?(.*)", re.IGNORECASE)
_ALL_SENTENCES = "every sentence"
_PEOPLE = ("human", "people", "humans")


def _iterate_numbers(report_data: ReportData) -> Iterator[tuple[str, str, str, float]]:
    """Yield table, row, column and value of each cell with a number of ours."""
    for cell in report_data.cells:
        if isinstance(cell["ours"], int | float) and not isinstance(cell["ours"], bool):
            yield cell["table"], cell["row"], cell["column"], float(cell["ours"])


def make_feature_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of means and standard deviations by feature for each such table of a paper."""
    tables: dict[str, dict[tuple[str, str], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for table, row, column, value in _iterate_numbers(report_data):
        # Other tables have rows with a colon too; the column shows that it is one of features.
        named = _FEATURE.fullmatch(row)
        if named and column.partition(",")[0] == "MCC":
            tables[table][named["model"], named["feature"]][column.partition(", ")[2] or "mean"] = value
    for table, statistics in tables.items():
        whole = {model: cell.get("mean") for (model, feature), cell in statistics.items() if feature == _ALL_SENTENCES}
        people = {
            feature: cell.get("mean") for (model, feature), cell in statistics.items() if model.lower() in _PEOPLE
        }
        rows = [
            {"model": model, "feature": feature, "mean": cell["mean"], "sd": _find_deviation(cell)}
            | {"whole": whole.get(model), "human": people.get(feature)}
            for (model, feature), cell in statistics.items()
            if "mean" in cell and feature != _ALL_SENTENCES and model.lower() not in _PEOPLE
        ]
        if rows:
            count = len({row["feature"] for row in rows})
            alt_text = f"Bars of {join_names([row['model'] for row in rows])} for {count} features."
            yield Panel(f"MCC by feature, {table}", rows, alt_text)


def _find_deviation(statistics: dict[str, float]) -> float | None:
    return next(
        (value for name, value in statistics.items() if name.startswith(("std", "standard deviation", "sd"))), None
    )


def draw_features(rows: Sequence[Row]) -> Chart:
    """Return bars by feature and model, with standard deviations, and lines for all sentences and for people."""
    base = make_chart().encode(y=alt.Y("feature:N", title=None, sort=None), yOffset=alt.YOffset("model:N", sort=None))
    ends = base.transform_calculate(low="datum.mean - datum.sd", high="datum.mean + datum.sd")
    tooltip = ["feature:N", "model:N", "mean:Q", "sd:Q"]
    layers = [
        base.mark_bar().encode(
            # The same title in all layers: Vega-Lite would otherwise join the titles of their fields.
            x=alt.X("mean:Q", title="MCC"),
            color=alt.Color("model:N", title=None, sort=None),
            tooltip=tooltip,
        ),
        # Not every model was trained more than once.
        ends.transform_filter("isValid(datum.sd)").mark_rule().encode(x=alt.X("low:Q", title="MCC"), x2="high:Q"),
        make_chart()
        .transform_filter("isValid(datum.whole)")
        .mark_rule(strokeDash=[4, 3])
        # Every row of a model has the same value; the mean draws it once.
        .encode(x="mean(whole):Q", color="model:N"),
        make_chart()
        .transform_filter("isValid(datum.human)")
        .mark_tick(thickness=3)
        .encode(y="feature:N", x="mean(human):Q"),
    ]
    return alt.layer(*layers).properties(width="container", height={"step": 13, "for": "offset"})


def make_curve_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel for each learning curve, from the cells of papers and from rows with a size."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for table, row, column, value in _iterate_numbers(report_data):
        size, seed = _SIZE.fullmatch(row), _SEED.fullmatch(column)
        if size and seed:
            point = {"model": size["model"], "size": int(size["size"]), "seed": int(seed["seed"]), "value": value}
            tables[f"{table}: {seed['measure']} by training sentences"].append(point)
    for size_row in report_data.sizes:
        point = {
            "model": size_row.get("model", ""),
            "size": size_row["size"],
            "seed": size_row.get("seed"),
            "value": size_row["value"],
        }
        tables[f"Learning curve: {size_row.get('measure', 'value')}"].append(point)
    for title, rows in tables.items():
        first, last = (pick(rows, key=lambda row: row["size"]) for pick in (min, max))
        alt_text = (
            f"{len(rows)} points, from {first['size']} ({first['value']:.2f}) to {last['size']} ({last['value']:.2f})."
        )
        yield Panel(title, rows, alt_text)


def draw_curve(rows: Sequence[Row]) -> Chart:
    """Return a point per training run, and a line through their means."""
    # Sizes grow by factors: on a linear axis, all but the largest would be at its left end.
    x = alt.X("size:Q", title="training data", scale=alt.Scale(type="log"))
    base = make_chart().encode(x=x, color=alt.Color("model:N", title=None, sort=None))
    # The single runs too: a mean of three runs says little without their spread.
    points = base.mark_point(opacity=0.7).encode(y="value:Q", tooltip=["model:N", "size:Q", "seed:Q", "value:Q"])
    lines = base.mark_line().encode(y=alt.Y("mean(value):Q", title="value"))
    return alt.layer(points, lines).properties(width="container", height=280)


def make_layer_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of values by layer, from the cells of papers and from rows with a layer."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in report_data.layers:
        named = [str(row[name]) for name in ("model", "probe", "task", "group") if row.get(name)]
        tables[f"{row.get('measure', 'Value')} by layer"].append(
            {"line": ", ".join(named) or "value", "layer": row["layer"], "value": row["value"]}
        )
    for table, row_name, column, value in _iterate_numbers(report_data):
        # Some papers have layers in columns, others in rows.
        for text, other in ((column, row_name), (row_name, column)):
            named_layer = _LAYER.fullmatch(text)
            if named_layer:
                line = ", ".join(filter(None, (other, named_layer[1], named_layer[3])))
                tables[f"{table} by layer"].append({"line": line, "layer": int(named_layer[2]), "value": value})
                break
    for title, rows in tables.items():
        best = max(rows, key=lambda row: row["value"])
        count, highest = len({row["layer"] for row in rows}), f"{best['value']:.2f} at layer {best['layer']}"
        alt_text = f"Lines over {count} layers; the highest is {highest} ({best['line']})."
        yield Panel(title, rows, alt_text)


def draw_layers(rows: Sequence[Row]) -> Chart:
    """Return a line over the layers for each model or probe."""
    return (
        make_chart()
        .mark_line(point=True)
        .encode(
            x=alt.X("layer:Q", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("value:Q", scale=alt.Scale(zero=False)),
            color=alt.Color("line:N", title=None, sort=None),
            # Dashes as well as colours, for print in black and white.
            strokeDash=alt.StrokeDash("line:N", title=None, sort=None),
            tooltip=["line:N", "layer:Q", "value:Q"],
        )
        .properties(width="container", height=280)
    )


def make_grid_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel for each other table of a paper that is full and on one scale."""
    tables: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for table, row, column, value in _iterate_numbers(report_data):
        # These cells have figures of their own above.
        is_feature = _FEATURE.fullmatch(row) and column.partition(",")[0] == "MCC"
        if not (is_feature or _SEED.fullmatch(column) or _LAYER.fullmatch(column) or _LAYER.fullmatch(row)):
            tables[table][row, column] = value
    for table, cells in tables.items():
        names = [list(dict.fromkeys(key[side] for key in cells)) for side in (0, 1)]
        size = len(names[0]) * len(names[1])
        # A heat map of two rows, or with many holes, shows less than the table.
        if min(map(len, names)) < 3 or len(cells) < 0.6 * size or _find_domain([*cells.values()]) is None:
            continue
        rows: list[dict[str, Any]] = [
            {"row": row, "column": column, "value": value} for (row, column), value in cells.items()
        ]
        lowest, highest = (pick(rows, key=lambda row: row["value"]) for pick in (min, max))
        ends = f"from {lowest['value']:.2f} to {highest['value']:.2f}"
        alt_text = f"Heat map of {len(names[0])} rows and {len(names[1])} columns, {ends}."
        yield Panel(table, rows, alt_text)


def _find_domain(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the ends of the scale of shares, correlations or percentages; None for other values."""
    low, high = min(values), max(values)
    if low >= -1 and high <= 1:
        return (-1.0, 1.0) if low < 0 else (0.0, 1.0)
    return (0.0, 100.0) if low >= 0 and high <= 100 else None


def draw_grid(rows: Sequence[Row]) -> Chart:
    """Return a table as a heat map."""
    domain = _find_domain([row["value"] for row in rows])
    assert domain is not None
    return draw_heat_map(
        x=alt.X("column:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("row:N", title=None, sort=None),
        value="value",
        domain=domain,
        tooltip=["row:N", "column:N", "value:Q"],
    )


SUMMARY_CAPTION = "Each value, with its confidence interval."
BY_GROUP_CAPTION = (
    "The value of each group with its confidence interval. A dashed line is chance, where a measure has one; a black "
    "or white tick is the share of contrasts for which people's mean ratings agree, where there are ratings."
)
DIFFERENCES_CAPTION = (
    "The first model minus the other, with the interval of the difference; to the right the first is better."
)

_CHANCE_LEVELS = {
    **dict.fromkeys(("PairAccuracy", "Directionality", "ClozePair", "AUC", "UnpairedAUC"), 0.5),
    **dict.fromkeys(("PBC", "MCC", "Pearson", "Spearman", "Kendall", "DeltaCorrelation", "PairCorrelation"), 0.0),
}
"""The value of a measure for random scores."""

# With more suites than this, a summary has no axis for each suite but is a heat map.
_MAX_SUITES = 20

_TOOLTIP = ["model:N", "value:Q", "low:Q", "high:Q", "n:Q"]


def find_chance_level(measure: str) -> float | None:
    """Return the value of a measure for random scores; None if it is unknown.

    >>> find_chance_level("PairAccuracy(ties=0.5)"), find_chance_level("ADC(delta=0.5)")
    (0.5, None)
    """
    return _CHANCE_LEVELS.get(measure.partition("(")[0])


def make_summary_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of all ungrouped values, or one for each measure if there are many suites."""
    rows = [
        {"suite": row["suite"], "measure": row["measure"], "model": format_model_name(row)}
        | {name: row[name] for name in ("value", "low", "high", "n")}
        | {"what": f"{row['suite']}: {row['measure']}"}
        for row in report_data.results
        if not row.get("group") and row["value"] is not None
    ]
    if not _has_many_suites(rows):
        yield from ([Panel("Summary", rows, _describe_summary(rows))] if rows else [])
        return
    measures = dict.fromkeys(row["measure"] for row in rows)
    for measure in measures:
        measure_rows = [row for row in rows if row["measure"] == measure]
        yield Panel(
            f"Summary, {measure}",
            measure_rows,
            _describe_summary(measure_rows),
            "Point at a value to see its interval.",
        )


def _has_many_suites(rows: Sequence[Row]) -> bool:
    """Return whether there are too many suites for an axis of each."""
    return len({row["suite"] for row in rows}) > _MAX_SUITES


def _describe_summary(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: row["value"])
    alt_text = f"{len(rows)} values of {join_names([row['model'] for row in rows])}. "
    return f"{alt_text}The highest is {best['value']:.3f}, of {best['model']} ({best['what']})."


def draw_summary(rows: Sequence[Row]) -> Chart:
    """Return points with intervals, with a facet for each suite and measure; a heat map if there are many suites."""
    if _has_many_suites(rows):
        return _draw_summary_heat_map(rows)
    x = alt.X("value:Q", title="value", scale=alt.Scale(zero=False, nice=True))
    base = make_chart().encode(
        # Sorting off keeps the order of the command line; Vega-Lite sorts by name.
        y=alt.Y("model:N", title=None, sort=None),
        color=alt.Color("model:N", legend=None, sort=None),
    )
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title="value"), x2="high:Q"),
        base.mark_point(filled=True, size=60).encode(x=x, tooltip=_TOOLTIP),
    ).properties(width=330)
    # Measures have different ranges, and suites may have different models.
    return facet_chart(layers, "what", columns=2).resolve_scale(x="independent", y="independent")


def _draw_summary_heat_map(rows: Sequence[Row]) -> Chart:
    low, high = (pick(row["value"] for row in rows) for pick in (min, max))
    return draw_heat_map(
        x=alt.X("model:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("suite:N", title=None, sort=None),
        value="value",
        # Correlations, shares, or whatever range the values have, which always includes 0 and 1.
        domain=(-1.0, 1.0) if -1 <= low < 0 and high <= 1 else (min(0.0, low), max(1.0, high)),
        tooltip=["suite:N", *_TOOLTIP],
    )


def make_group_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the values of groups for each suite, measure and tag."""
    rows_by_tag: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in report_data.results:
        tag, equals, name = (row.get("group") or "").partition("=")
        if equals and row["value"] is not None:
            rows_by_tag[row["suite"], row["measure"], tag].append({**row, "name": name})
    for (suite, measure, tag), group_rows in rows_by_tag.items():
        # Only for measures that are shares of contrasts too.
        people = (
            _compute_human_agreement(report_data.suites.get(suite), tag)
            if "Accuracy" in measure or "Direction" in measure
            else {}
        )
        rows = [
            {"group": row["name"], "model": format_model_name(row)}
            | {name: row[name] for name in ("value", "low", "high", "n")}
            | {"chance": find_chance_level(measure), "human": people.get(row["name"])}
            for row in group_rows
        ]
        yield Panel(f"{measure} by {tag}, {suite}", rows, _describe_groups(rows, measure, tag))


def _describe_groups(rows: Sequence[Row], measure: str, tag: str) -> str:
    lowest, highest = (pick(rows, key=lambda row: row["value"]) for pick in (min, max))
    count = len({row["group"] for row in rows})
    return (
        f"{measure} of {join_names([row['model'] for row in rows])} in {count} groups by {tag}: "
        f"from {lowest['value']:.3f} ({lowest['model']}, {lowest['group']}) "
        f"to {highest['value']:.3f} ({highest['model']}, {highest['group']})."
    )


def _compute_human_agreement(suite: Suite | None, tag: str) -> Mapping[str, float]:
    """Return people's accuracy by group: the published one, or how many contrasts have the ratings of their direction.

    The published one is the tag ``human_accuracy``, as ZhoBLiMP has it of each paradigm.
    """
    agreed: dict[str, list[float]] = defaultdict(list)
    for contrast in suite.contrasts if suite else ():
        assert suite is not None
        published = parse_number(contrast.tags.get("human_accuracy"))
        if published is not None and tag in contrast.tags:
            agreed[contrast.tags[tag]].append(published)
            continue
        better, worse = (suite.by_id[name].rating for name in (contrast.better, contrast.worse))
        if better is not None and worse is not None and tag in contrast.tags:
            agreed[contrast.tags[tag]].append(better > worse)
    return {name: sum(verdicts) / len(verdicts) for name, verdicts in agreed.items()}


def draw_by_group(rows: Sequence[Row]) -> Chart:
    """Return points with intervals by group and model, with chance as a line and people as ticks."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    # Many models are drawn closer, so that the figure stays on one page.
    step = 11 if len(models) < 4 else 8
    y = alt.Y("group:N", title=None, sort=None)
    offset = alt.YOffset("model:N", sort=None)
    base = make_chart().encode(y=y, yOffset=offset, color=alt.Color("model:N", title=None, sort=None))
    tooltip = ["group:N", "model:N", "value:Q", "low:Q", "high:Q", "n:Q"]
    # Not from 0: accuracies lie close to each other, and their differences would be too small to see.
    x = alt.X("value:Q", title="value", scale=alt.Scale(zero=False))
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title="value"), x2="high:Q"),
        base.mark_point(filled=True, size=36, opacity=1).encode(
            # Shapes as well as colours, for print in black and white.
            x=x,
            shape=alt.Shape("model:N", legend=None, sort=None),
            tooltip=tooltip,
        ),
    ]
    if rows[0]["chance"] is not None:
        # First, so that the points are drawn over the line.
        layers.insert(0, make_chart().mark_rule(strokeDash=[4, 3]).encode(x="min(chance):Q"))
    if any(row["human"] is not None for row in rows):
        people = make_chart().mark_tick(thickness=3, size=step * len(models) + 4).encode(y=y, x="mean(human):Q")
        # One tick per group, and so without the offset that separates the models.
        layers.append(people.encode(tooltip=["group:N", alt.Tooltip("mean(human):Q", title="people")]))
    return alt.layer(*layers).properties(width="container", height={"step": step, "for": "offset"})


def make_difference_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of differences for each suite, measure and first model."""
    rows_by_model: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in report_data.comparisons:
        if row["difference"] is not None:
            rows_by_model[row["suite"], row["measure"], row["first"]].append(row)
    for (suite, measure, first), model_rows in rows_by_model.items():
        rows = [
            {
                "group": (row.get("group") or "all").partition("=")[2] or row.get("group") or "all",
                "against": row["second"],
            }
            | {name: row.get(name) for name in ("difference", "low", "high", "p", "holm", "n")}
            for row in model_rows
        ]
        # The description gives the direction, which the sign of each difference shows in the chart.
        positive = sum(row["difference"] > 0 for row in rows)
        alt_text = f"{len(rows)} differences of {measure}; {first} is better in {positive} of them."
        yield Panel(f"{first} against others: {measure}, {suite}", rows, alt_text)


def draw_differences(rows: Sequence[Row]) -> Chart:
    """Return differences with intervals, and a line at 0."""
    base = make_chart().encode(
        y=alt.Y("group:N", title=None, sort=None),
        yOffset=alt.YOffset("against:N", sort=None),
        color=alt.Color("against:N", title="against", sort=None),
    )
    tooltip = ["group:N", "against:N", "difference:Q", "low:Q", "high:Q", "p:Q", "holm:Q", "n:Q"]
    zero = make_chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    lines = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title="difference"), x2="high:Q")
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(x="difference:Q", tooltip=tooltip)
    return alt.layer(zero, lines, dots).properties(width="container", height={"step": 14, "for": "offset"})
