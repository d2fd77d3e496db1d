"""Measure the models that come with the package, and write the results into their model cards.

    python -m bench.embedded trigram mini-causal

Needs the data sets (``ACCEPTABILITY_DATA``, or a network). The section "Measured" of each card is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import acceptability
from acceptability import Bootstrap, Result, evaluate, load_suite
from acceptability.models import list_named_models
from acceptability.papers.niu_penn.pbc_tables import load_labelled_cola
from acceptability.report.terminal import format_number

EMBEDDED = Path(acceptability.__file__).parent / "embedded"
_HEADING = "## Measured"
_LI_ADGER = ("PairAccuracy", "ADC(delta=0.5)", "ADC(delta=1)", "ADC(delta=5)", "Pearson", "DeltaCorrelation")


def main(names: Sequence[str]) -> None:
    """Measure each model and update its card."""
    for name in names or sorted(path.name for path in EMBEDDED.iterdir() if path.is_dir()):
        card = EMBEDDED / name / "README.md"
        unchanged = card.read_text(encoding="utf-8").partition(_HEADING)[0].rstrip()
        card.write_text(f"{unchanged}\n\n{_HEADING}\n\n{format_results(name)}", encoding="utf-8")
        print(f"{name}: {card}", file=sys.stderr)


def format_results(model: str) -> str:
    """Return the results of a model on three suites, as Markdown."""
    bootstrap = Bootstrap(1000)
    blimp = evaluate("blimp", [model], measure=["PairAccuracy"], by="phenomenon", bootstrap=bootstrap)
    rated = evaluate("li_adger", [model], measure=_LI_ADGER, bootstrap=bootstrap)
    cola = load_labelled_cola()
    labelled = [
        result
        for reduction in ("lp", "mean_lp", _slor(model))
        for result in evaluate(cola, [model], reduce=[reduction], measure=["PBC"], bootstrap=bootstrap)
    ]
    parts = [
        f"With acceptability {acceptability.__version__}; 95 % intervals from 1,000 resamples.",
        "**BLiMP**, pair accuracy (a tie counts as wrong):",
        _table(
            "phenomenon",
            [((result.group or "all").partition("=")[2] or result.group or "all", result) for result in blimp],
        ),
        *_plain(model, bootstrap),
        f"**LI-Adger**, {len(load_suite('li_adger').contrasts):,} pairs:",
        _table("measure", [(f"`{result.measure}`", result) for result in rated]),
        "**CoLA**, point-biserial correlation over the training set and both development sets:",
        _table("reduction", [(f"`{result.reduction}`", result) for result in labelled]),
        "\n".join(f"- `{result.signature}`" for result in (*blimp[:1], *rated, *labelled)),
    ]
    return "\n\n".join(parts).replace(str(EMBEDDED), "embedded") + "\n"


def _plain(model: str, bootstrap: Bootstrap) -> list[str]:
    """Return the accuracy of a masked model on BLiMP if one token is masked at a time."""
    spec = list_named_models()[model].make_spec()
    if "variant='word_l2r'" not in spec:
        return []
    (result,) = evaluate("blimp", [spec.replace("word_l2r", "pll")], measure=["PairAccuracy"], bootstrap=bootstrap)
    interval = f"{format_number(result.low)} to {format_number(result.high)}"
    return [f"With plain pseudo-log-likelihood (`variant='pll'`) it is {format_number(result.value)} ({interval})."]


def _slor(model: str) -> str:
    return f"slor(unigrams={str(EMBEDDED / model / 'unigrams.tsv')!r})"


def _table(heading: str, rows: Sequence[tuple[str, Result]]) -> str:
    lines = [f"| {heading} | value | interval | n |", "| --- | ---: | --- | ---: |"]
    for name, result in rows:
        interval = f"{format_number(result.low)} to {format_number(result.high)}" if result.low is not None else "–"
        lines.append(f"| {name} | {format_number(result.value)} | {interval} | {result.n:,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
