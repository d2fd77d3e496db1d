"""Figures of single items: sentences and contrasts.

- Strip plots of surprisal by class and set (Niu and Penn 2020).
- Ratings of contrasts that a model gets right and wrong (Park, Park and Song 2021).
- Repulsion and directionality of contrasts on a target (Park, Park and Song 2021).
- Score differences (gaps) of models against those of humans, and ADC over delta (Vázquez Martínez 2021).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log, sqrt

import altair as alt
import numpy as np

from acceptability.measures.delta import adc_curve
from acceptability.measures.target_contrast import Cutoffs
from acceptability.report.figures.panel import (
    Chart,
    Panel,
    compute_quartiles,
    draw_box,
    facet_chart,
    join_names,
    make_chart,
)
from acceptability.report.report_data import ReportData, Row, format_model_name
from acceptability.types import Units

STRIPS_CAPTION = "Each point is a sentence: its surprisal in bits, by class and, where sentences come in sets, by set."
RATINGS_CAPTION = (
    "People's ratings of the acceptable and unacceptable sentences of contrasts that the model gets right and wrong: "
    "boxes are quartiles, whiskers reach the furthest value within 1.5 times the box."
)
# The largest number of sentences per model in a strip plot; more points would cover each other.
_MAX_SENTENCES = 1500
# The largest number of points in all strip plots of a page, which has to hold them all.
_MAX_POINTS = 100_000

_LABELS = {0.0: "unacceptable", 1.0: "acceptable"}


def make_strip_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the surprisals of labelled sentences for each suite."""
    rows_by_suite: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    measure_by_suite: dict[str, str] = {}
    for row in report_data.units:
        # Surprisal is the negative log-probability of the sentence; other reductions have other units.
        is_plain = "score" in row and "label" in row and row.get("reduction") in ("lp()", "")
        if is_plain and measure_by_suite.setdefault(row["suite"], row["measure"]) == row["measure"]:
            rows_by_suite[row["suite"]][format_model_name(row)].append(row)
    # The points of a page are shared among all models of all suites.
    max_sentences = min(_MAX_SENTENCES, max(1, _MAX_POINTS // max(1, sum(map(len, rows_by_suite.values())))))
    for suite, models in rows_by_suite.items():
        # The same sentences for all models, so that their plots can be compared.
        sampled_ids = _sample_sentences(next(iter(models.values())), max_sentences)
        rows = [row for model, members in models.items() for row in _iterate_points(model, members, sampled_ids)]
        total = max(map(len, models.values()))
        note = f"A sample of {len(sampled_ids):,} of {total:,} sentences (seed 0)." if len(sampled_ids) < total else ""
        classes = join_names([row["class"] for row in rows])
        alt_text = f"Strip plot of {len(rows)} surprisals of {join_names([*models])}; the classes are {classes}."
        yield Panel(f"Surprisal by class, {suite}", rows, alt_text, note)


def _sample_sentences(rows: Sequence[Row], max_sentences: int) -> set[str]:
    """Return the ids of a random sample of sentences: whole sets, with a fixed seed."""
    # Half a set would not show what sets are made for: the contrast within them.
    sets: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        sets[str(row.get("tag/set", row["unit"]))].append(row["unit"])
    names = list(sets)
    random.Random(0).shuffle(names)
    sampled_ids: set[str] = set()
    for name in names:
        # The first set is taken whatever its size, so that no plot is empty.
        if sampled_ids and len(sampled_ids) + len(sets[name]) > max_sentences:
            break
        sampled_ids.update(sets[name])
    return sampled_ids


def _iterate_points(model: str, members: Sequence[Row], sampled_ids: set[str]) -> Iterator[Row]:
    rng = random.Random(0)
    for row in members:
        if row["unit"] in sampled_ids:
            yield {
                "model": model,
                "sentence": row["unit"],
                "set": row.get("tag/set"),
                "class": row.get("tag/class") or _LABELS[row["label"]],
                # Two decimals, as many as a plot can show: the points are the largest data of a page.
                "surprisal_bits": round(-row["score"] / log(2), 2),
                # Spreads the points of one class sideways, so that equal surprisals do not cover each other.
                "jitter": round(rng.random(), 3),
            }


def draw_strips(rows: Sequence[Row]) -> Chart:
    """Return points by set and class, or by class alone, with a facet for each model."""
    tooltip = ["sentence:N", "class:N", "surprisal_bits:Q"]
    colour = alt.Color("class:N", title=None)
    # The axis does not start at 0: whole sentences have surprisals of 50 bits or more, and its lower part would be
    # empty.
    y = alt.Y("surprisal_bits:Q", title="surprisal (bits)", scale=alt.Scale(zero=False))
    base = make_chart().mark_circle(size=14, opacity=0.6).encode(y=y, color=colour, tooltip=tooltip)
    if any(row["set"] is not None for row in rows):
        # The names of hundreds of sets would overlap; the tooltip has them.
        points = base.encode(x=alt.X("set:N", title="set", axis=alt.Axis(labels=False, ticks=False))).properties(
            width=330
        )
    else:
        x = alt.X("class:N", title=None, axis=alt.Axis(labelAngle=0))
        points = base.encode(x=x, xOffset="jitter:Q").properties(width=220)
    return facet_chart(points.properties(height=240), "model", columns=3)


def make_rating_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the quartiles of ratings in four classes for each suite with rated contrasts."""
    ratings_by_suite: dict[str, dict[tuple[str, str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    measure_by_suite: dict[str, str] = {}
    rated = {name: _collect_rated_pairs(report_data, name) for name in report_data.suites}
    for row in report_data.units if any(rated.values()) else ():
        pair = rated.get(row.get("suite", ""), {}).get(row.get("unit", ""))
        if pair and "correct" in row and measure_by_suite.setdefault(row["suite"], row["measure"]) == row["measure"]:
            # A tie, which may earn half a point, is not right.
            verdict = "right" if row["correct"] > 0.5 else "wrong"
            for sentence, rating in zip(("acceptable", "unacceptable"), pair, strict=True):
                ratings_by_suite[row["suite"]][format_model_name(row), verdict, sentence].append(rating)
    for suite, parts in ratings_by_suite.items():
        rows = [
            {"model": model, "contrasts": verdict, "sentences": sentence, "what": f"{verdict}, {sentence}"}
            | compute_quartiles(values)
            for (model, verdict, sentence), values in parts.items()
        ]
        alt_text = "; ".join(f"{row['model']} {row['what']} {row['median']:.2f}" for row in rows[:12])
        yield Panel(f"Ratings, {suite}", rows, f"Box plots in four classes. Medians: {alt_text}.")


def _collect_rated_pairs(report_data: ReportData, name: str) -> Mapping[str, tuple[float, float]]:
    suite = report_data.suites[name]
    ratings = suite.ratings[suite.pairs]
    return {
        suite.contrasts[row].id: (float(ratings[row, 0]), float(ratings[row, 1]))
        for row in np.flatnonzero(~np.isnan(ratings).any(axis=1)).tolist()
    }


def draw_ratings(rows: Sequence[Row]) -> Chart:
    """Return four boxes for each model."""
    boxes = draw_box(
        alt.X("contrasts:N", title="contrasts", sort=["right", "wrong"], axis=alt.Axis(labelAngle=0)),
        "rating",
        alt.Color("sentences:N", title=None),
        alt.XOffset("sentences:N"),
    )
    layers = boxes.properties(width={"step": 30, "for": "offset"}, height=240)
    return facet_chart(layers, "model", columns=4)


REPULSION_CAPTION = (
    "Repulsion of contrasts that the model gets right and wrong: boxes are quartiles, whiskers reach the furthest "
    "value within 1.5 times the box, values beyond are not drawn."
)
INTERACTION_CAPTION = "The mean repulsion of contrasts that the model gets right and wrong, with standard errors."
CLASSES_CAPTION = (
    "Each point is a group of contrasts: how often the worse target is the more surprising one, and how far apart the "
    "two are. Dashed lines are the cut-offs between high, intermediate and low."
)

RepulsionKey = tuple[str, str, str]
"""Model, part and whether the contrast is right."""


def _collect_repulsions(report_data: ReportData) -> Mapping[RepulsionKey, list[float]]:
    """Return the repulsions of contrasts; parts are suites, or kinds of edits if there is only one suite."""
    rows = [*_iterate_target_rows(report_data.targets), *_iterate_unit_rows(report_data.units)]
    # Within one suite, the kinds of edits are what the paper compares.
    by_edit = len({suite for _, suite, *_ in rows}) == 1
    repulsions: dict[RepulsionKey, list[float]] = defaultdict(list)
    for model, suite, edit, is_right, value in rows:
        repulsions[model, edit if by_edit and edit else suite, "right" if is_right else "wrong"].append(value)
    return repulsions


def _iterate_target_rows(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, bool, float]]:
    for row in rows:
        better, worse = row["better_surprisal_bits"], row["worse_surprisal_bits"]
        # With two surprisals of 0, the relative difference is undefined.
        if better + worse > 0:
            repulsion = abs(better - worse) / (better + worse)
            yield (
                str(row.get("model", "")),
                str(row.get("suite", "")),
                str(row.get("edit", "")),
                worse > better,
                repulsion,
            )


def _iterate_unit_rows(rows: Sequence[Row]) -> Iterator[tuple[str, str, str, bool, float]]:
    for row in rows:
        # From the measures Repulsion and Directionality on a suite with targets.
        if "repulsion" in row and "better" in row and "worse" in row:
            edit = str(row.get("tag/edit", ""))
            yield format_model_name(row), row["suite"], edit, row["worse"] > row["better"], row["repulsion"]


def make_repulsion_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the quartiles of repulsion of right and of wrong contrasts."""
    repulsions = _collect_repulsions(report_data)
    rows = [
        {"model": model, "part": part, "contrasts": right} | compute_quartiles(values)
        for (model, part, right), values in repulsions.items()
    ]
    if rows:
        alt_text = "; ".join(f"{row['part']} {row['contrasts']} {row['median']:.2f}" for row in rows[:12])
        yield Panel(
            "Repulsion", rows, f"Box plots of {join_names([row['model'] for row in rows])}. Medians: {alt_text}."
        )


def draw_repulsion(rows: Sequence[Row]) -> Chart:
    """Return boxes for each part, of right and of wrong contrasts."""
    boxes = draw_box(
        alt.X("part:N", title=None, axis=alt.Axis(labelAngle=-25)),
        "repulsion",
        alt.Color("contrasts:N", title="contrasts", sort=["right", "wrong"]),
        alt.XOffset("contrasts:N", sort=["right", "wrong"]),
    )
    return facet_chart(boxes.properties(width={"step": 28, "for": "offset"}, height=240), "model", columns=2)


def make_interaction_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of mean repulsions, if there are right and wrong contrasts and at least two parts."""
    repulsions = _collect_repulsions(report_data)
    rows = [
        {"model": model, "part": part, "contrasts": right, "n": len(values), "mean": float(np.mean(values))}
        | _compute_error_interval(values)
        for (model, part, right), values in repulsions.items()
    ]
    if len({row["part"] for row in rows}) > 1 and len({row["contrasts"] for row in rows}) > 1:
        alt_text = "; ".join(f"{row['part']} {row['contrasts']} {row['mean']:.2f}" for row in rows[:12])
        yield Panel("Repulsion and correctness", rows, f"Interaction plot. Means: {alt_text}.")


def _compute_error_interval(values: Sequence[float]) -> dict[str, float | None]:
    """Return the mean minus and plus one standard error; None for a single contrast."""
    if len(values) < 2:
        return {"low": None, "high": None}
    # With n - 1, since the contrasts are a sample.
    middle, error = float(np.mean(values)), float(np.std(values, ddof=1)) / sqrt(len(values))
    return {"low": middle - error, "high": middle + error}


def draw_interaction(rows: Sequence[Row]) -> Chart:
    """Return a line over the parts for right contrasts, and one for wrong contrasts."""
    base = make_chart().encode(
        x=alt.X("part:N", title=None, axis=alt.Axis(labelAngle=-25)),
        color=alt.Color("contrasts:N", title="contrasts", sort=["right", "wrong"]),
    )
    y = alt.Y("mean:Q", title="mean repulsion", scale=alt.Scale(zero=False))
    lines = base.mark_line(point=True).encode(
        y=y, strokeDash=alt.StrokeDash("contrasts:N", legend=None, sort=["right", "wrong"])
    )
    errors = base.mark_rule().encode(y=alt.Y("low:Q", title="mean repulsion"), y2="high:Q")
    layers = alt.layer(errors, lines).properties(width=260, height=220)
    return facet_chart(layers, "model", columns=2)


def make_class_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the directionality and repulsion of groups."""
    rows = [
        {"model": row.get("model", ""), "group": row["group"], "n": row["n"], "class": row.get("class")}
        | {name: row[name] for name in ("directionality", "repulsion")}
        for row in report_data.groups
        if row["directionality"] is not None and row["repulsion"] is not None
    ]
    if rows:
        alt_text = "; ".join(f"{row['group']}: {row['class']}" for row in rows[:12])
        yield Panel("Directionality and repulsion", rows, f"Scatter of {len(rows)} groups. {alt_text}.")


def draw_classes(rows: Sequence[Row]) -> Chart:
    """Return groups as points, with the cut-offs between the classes as lines."""
    cutoffs = Cutoffs()
    dots = (
        make_chart()
        .mark_point(filled=True, size=60)
        .encode(
            # The whole range, so that the position relative to the cut-offs shows the class.
            x=alt.X("directionality:Q", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("repulsion:Q", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("class:N", title=None),
            shape=alt.Shape("model:N", title=None),
            tooltip=["group:N", "model:N", "directionality:Q", "repulsion:Q", "class:N", "n:Q"],
        )
    )
    across = [
        make_chart().mark_rule(strokeDash=[3, 3]).encode(x=alt.datum(cutoff))
        for cutoff in (cutoffs.accuracy_low, cutoffs.accuracy_high)
    ]
    along = [
        make_chart().mark_rule(strokeDash=[3, 3]).encode(y=alt.datum(cutoff))
        for cutoff in (cutoffs.repulsion_low, cutoffs.repulsion_high)
    ]
    return alt.layer(*across, *along, dots).properties(width="container", height=300)


SCATTER_CAPTION = (
    "Each point is a contrast: the model's gap between the better and the worse sentence, and people's. The colour of "
    "a square is the number of contrasts in it; the line is the best fit by least squares."
)
CURVE_CAPTION = (
    "ADC, the share of contrasts whose gap has people's direction and lies within delta of theirs, over delta; "
    "the value at the right end is the share with people's direction, whatever the distance."
)
# Rounded, since a sum of steps of 0.05 is not exactly 0.5, at which the description reads the curves.
_DELTAS = np.round(np.arange(0, 5.0001, 0.05), 2)


def _collect_gaps(report_data: ReportData) -> Mapping[tuple[str, str], Mapping[str, list[Row]]]:
    """Return the rows with the gaps of a model and of humans, by suite and measure, and then by model."""
    rows_by_suite: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    measure_by_suite: dict[str, str] = {}
    # One measure per suite: a standardised one if there is one, whose gaps of models and humans have the same unit.
    rows = [row for row in report_data.units if "human_gap" in row and "gap" in row]
    for row in sorted(rows, key=lambda row: not _is_standardised(str(row.get("measure")))):
        if measure_by_suite.setdefault(row["suite"], row["measure"]) == row["measure"]:
            rows_by_suite[row["suite"], row["measure"]][format_model_name(row)].append(row)
    return rows_by_suite


def _is_standardised(measure: str) -> bool:
    return measure.startswith("ADC") and "standardise=False" not in measure


def make_scatter_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of the gaps of a model and of humans for each suite."""
    for (suite, measure), models in _collect_gaps(report_data).items():
        unit = "z" if _is_standardised(measure) else "own unit"
        rows = [
            {
                "model": model,
                "contrast": row["unit"],
                "gap": round(row["gap"], 4),
                "human_gap": round(row["human_gap"], 4),
            }
            for model, model_rows in models.items()
            for row in model_rows
        ]
        alt_text = "; ".join(f"{model}: r = {_format_correlation(model_rows)}" for model, model_rows in models.items())
        note = f"Gaps of models are in {unit}s." if unit == "own unit" else "Both gaps are in z units."
        yield Panel(f"Gaps of models and people, {suite}", rows, f"Scatter of {len(rows)} points. {alt_text}.", note)


def _format_correlation(rows: Sequence[Row]) -> str:
    gaps = np.array([(row["gap"], row["human_gap"]) for row in rows]).T
    # NumPy would warn and return NaN.
    if gaps.shape[1] < 2 or np.ptp(gaps[0]) == 0 or np.ptp(gaps[1]) == 0:
        return "undefined"
    return f"{np.corrcoef(gaps)[0, 1]:.2f}"


def draw_scatter(rows: Sequence[Row]) -> Chart:
    """Return a scatter plot for each model over a heat map of its density, with the line of best fit."""
    x, y = alt.X("gap:Q", title="model's gap"), alt.Y("human_gap:Q", title="people's gap")
    bins = alt.Bin(maxbins=40)
    density = (
        make_chart()
        .mark_rect(opacity=0.9)
        .encode(
            x=alt.X("gap:Q", bin=bins, title="model's gap"),
            y=alt.Y("human_gap:Q", bin=bins, title="people's gap"),
            # Counts range from one to thousands, which a linear scale would show as white and one dark square.
            color=alt.Color("count():Q", title="contrasts", scale=alt.Scale(scheme="blues", type="symlog")),
        )
    )
    points = (
        make_chart()
        # Small and transparent: there are thousands of points over the heat map.
        .mark_circle(size=5, opacity=0.3, color="#555")
        .encode(x=x, y=y, tooltip=["contrast:N", "gap:Q", "human_gap:Q"])
    )
    line = (
        make_chart()
        .mark_line(color="#D55E00", strokeWidth=2.5)
        .encode(x=x, y=y)
        .transform_regression("gap", "human_gap")
    )
    layers = alt.layer(density, points, line).properties(width=260, height=220)
    # Models may have gaps in different units; those of humans are the same in every facet.
    return facet_chart(layers, "model", columns=3).resolve_scale(x="independent")


def make_curve_panels(report_data: ReportData) -> Iterator[Panel]:
    """Yield a panel of ADC over delta for each suite with standardised gaps."""
    for (suite, measure), models in _collect_gaps(report_data).items():
        if not _is_standardised(measure):
            continue
        # The curve must count ties as the measure does, whose options are in its name.
        tie = "sign" if "tie='sign'" in measure else "positive"
        rows = [
            {"model": model, "delta": delta, "adc": share}
            for model, model_rows in models.items()
            for delta, share in zip(
                _DELTAS.tolist(), adc_curve(_make_units(model_rows), _DELTAS, tie=tie).tolist(), strict=True
            )
        ]
        halves = "; ".join(f"{row['model']} {row['adc']:.3f}" for row in rows if row["delta"] == 0.5)
        yield Panel(
            f"ADC over delta, {suite}", rows, f"Rising curves of {join_names([*models])}. At delta 0.5: {halves}."
        )


def _make_units(rows: Sequence[Row]) -> Units:
    columns = {name: np.array([row[name] for row in rows], dtype=np.float64) for name in ("gap", "human_gap")}
    return Units(tuple(row["unit"] for row in rows), columns, ({},) * len(rows))


def draw_curve(rows: Sequence[Row]) -> Chart:
    """Return a line for each model."""
    # In steps, since a share changes only where delta reaches the distance of a contrast.
    return (
        make_chart()
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X("delta:Q", title="δ (z units)"),
            y=alt.Y("adc:Q", title="ADC", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("model:N", title=None, sort=None),
            strokeDash=alt.StrokeDash("model:N", title=None, sort=None),
            tooltip=["model:N", "delta:Q", "adc:Q"],
        )
        .properties(width="container", height=280)
    )
