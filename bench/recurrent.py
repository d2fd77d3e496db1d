"""How many words a second recurrent recipes train on.

    python -m bench.recurrent --device cuda --seconds 30
    python -m bench.recurrent --device cuda --seconds 30 --kinds lstm --set batch=32768 --set hidden=1200
    python -m bench.recurrent --device cpu --seconds 5 --corpus text.txt --set hidden=100 --set layers=1

Each recipe trains in the loop that ``acceptability train`` uses, on given text, or on words drawn at random: 60,000, as
frequent as Zipf's law has them, in sentences of about 20. The first seconds, in which kernels are chosen, do not count.
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

from acceptability.models.vocabulary import END
from acceptability.train.checkpoint import Checkpoints
from acceptability.train.corpus import Corpus, Counts, open_corpus
from acceptability.train.options import read_options
from acceptability.train.recipe import Job
from acceptability.train.recurrent import LSTM, QRNN, RNN
from acceptability.train.tick import Tick
from acceptability.train.vocabulary import encode

KINDS = {"rnn": RNN, "lstm": LSTM, "qrnn": QRNN}
_SENTENCES = 250_000
_WARMING = 3.0


@dataclass(frozen=True)
class Text:
    """What is trained on: words as numbers, and how often each comes."""

    ids: NDArray[np.int32]
    counts: NDArray[np.int64]


def drawn(words: int = 60_003, sentences: int = _SENTENCES) -> Text:
    """Return sentences of words drawn at random."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(2.9, 0.6, sentences), 2, 250).astype(np.int64)
    ranks = 1 / np.arange(3, words + 1)
    ids = 3 + np.searchsorted(np.cumsum(ranks / ranks.sum()), random.random(int(lengths.sum())))
    ids = np.minimum(ids, words - 1)
    ids[np.cumsum(lengths) - 1] = END
    return Text(ids.astype(np.int32), np.bincount(ids, minlength=words))


def given(places: list[Path], recipe: LSTM) -> Text:
    """Return the words of text files."""
    found = encode(open_corpus(places), recipe.vocabulary, recipe.words, lower=recipe.lower)
    return Text(found.ids, found.counts)


def measured(recipe: LSTM, text: Text, seconds: float) -> dict[str, Any]:
    """Train for some seconds, and return the pace and the memory that it took."""
    import torch

    from acceptability.train.loop import Pace, learn
    from acceptability.train.recurrent_loop import begun, lesson_of, planned
    from acceptability.train.team import Team

    team, ticks = Team(), list[tuple[float, int]]()

    def tell(tick: Tick) -> None:
        ticks.append((time.monotonic(), tick.tokens))

    network = begun(recipe, text.counts).to(team.device)
    lesson = lesson_of(recipe, network, planned(recipe, text.ids, team.size), text.ids, team.device)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        job = Job(Corpus(()), Counts("", 1, 1), out, None, Checkpoints(out / "checkpoint", {}), tell)
        learnt = learn(lesson, Pace(minutes=(seconds + _WARMING) / 60, clip=recipe.clip, save_seconds=1e9), job, team)
    counted = [tick for tick in ticks if tick[0] >= ticks[0][0] + _WARMING] or ticks
    (begin, first), (end, last) = counted[0], counted[-1]
    memory = torch.cuda.max_memory_allocated() / 2**30 if team.device.type == "cuda" else None
    return {
        "recipe": recipe.kind,
        "output": recipe.output,
        "device": torch.cuda.get_device_name() if team.device.type == "cuda" else "cpu",
        "weights": sum(each.numel() for each in network.parameters()),
        "words/s": round((last - first) / (end - begin)) if end > begin else None,
        "loss": round(learnt.loss, 3),
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
        assert isinstance(recipe, LSTM)
        text = given(chosen.corpus, recipe) if chosen.corpus else drawn(recipe.vocabulary + 3)
        print(json.dumps(measured(recipe, text, chosen.seconds)), flush=True)


if __name__ == "__main__":
    main()
