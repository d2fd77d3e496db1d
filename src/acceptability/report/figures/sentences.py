"""Sentences one by one: surprisal by class and set (Niu and Penn 2020), ratings in four boxes (Park et al. 2021)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log

import altair as alt

from acceptability.report.figures.panel import Chart, Panel, box, chart, faceted, listed, quartiles
from acceptability.report.gather import Material, Row, model_name

STRIPS = "Each point is a sentence: its surprisal in bits, by class and, where sentences come in sets, by set."
RATINGS = (
    "People's ratings of the acceptable and unacceptable sentences of contrasts that the model gets right and wrong: "
    "boxes are quartiles, whiskers reach the furthest value within 1.5 times the box."
)
_MOST = 1500
"""How many sentences of a model a strip plot shows; more would only be a blot."""

_MOST_POINTS = 100_000
"""How many points all strip plots of a page show together, so that it stays a page."""

_LABELS = {0.0: "unacceptable", 1.0: "acceptable"}


def strips(material: Material) -> Iterator[Panel]:
    """Yield the surprisals of labelled sentences, a figure for each suite."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    chosen: dict[str, str] = {}
    for row in material.units:
        is_plain = "score" in row and "label" in row and row.get("reduction") in ("lp()", "")
        if is_plain and chosen.setdefault(row["suite"], row["measure"]) == row["measure"]:
            found[row["suite"]][model_name(row)].append(row)
    most = min(_MOST, max(1, _MOST_POINTS // max(1, sum(map(len, found.values())))))
    for suite, models in found.items():
        kept = _sample(next(iter(models.values())), most)
        rows = [row for model, members in models.items() for row in _points(model, members, kept)]
        total = max(map(len, models.values()))
        note = f"A sample of {len(kept):,} of {total:,} sentences (seed 0)." if len(kept) < total else ""
        classes = listed([row["class"] for row in rows])
        said = f"Strip plot of {len(rows)} surprisals of {listed([*models])}; the classes are {classes}."
        yield Panel(f"Surprisal by class, {suite}", rows, said, note)


def _sample(rows: Sequence[Row], most: int) -> set[str]:
    """Return the ids of sentences that are shown: whole sets, by a seed."""
    sets: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        sets[str(row.get("tag/set", row["unit"]))].append(row["unit"])
    names = list(sets)
    random.Random(0).shuffle(names)
    kept: set[str] = set()
    for name in names:
        if kept and len(kept) + len(sets[name]) > most:
            break
        kept.update(sets[name])
    return kept


def _points(model: str, members: Sequence[Row], kept: set[str]) -> Iterator[Row]:
    spread = random.Random(0)
    for row in members:
        if row["unit"] in kept:
            yield {
                "model": model,
                "sentence": row["unit"],
                "set": row.get("tag/set"),
                "class": row.get("tag/class") or _LABELS[row["label"]],
                "surprisal_bits": round(-row["score"] / log(2), 2),
                "jitter": round(spread.random(), 3),
            }


def strip(rows: Sequence[Row]) -> Chart:
    """Return points by set and class, or by class alone, side by side for each model."""
    shown = ["sentence:N", "class:N", "surprisal_bits:Q"]
    colour = alt.Color("class:N", title=None)
    y = alt.Y("surprisal_bits:Q", title="surprisal (bits)", scale=alt.Scale(zero=False))
    base = chart().mark_circle(size=14, opacity=0.6).encode(y=y, color=colour, tooltip=shown)
    if any(row["set"] is not None for row in rows):
        points = base.encode(x=alt.X("set:N", title="set", axis=alt.Axis(labels=False, ticks=False))).properties(
            width=330
        )
    else:
        x = alt.X("class:N", title=None, axis=alt.Axis(labelAngle=0))
        points = base.encode(x=x, xOffset="jitter:Q").properties(width=220)
    return faceted(points.properties(height=240), "model", columns=3)


def ratings(material: Material) -> Iterator[Panel]:
    """Yield the quartiles of ratings in four classes, a figure for each suite with rated contrasts."""
    found: dict[str, dict[tuple[str, str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    chosen: dict[str, str] = {}
    rated = {name: _rated(material, name) for name in material.suites}
    for row in material.units:
        pair = rated.get(row.get("suite", ""), {}).get(row.get("unit", ""))
        if pair and "correct" in row and chosen.setdefault(row["suite"], row["measure"]) == row["measure"]:
            judged = "right" if row["correct"] > 0.5 else "wrong"
            for sentence, rating in zip(("acceptable", "unacceptable"), pair, strict=True):
                found[row["suite"]][model_name(row), judged, sentence].append(rating)
    for suite, parts in found.items():
        rows = [
            {"model": model, "contrasts": judged, "sentences": sentence, "what": f"{judged}, {sentence}"}
            | quartiles(values)
            for (model, judged, sentence), values in parts.items()
        ]
        said = "; ".join(f"{row['model']} {row['what']} {row['median']:.2f}" for row in rows[:12])
        yield Panel(f"Ratings, {suite}", rows, f"Box plots in four classes. Medians: {said}.")


def _rated(material: Material, name: str) -> Mapping[str, tuple[float, float]]:
    suite = material.suites[name]
    pairs = {each.id: (suite.by_id[each.better].rating, suite.by_id[each.worse].rating) for each in suite.contrasts}
    return {key: (one, two) for key, (one, two) in pairs.items() if one is not None and two is not None}


def four_way(rows: Sequence[Row]) -> Chart:
    """Return four boxes for each model."""
    boxes = box(
        alt.X("contrasts:N", title="contrasts", sort=["right", "wrong"], axis=alt.Axis(labelAngle=0)),
        "rating",
        alt.Color("sentences:N", title=None),
        alt.XOffset("sentences:N"),
    )
    layers = boxes.properties(width={"step": 30, "for": "offset"}, height=240)
    return faceted(layers, "model", columns=4)
