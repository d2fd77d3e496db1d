"""Training speed of the recurrent recipes, in words per second.

    python -m bench.recurrent --device cuda --seconds 30
    python -m bench.recurrent --device cuda --seconds 30 --kinds lstm --set batch_words=32768 --set hidden=1200
    python -m bench.recurrent --device cpu --seconds 5 --corpus text.txt --set hidden=100 --set layers=1

Each recipe trains in the loop of ``acceptability train``, on a given text, or on random words: a vocabulary of 60,000
with frequencies by Zipf's law, in sentences of about 20 words. The first seconds, in which kernels are chosen, are not
counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.text.words import END
from acceptability.train.checkpoint import CheckpointManager
from acceptability.train.corpus import Corpus, CorpusCounts, encode_corpus, open_corpus
from acceptability.train.recipe import TrainingJob, TrainingProgress, read_options
from acceptability.train.recurrent_recipes import LSTMRecipe, QRNNRecipe, RNNRecipe

KINDS = {"rnn": RNNRecipe, "lstm": LSTMRecipe, "qrnn": QRNNRecipe}
_SENTENCES = 250_000
_WARMUP_SECONDS = 3.0


@dataclass(frozen=True)
class Text:
    """A training text: the ids of its words, and the frequency of each."""

    ids: NDArray[np.int32]
    counts: NDArray[np.int64]


def draw_text(words: int = 60_003, sentences: int = _SENTENCES) -> Text:
    """Return sentences of random words."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(2.9, 0.6, sentences), 2, 250).astype(np.int64)
    ranks = 1 / np.arange(3, words + 1)
    ids = 3 + np.searchsorted(np.cumsum(ranks / ranks.sum()), random.random(int(lengths.sum())))
    ids = np.minimum(ids, words - 1)
    ids[np.cumsum(lengths) - 1] = END
    return Text(ids.astype(np.int32), np.bincount(ids, minlength=words))


def read_text(paths: list[Path], recipe: LSTMRecipe) -> Text:
    """Return the words of text files."""
    encoded = encode_corpus(open_corpus(paths), recipe.vocabulary, recipe.words, lower=recipe.lower)
    return Text(encoded.ids, encoded.counts)


def measure_training(recipe: LSTMRecipe, text: Text, seconds: float) -> dict[str, Any]:
    """Train for some seconds, and return the speed and the memory."""
    import torch

    from acceptability.train.recurrent_task import build_network, build_training_task, plan_batches
    from acceptability.train.trainer import ProcessGroup, TrainingSchedule, train_network

    process_group, times_and_words = ProcessGroup(), list[tuple[float, int]]()

    def record(progress: TrainingProgress) -> None:
        times_and_words.append((time.monotonic(), progress.tokens))

    network = build_network(recipe, text.counts).to(process_group.device)
    task = build_training_task(
        recipe, network, plan_batches(recipe, text.ids, process_group.size), text.ids, process_group.device
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        job = TrainingJob(
            Corpus(()),
            CorpusCounts("", 1, 1),
            out,
            None,
            checkpoints=CheckpointManager(out / "checkpoint", {}),
            report_progress=record,
        )
        result = train_network(
            task,
            TrainingSchedule(minutes=(seconds + _WARMUP_SECONDS) / 60, clip=recipe.gradient_clip, save_seconds=1e9),
            job,
            process_group,
        )
    start = times_and_words[0][0] + _WARMUP_SECONDS
    counted = [(now, words) for now, words in times_and_words if now >= start] or times_and_words
    (begin, first), (end, last) = counted[0], counted[-1]
    memory = torch.cuda.max_memory_allocated() / 2**30 if process_group.device.type == "cuda" else None
    return {
        "recipe": recipe.kind,
        "output": recipe.output,
        "device": torch.cuda.get_device_name() if process_group.device.type == "cuda" else "cpu",
        "weights": sum(parameter.numel() for parameter in network.parameters()),
        "words/s": round((last - first) / (end - begin)) if end > begin else None,
        "loss": round(result.loss, 3),
        "GiB": round(memory, 1) if memory else None,
    }


def main() -> None:
    """Print one line of JSON for each recipe."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options.add_argument("--seconds", type=float, default=30.0)
    options.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options.add_argument("--corpus", nargs="+", type=Path, default=[])
    options.add_argument("--set", action="append", default=[], dest="changes", help="an option of the recipes")
    chosen = options.parse_args()
    if chosen.device == "cpu":
        os.environ["ACCELERATE_USE_CPU"] = "true"
    import torch

    if chosen.device == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no GPU here: add --device cpu")
    for kind in chosen.kinds:
        recipe = read_options(KINDS[kind], chosen.changes)
        assert isinstance(recipe, LSTMRecipe)
        text = read_text(chosen.corpus, recipe) if chosen.corpus else draw_text(recipe.vocabulary + 3)
        print(json.dumps(measure_training(recipe, text, chosen.seconds)), flush=True)


if __name__ == "__main__":
    main()
