"""Values with their intervals: all of them, group by group, and the differences of two models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import altair as alt

from acceptability.report.figures.correlations import heat
from acceptability.report.figures.panel import Chart, Panel, chart, faceted, listed
from acceptability.report.gather import Material, Row, model_name
from acceptability.types import Suite

SUMMARY = "Each value, with its confidence interval."
BY_GROUP = (
    "The value of each group with its confidence interval. A dashed line is chance, where a measure has one; a black "
    "or white tick is the share of contrasts that people's mean ratings put in the same order, where there are ratings."
)
DIFFERENCES = "The first model minus the other, with the interval of the difference; to the right the first is better."

_CHANCE = {
    **dict.fromkeys(("PairAccuracy", "Directionality", "ClozePair", "AUC", "UnpairedAUC"), 0.5),
    **dict.fromkeys(("PBC", "MCC", "Pearson", "Spearman", "Kendall", "DeltaCorrelation", "PairCorrelation"), 0.0),
}
"""What guessing earns."""

_MOST_SUITES = 20
"""How many suites of a summary have an axis each."""

_SHOWN = ["model:N", "value:Q", "low:Q", "high:Q", "n:Q"]


def chance(measure: str) -> float | None:
    """Return what guessing earns under a measure; None where that is not known.

    >>> chance("PairAccuracy(ties=0.5)"), chance("ADC(delta=0.5)")
    (0.5, None)
    """
    return _CHANCE.get(measure.partition("(")[0])


def summaries(material: Material) -> Iterator[Panel]:
    """Yield all values over all rows: in one figure, or in a heat map for each measure where suites are many."""
    rows = [
        {"suite": row["suite"], "measure": row["measure"], "model": model_name(row)}
        | {name: row[name] for name in ("value", "low", "high", "n")}
        | {"what": f"{row['suite']}: {row['measure']}"}
        for row in material.results
        if not row.get("group") and row["value"] is not None
    ]
    if not _are_many(rows):
        yield from ([Panel("Summary", rows, _summary_alt(rows))] if rows else [])
        return
    measures = dict.fromkeys(row["measure"] for row in rows)
    for measure in measures:
        some = [row for row in rows if row["measure"] == measure]
        yield Panel(f"Summary, {measure}", some, _summary_alt(some), "Point at a value to see its interval.")


def _are_many(rows: Sequence[Row]) -> bool:
    """Tell whether there are too many suites for an axis each."""
    return len({row["suite"] for row in rows}) > _MOST_SUITES


def _summary_alt(rows: Sequence[Row]) -> str:
    best = max(rows, key=lambda row: row["value"])
    said = f"{len(rows)} values of {listed([row['model'] for row in rows])}. "
    return f"{said}The highest is {best['value']:.3f}, of {best['model']} ({best['what']})."


def summary(rows: Sequence[Row]) -> Chart:
    """Return a dot with an interval for each model, one axis for each measure; many suites make a heat map."""
    if _are_many(rows):
        return _heat_map(rows)
    x = alt.X("value:Q", title="value", scale=alt.Scale(zero=False, nice=True))
    base = chart().encode(y=alt.Y("model:N", title=None, sort=None), color=alt.Color("model:N", legend=None, sort=None))
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title="value"), x2="high:Q"),
        base.mark_point(filled=True, size=60).encode(x=x, tooltip=_SHOWN),
    ).properties(width=330)
    return faceted(layers, "what", columns=2).resolve_scale(x="independent", y="independent")


def _heat_map(rows: Sequence[Row]) -> Chart:
    low, high = (pick(row["value"] for row in rows) for pick in (min, max))
    return heat(
        x=alt.X("model:N", title=None, sort=None, axis=alt.Axis(labelAngle=-35)),
        y=alt.Y("suite:N", title=None, sort=None),
        value="value",
        domain=(-1.0, 1.0) if -1 <= low < 0 and high <= 1 else (min(0.0, low), max(1.0, high)),
        tooltip=["suite:N", *_SHOWN],
    )


def groups(material: Material) -> Iterator[Panel]:
    """Yield the values of each tag's groups, a figure for each suite and measure."""
    parts: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in material.results:
        tag, equals, name = (row.get("group") or "").partition("=")
        if equals and row["value"] is not None:
            parts[row["suite"], row["measure"], tag].append({**row, "name": name})
    for (suite, measure, tag), found in parts.items():
        people = _people(material.suites.get(suite), tag) if "Accuracy" in measure or "Direction" in measure else {}
        rows = [
            {"group": row["name"], "model": model_name(row)}
            | {name: row[name] for name in ("value", "low", "high", "n")}
            | {"chance": chance(measure), "human": people.get(row["name"])}
            for row in found
        ]
        yield Panel(f"{measure} by {tag}, {suite}", rows, _group_alt(rows, measure, tag))


def _group_alt(rows: Sequence[Row], measure: str, tag: str) -> str:
    lowest, highest = (pick(rows, key=lambda row: row["value"]) for pick in (min, max))
    count = len({row["group"] for row in rows})
    return (
        f"{measure} of {listed([row['model'] for row in rows])} in {count} groups by {tag}: "
        f"from {lowest['value']:.3f} ({lowest['model']}, {lowest['group']}) "
        f"to {highest['value']:.3f} ({highest['model']}, {highest['group']})."
    )


def _people(suite: Suite | None, tag: str) -> Mapping[str, float]:
    """Return the share of each group's rated contrasts that people's mean ratings put in order."""
    agreed: dict[str, list[bool]] = defaultdict(list)
    for each in suite.contrasts if suite else ():
        assert suite is not None
        better, worse = (suite.by_id[name].rating for name in (each.better, each.worse))
        if better is not None and worse is not None and tag in each.tags:
            agreed[each.tags[tag]].append(better > worse)
    return {name: sum(found) / len(found) for name, found in agreed.items()}


def by_group(rows: Sequence[Row]) -> Chart:
    """Return dots with intervals: groups below each other, models beside each other within a group."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    step = 11 if len(models) < 4 else 8
    y = alt.Y("group:N", title=None, sort=None)
    offset = alt.YOffset("model:N", sort=None)
    base = chart().encode(y=y, yOffset=offset, color=alt.Color("model:N", title=None, sort=None))
    shown = ["group:N", "model:N", "value:Q", "low:Q", "high:Q", "n:Q"]
    x = alt.X("value:Q", title="value", scale=alt.Scale(zero=False))
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title="value"), x2="high:Q"),
        base.mark_point(filled=True, size=36, opacity=1).encode(
            x=x, shape=alt.Shape("model:N", legend=None, sort=None), tooltip=shown
        ),
    ]
    if rows[0]["chance"] is not None:
        layers.insert(0, chart().mark_rule(strokeDash=[4, 3]).encode(x="min(chance):Q"))
    if any(row["human"] is not None for row in rows):
        people = chart().mark_tick(thickness=3, size=step * len(models) + 4).encode(y=y, x="mean(human):Q")
        layers.append(people.encode(tooltip=["group:N", alt.Tooltip("mean(human):Q", title="people")]))
    return alt.layer(*layers).properties(width="container", height={"step": step, "for": "offset"})


def differences(material: Material) -> Iterator[Panel]:
    """Yield the differences of two models, a figure for each measure."""
    parts: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in material.comparisons:
        if row["difference"] is not None:
            parts[row["suite"], row["measure"], row["first"]].append(row)
    for (suite, measure, first), found in parts.items():
        rows = [
            {
                "group": (row.get("group") or "all").partition("=")[2] or row.get("group") or "all",
                "against": row["second"],
            }
            | {name: row.get(name) for name in ("difference", "low", "high", "p", "holm", "n")}
            for row in found
        ]
        positive = sum(row["difference"] > 0 for row in rows)
        said = f"{len(rows)} differences of {measure}; {first} is better in {positive} of them."
        yield Panel(f"{first} against others: {measure}, {suite}", rows, said)


def difference(rows: Sequence[Row]) -> Chart:
    """Return differences with intervals, around a line at 0."""
    base = chart().encode(
        y=alt.Y("group:N", title=None, sort=None),
        yOffset=alt.YOffset("against:N", sort=None),
        color=alt.Color("against:N", title="against", sort=None),
    )
    shown = ["group:N", "against:N", "difference:Q", "low:Q", "high:Q", "p:Q", "holm:Q", "n:Q"]
    zero = chart().mark_rule(strokeDash=[4, 3]).encode(x=alt.datum(0))
    lines = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title="difference"), x2="high:Q")
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(x="difference:Q", tooltip=shown)
    return alt.layer(zero, lines, dots).properties(width="container", height={"step": 14, "for": "offset"})
