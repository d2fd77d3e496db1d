"""Made-up scores of five models on as many pairs as BLiMP has: 67 paradigms of 1,000."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np

from acceptability.report.page import build_browser
from acceptability.report.report_data import ReportData, attach_suites, load_report_data
from acceptability.store.runs import save_run
from acceptability.store.scores import ScoreStore
from acceptability.store.unit_rows import UnitRows
from acceptability.types import Contrast, Query, Sentence, Suite, TokenScores, Units

MODELS = tuple(f"model-{index}" for index in range(5))


def suite(paradigms: int = 67, pairs: int = 1000) -> Suite:
    """Sentences of BLiMP's length, two a pair."""
    sentences, contrasts = [], []
    for paradigm in range(paradigms):
        tags = {
            "paradigm": f"paradigm_number_{paradigm}",
            "phenomenon": f"phenomenon {paradigm % 12}",
            "field": "syntax",
        }
        for index in range(pairs):
            name = f"{paradigm}/{index}"
            text = f"The teachers who know customer {index} never annoyed pedestrian {paradigm}."
            sentences += [Sentence(f"{name}/good", text, 1), Sentence(f"{name}/bad", text.replace("know", "knows"), 0)]
            contrasts.append(Contrast(f"{name}/good", f"{name}/bad", tags))
    return Suite("blimp-like", tuple(sentences), tuple(contrasts))


def material(whole: Suite) -> ReportData:
    """The material of a run of five models on the suite, by paradigm, saved and read again."""
    draw, results, parts = random.Random(0), [], []
    paradigms = list(dict.fromkeys(each.tags["paradigm"] for each in whole.contrasts))
    ids = tuple(each.id for each in whole.contrasts)
    tags = tuple(each.tags for each in whole.contrasts)
    for model in MODELS:
        about = {"measure": "PairAccuracy(ties=0.0)", "model": model, "reduction": "lp()", "suite": whole.name}
        signed = f"PairAccuracy(ties=0.0)|suite:{whole.signature}|model:causal:{model}@1().lp()|n:67000"
        for group in (None, *(f"paradigm={each}" for each in paradigms)):
            value = draw.uniform(0.5, 0.95)
            ends = {"value": value, "low": value - 0.03, "high": value + 0.03, "n": 1000, "reason": None, "notes": ""}
            results.append(
                {**about, "group": group, **ends, "signature": signed + (f"|group:{group}" if group else "")}
            )
        gaps = np.array([draw.gauss(1, 2) for _ in ids])
        parts.append((Units(ids, {"gap": gaps, "correct": (gaps > 0).astype(float)}, tags), about))
    run = save_run("evaluate", "evaluate blimp", results, UnitRows(parts), [])
    found = attach_suites(load_report_data([str(run.folder)]), [whole])
    _store_tokens(found)
    return found


def _store_tokens(found: ReportData) -> None:
    """Keep surprisals of the tokens of the pairs that a page will hold, as if models had given them."""
    shown = build_browser(found)
    assert shown is not None
    texts = sorted({text for each in shown.pairs for text in each.texts})
    with ScoreStore() as store:
        for model in MODELS:
            store.add(f"causal:{model}@1()", [(Query(text).key, _said(text)) for text in texts])


def _said(text: str) -> TokenScores:
    spans = tuple(each.span() for each in re.finditer(r"\S+", text))
    logprobs = np.array([-(start % 13) - 0.37 for start, _ in spans], np.float32)
    return TokenScores(text, tuple(text[start:end] for start, end in spans), spans, logprobs)


def write(path: Path) -> Path:
    """Write the report of five models on 67,000 pairs."""
    from acceptability.report.page import ReportHeading, write_report

    return write_report(path, ReportHeading("Five models on 67 paradigms"), material(suite()))
