"""Our n-gram estimates against KenLM's ``lmplz``: the same text, the same order, every probability of a held-out text.

    python -m bench.lmplz --lmplz PATH/bin/lmplz --corpus TRAIN --held-out DEV [--order 3]

Words are what spaces separate and all are known, since ``lmplz`` has no other way. It counts its very
last n-gram of each order by other means than the rest, so discounts differ in the last digits.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from acceptability.models import load_model
from acceptability.models.arpa import LN10
from acceptability.train import train
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.train.ngram import NGram
from acceptability.train.perplexity import perplexity
from acceptability.types import Query

TOLERANCE = 1e-4
"""The largest difference in log10 that we accept."""


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--lmplz", type=Path, required=True, help="The program, built from KenLM's source.")
    read.add_argument("--corpus", type=Path, nargs="+", required=True)
    read.add_argument("--held-out", type=Path, nargs="+", required=True)
    read.add_argument("--order", type=int, default=3)
    asked = read.parse_args()
    corpus, held_out = open_corpus(asked.corpus), open_corpus(asked.held_out)
    with tempfile.TemporaryDirectory() as folder:
        theirs = their_model(asked.lmplz, corpus, asked.order, Path(folder))
        ours = our_model(corpus, asked.order, Path(folder))
        compare(ours, theirs, held_out)


def their_model(program: Path, corpus: Corpus, order: int, folder: Path) -> str:
    """Write the text, estimate with lmplz, and return the model's spelling."""
    text, arpa = folder / "text", folder / "theirs.arpa"
    text.write_text("".join(f"{line}\n" for line in corpus.sentences()), encoding="utf-8")
    began = time.monotonic()
    line: list[str | Path] = [program, "-o", str(order), "-S", "2G", "-T", str(folder), "--text", text, "--arpa", arpa]
    subprocess.run(line, check=True, capture_output=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"lmplz: {time.monotonic() - began:.1f} s, {used:.0f} MiB at most")
    return f"ngram:{arpa}(eos=True)"


def our_model(corpus: Corpus, order: int, folder: Path) -> str:
    """Train, and return the model's spelling."""
    began = time.monotonic()
    train(NGram(order=order, vocabulary=0, words="spaces"), list(corpus.files), folder / "ours")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"ours:  {time.monotonic() - began:.1f} s, {used:.0f} MiB at most")
    return f"ngram:{folder / 'ours'}(eos=True)"


def compare(ours: str, theirs: str, held_out: Corpus) -> None:
    """Print how far the two are apart on a text, word by word; more than the tolerance is an error."""
    known = load_model(ours)
    # A sentence without any known word is refused by both.
    sentences = [text for text in held_out.sentences() if any(not known.is_unknown(word) for word in text.split())]  # type: ignore[attr-defined]
    one, other = (_logprobs(name, sentences) for name in (ours, theirs))
    apart = np.abs(one - other) / LN10
    print(f"{len(one):,} words: largest difference {apart.max():.2g} in log10, mean {apart.mean():.2g}")
    for name, model in (("ours", ours), ("lmplz", theirs)):
        found = perplexity(model.removesuffix("(eos=True)"), held_out)
        print(f"{name}: perplexity {found.perplexity:.4f} with unknown words", end="; ")
        print(f"{perplexity(model.removesuffix('(eos=True)'), held_out, oov='exclude').perplexity:.4f} without")
    if not apart.max() <= TOLERANCE or math.isnan(apart.max()):
        raise SystemExit(f"they differ by more than {TOLERANCE}")


def _logprobs(name: str, sentences: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    model = load_model(name)
    said = model.run(model.encode([Query(text) for text in sentences]))
    return np.concatenate([each.logprobs.astype(np.float64) for each in said])  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
