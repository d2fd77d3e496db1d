"""Measure what the option ``unknown`` of word models does, and print the table of docs/why/numbers.md.

    python -m bench.unknown_words

Needs the data sets (``ACCEPTABILITY_DATA``, or a network). About ten minutes on two cores.
"""

from __future__ import annotations

import sys

from acceptability import Bootstrap, evaluate, load_suite
from acceptability.errors import ModelError
from acceptability.models.unknown_words import POLICIES
from acceptability.report.terminal import format_number
from acceptability.types import Suite

MODELS = ("trigram", "mini-lstm")
MEASURES = (("blimp", "PairAccuracy"), ("li_adger", "PairAccuracy"), ("cola/train", "Accuracy"))


def main() -> None:
    """Print a row for each model and policy."""
    suites = {name: load_suite(name) for name, _ in MEASURES}
    print("| model | `unknown=` | BLiMP | LI-Adger | CoLA (train) |", "| --- | --- | --- | --- | --- |", sep="\n")
    for model in MODELS:
        for policy in POLICIES:
            cells = [format_cell(suites[name], model, policy, measure) for name, measure in MEASURES]
            print(f"| `{model}` | `'{policy}'` | {' | '.join(cells)} |", flush=True)


def format_cell(suite: Suite, model: str, policy: str, measure: str) -> str:
    """Return the value of a measure and the number of its rows; "refused" if a sentence has an unknown word."""
    try:
        (result,) = evaluate(suite, [f"{model}(unknown='{policy}')"], measure=[measure], bootstrap=Bootstrap(0))
    except ModelError as error:
        print(error, file=sys.stderr)
        return "refused"
    print(f"{result.signature}: {result.notes}", file=sys.stderr)
    return f"{format_number(result.value)} ({result.n:,})"


if __name__ == "__main__":
    main()
