"""The job of ``acceptability evaluate`` as a user of minicons would write it: score pairs, and bootstrap by group.

    python -m bench.minicons_command pairs.jsonl FOLDER --kind causal

It imports nothing of this package, and prints JSON: for each group, and for all pairs, the accuracy and its percentile
interval. A line of the file is a list of the better sentence, the worse one, and their group.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def bootstrap_accuracy(correct: Any, resamples: int, seed: int = 0) -> list[float]:
    """Return the share of right pairs, and the ends of its 95 % percentile interval.

    >>> bootstrap_accuracy(np.array([1.0, 1.0]), 10)
    [1.0, 1.0, 1.0]
    """
    rng = np.random.default_rng(seed)
    means = [correct[rng.integers(0, len(correct), len(correct))].mean() for _ in range(resamples)]
    bounds = np.percentile(means, [2.5, 97.5]).tolist() if means else []
    return [float(correct.mean()), *bounds]


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the pairs, and print the accuracies."""
    reader = argparse.ArgumentParser(prog="python -m bench.minicons_command")
    reader.add_argument("pairs", type=Path)
    reader.add_argument("folder")
    reader.add_argument("--kind", choices=("causal", "masked"), default="causal")
    reader.add_argument("--dtype", default="float32")
    reader.add_argument("--device", default="cpu")
    reader.add_argument("--batch", type=int, default=64)
    reader.add_argument("--resamples", type=int, default=1000)
    given = reader.parse_args(arguments)
    from bench.serving import Order
    from bench.worker_minicons import Minicons

    options = {} if given.kind == "causal" else {"metric": "original"}
    scorer = Minicons(Order(given.folder, given.dtype, given.device, 0, options))
    rows = [json.loads(line) for line in given.pairs.read_text(encoding="utf-8").splitlines()]
    texts = [text for better, worse, _ in rows for text in (better, worse)]
    scores = np.array(scorer.scores(texts, given.batch)).reshape(-1, 2)
    correct = (scores[:, 0] > scores[:, 1]).astype(float)
    groups = np.array([group for _, _, group in rows])
    accuracies = {str(group): bootstrap_accuracy(correct[groups == group], given.resamples) for group in set(groups)}
    print(json.dumps(accuracies | {"all": bootstrap_accuracy(correct, given.resamples)}))


if __name__ == "__main__":
    main()
