"""What the tests of reports share: a run with rows of every kind, made up, with text that must never be executed."""

from __future__ import annotations

import json
import random
from pathlib import Path

from acceptability.types import Contrast, Sentence, Suite

ATTACK = "<script>alert(1)</script>"
FORMULA = "=cmd()"
MODELS = ("alpha", "beta", f"gamma {ATTACK}")


def suite() -> Suite:
    """Forty rated pairs in four groups; two of them are attacks."""
    sentences, contrasts = [], []
    for index in range(40):
        texts = (f"Cats sleep {index}.", f"Cats sleeps {index}.")
        texts = {0: (ATTACK, "</script><img src=x onerror=alert(1)>"), 1: (FORMULA, "@SUM(1)\u2028x")}.get(index, texts)
        tags = {"phenomenon": f"p{index % 4}" if index else ATTACK}
        for role, text, rating in zip(("good", "bad"), texts, (0.8 - index / 80, -0.6), strict=True):
            sentences.append(Sentence(f"s{index}/{role}", text, int(role == "good"), rating, tags=tags))
        contrasts.append(Contrast(f"s{index}/good", f"s{index}/bad", tags))
    return Suite("mine", tuple(sentences), tuple(contrasts))


def run(folder: Path) -> Path:
    """A folder as of a saved run, with results, groups, units of pairs with ratings, and units of sentences."""
    folder.mkdir(parents=True)
    whole, draw = suite(), random.Random(1)
    results, units = [], []
    for model in MODELS:
        for measure in ("PairAccuracy(ties=0.0)", "ADC(delta=0.5, standardise=True, tie='positive')", "PBC()"):
            results.append(_result(whole, measure, model, None, 0.4 + draw.random() / 2))
        groups = sorted({each.tags["phenomenon"] for each in whole.contrasts})
        results += [_result(whole, "PairAccuracy(ties=0.0)", model, f"phenomenon={each}", 0.6) for each in groups]
        for each in whole.contrasts:
            gap, about = draw.gauss(0.5, 1), {"suite": "mine", "model": model, "reduction": "lp()", "unit": each.id}
            pair = {"gap": gap, "tag/phenomenon": each.tags["phenomenon"]}
            units.append({**about, "measure": "PairAccuracy(ties=0.0)", "correct": float(gap > 0), **pair})
            human = {"human_gap": 1.4, "met": float(abs(gap - 1.4) < 0.5)}
            units.append({**about, "measure": "ADC(delta=0.5, standardise=True, tie='positive')", **human, **pair})
        for each in whole.sentences:
            about = {"suite": "mine", "measure": "PBC()", "model": model, "reduction": "lp()", "unit": each.id}
            units.append({**about, "score": -draw.uniform(5, 30), "label": float(each.label or 0)})
    told = {"id": "made-up", "command": "evaluate", "arguments": "evaluate mine.csv", "made": "now", "version": "0"}
    told |= {"signatures": [row["signature"] for row in results]}
    for name, rows in (("run", told), ("results", results), ("units", units)):
        (folder / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def _result(whole: Suite, measure: str, model: str, group: str | None, value: float) -> dict[str, object]:
    signature = f"{measure}|suite:{whole.signature}|model:causal:gpt2@1({model}).lp()|n:40|ci:percentile(0.95,by=row,)"
    signature += f"|group:{group}" if group else ""
    about = {"measure": measure, "model": model, "reduction": "lp()", "suite": whole.name, "group": group}
    ends = {"low": value - 0.05, "high": value + 0.05, "n": 40, "reason": None, "notes": ""}
    return {**about, "value": value, **ends, "signature": signature}


def cells() -> list[dict[str, object]]:
    """Cells as studies give them: a heat map, bars, a learning curve, layers."""
    grid = [("Figure 1", f"licensor {i}", f"test {j}", i * j / 20 - 0.1) for i in range(4) for j in range(4)]
    bars = [
        ("Figure 4", f"ours: {feature}", f"MCC, {name}", value)
        for feature in ("every sentence", "Simple", "Adjunct")
        for name, value in (("mean", 0.4), ("standard deviation", 0.05))
    ]
    curve = [("Figure 3", f"cbow, {size}", f"MCC, seed {seed}", size / 9000) for size in (100, 1000) for seed in (1, 2)]
    layers = [("Figure 5", "NPI in scope", f"layer {index}", index / 14) for index in range(1, 13)]
    return [
        {"table": table, "row": row, "column": column, "paper": None, "ours": value}
        | {"source": "made up", "agrees": None, "note": FORMULA}
        for table, row, column, value in (*grid, *bars, *curve, *layers)
    ]


def contrasts() -> dict[str, object]:
    """What ``contrasts --json`` prints."""
    draw = random.Random(2)
    rows = [
        {"contrast": f"s{index}/good > s{index}/bad", "edit": ("substitution", "deletion")[index % 2]}
        | {"better_surprisal_bits": draw.uniform(1, 9), "worse_surprisal_bits": draw.uniform(1, 12)}
        for index in range(40)
    ]
    groups = [
        {"group": name, "n": 20, "directionality": 0.7, "repulsion": 0.3, "class": "highly confused"}
        for name in ("all", ATTACK)
    ]
    return {"groups": groups, "contrasts": rows, "signature": "contrasts|suite:mine+targets(left)#1|model:masked:b@1"}


def correlations() -> list[dict[str, object]]:
    """Rows as ``correlate`` gives them."""
    pairs = (("people", "alpha", 0.5), ("people", "beta", -0.2), ("alpha", "beta", 0.9))
    return [{"first": one, "second": two, "r": r, "p": 0.01, "holm": 0.02, "n": 40} for one, two, r in pairs]


def comparisons() -> list[dict[str, object]]:
    """Rows as ``compare`` gives them."""
    about = {"measure": "PBC()", "suite": "mine", "first": "alpha", "second": "beta", "signature": "PBC()|suite:mine"}
    numbers = {"first_value": 0.5, "second_value": 0.4, "difference": 0.1, "low": 0.0, "high": 0.2, "p": 0.04, "n": 40}
    return [{**about, **numbers, "group": group, "holm": 0.08} for group in (None, "phenomenon=p1")]


def everything(folder: Path) -> list[str]:
    """Write one run and files of the other kinds, and return where they are."""
    sources = [str(run(folder / "run"))]
    more = {"cells": cells(), "contrasts": contrasts(), "correlations": correlations(), "comparisons": comparisons()}
    more["sizes"] = [{"size": 10**index, "value": index / 5, "model": "alpha"} for index in range(1, 4)]
    more["layers"] = [{"layer": index, "value": 0.5 + index / 30, "model": "alpha"} for index in range(12)]
    for name, rows in more.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(rows), encoding="utf-8")
        sources.append(str(path))
    return sources
