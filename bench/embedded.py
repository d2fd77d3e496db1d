"""Measure the models that come with the package, and write what they reach into their cards.

    python -m bench.embedded trigram mini-causal

Needs the data sets (``ACCEPTABILITY_DATA``, or a network). What stands in a card under "Measured" is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import acceptability
from acceptability import Bootstrap, Result, evaluate, load_suite
from acceptability.models import delivered
from acceptability.report.table import number
from acceptability.studies.niu_penn_cola import labelled_cola

EMBEDDED = Path(acceptability.__file__).parent / "embedded"
_HEADING = "## Measured"
_LI_ADGER = ("PairAccuracy", "ADC(delta=0.5)", "ADC(delta=1)", "ADC(delta=5)", "Pearson", "DeltaCorrelation")


def main(names: Sequence[str]) -> None:
    """Measure each model and write its card anew."""
    for name in names or sorted(path.name for path in EMBEDDED.iterdir() if path.is_dir()):
        card = EMBEDDED / name / "README.md"
        told = card.read_text(encoding="utf-8").partition(_HEADING)[0].rstrip()
        card.write_text(f"{told}\n\n{_HEADING}\n\n{measured(name)}", encoding="utf-8")
        print(f"{name}: {card}", file=sys.stderr)


def measured(model: str) -> str:
    """Return what a model reaches on three suites, as Markdown."""
    how = Bootstrap(1000)
    blimp = evaluate("blimp", [model], measures=["PairAccuracy"], by="phenomenon", bootstrap=how)
    rated = evaluate("li_adger", [model], measures=_LI_ADGER, bootstrap=how)
    cola = labelled_cola()
    labelled = [
        result
        for reduction in ("lp", "mean_lp", _slor(model))
        for result in evaluate(cola, [model], reductions=[reduction], measures=["PBC"], bootstrap=how)
    ]
    parts = [
        f"With acceptability {acceptability.__version__}; 95 % intervals from 1,000 resamples.",
        "**BLiMP**, pair accuracy (a tie counts as wrong):",
        _table(
            "phenomenon",
            [((result.group or "all").partition("=")[2] or result.group or "all", result) for result in blimp],
        ),
        *_plain(model, how),
        f"**LI-Adger**, {len(load_suite('li_adger').contrasts):,} pairs:",
        _table("measure", [(f"`{result.measure}`", result) for result in rated]),
        "**CoLA**, point-biserial correlation over the training set and both development sets:",
        _table("reduction", [(f"`{result.reduction}`", result) for result in labelled]),
        "\n".join(f"- `{result.signature}`" for result in (*blimp[:1], *rated, *labelled)),
    ]
    return "\n\n".join(parts).replace(str(EMBEDDED), "embedded") + "\n"


def _plain(model: str, how: Bootstrap) -> list[str]:
    """Return what a masked model reaches on BLiMP when it hides one token at a time."""
    spelling = delivered()[model].spelling()
    if "variant='word_l2r'" not in spelling:
        return []
    (found,) = evaluate("blimp", [spelling.replace("word_l2r", "pll")], measures=["PairAccuracy"], bootstrap=how)
    interval = f"{number(found.low)} to {number(found.high)}"
    return [f"With plain pseudo-log-likelihood (`variant='pll'`) it is {number(found.value)} ({interval})."]


def _slor(model: str) -> str:
    return f"slor(unigrams={str(EMBEDDED / model / 'unigrams.tsv')!r})"


def _table(heading: str, rows: Sequence[tuple[str, Result]]) -> str:
    lines = [f"| {heading} | value | interval | n |", "| --- | ---: | --- | ---: |"]
    for name, result in rows:
        interval = f"{number(result.low)} to {number(result.high)}" if result.low is not None else "–"
        lines.append(f"| {name} | {number(result.value)} | {interval} | {result.n:,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
