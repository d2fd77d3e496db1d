"""Compare our n-gram estimates with KenLM's ``lmplz``: same text, same order, every probability of a held-out text.

    python -m bench.lmplz --lmplz PATH/bin/lmplz --corpus TRAIN --held-out DEV [--order 3]

Words are separated by spaces and all are in the vocabulary, since ``lmplz`` has no other mode. It counts the very last
n-gram of each order differently from the rest, so the discounts differ in the last digits.
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
from acceptability.models.ngram.arpa import LN10
from acceptability.train import train
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.perplexity import perplexity
from acceptability.types import Query

TOLERANCE = 1e-4
"""The largest difference in log10 that is accepted."""


def main() -> None:
    """Train both models and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lmplz", type=Path, required=True, help="The program, built from KenLM's source.")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True)
    parser.add_argument("--held-out", type=Path, nargs="+", required=True)
    parser.add_argument("--order", type=int, default=3)
    given = parser.parse_args()
    corpus, held_out = open_corpus(given.corpus), open_corpus(given.held_out)
    with tempfile.TemporaryDirectory() as folder:
        theirs = their_model(given.lmplz, corpus, given.order, Path(folder))
        ours = our_model(corpus, given.order, Path(folder))
        compare(ours, theirs, held_out)


def their_model(program: Path, corpus: Corpus, order: int, folder: Path) -> str:
    """Write the text, estimate with lmplz, and return the spec of the model."""
    text, arpa = folder / "text", folder / "theirs.arpa"
    text.write_text("".join(f"{line}\n" for line in corpus.sentences()), encoding="utf-8")
    began = time.monotonic()
    line: list[str | Path] = [program, "-o", str(order), "-S", "2G", "-T", str(folder), "--text", text, "--arpa", arpa]
    subprocess.run(line, check=True, capture_output=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"lmplz: {time.monotonic() - began:.1f} s, {used:.0f} MiB at most")
    return f"ngram:{arpa}(eos=True)"


def our_model(corpus: Corpus, order: int, folder: Path) -> str:
    """Train, and return the spec of the model."""
    began = time.monotonic()
    train(NGramRecipe(order=order, vocabulary=0, words="spaces"), list(corpus.files), folder / "ours")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"ours:  {time.monotonic() - began:.1f} s, {used:.0f} MiB at most")
    return f"ngram:{folder / 'ours'}(eos=True)"


def compare(ours: str, theirs: str, held_out: Corpus) -> None:
    """Print the differences of the two models on a text by word; more than the tolerance is an error."""
    is_unknown = load_model(ours).is_unknown
    assert is_unknown is not None
    # Both models refuse a sentence without any known word.
    sentences = [text for text in held_out.sentences() if not all(map(is_unknown, text.split()))]
    our_logprobs, their_logprobs = (_logprobs(name, sentences) for name in (ours, theirs))
    differences = np.abs(our_logprobs - their_logprobs) / LN10
    print(
        f"{len(our_logprobs):,} words: largest difference {differences.max():.2g} in log10, "
        f"mean {differences.mean():.2g}"
    )
    for name, model in (("ours", ours), ("lmplz", theirs)):
        result = perplexity(model.removesuffix("(eos=True)"), held_out)
        print(f"{name}: perplexity {result.perplexity:.4f} with unknown words", end="; ")
        print(f"{perplexity(model.removesuffix('(eos=True)'), held_out, oov='exclude').perplexity:.4f} without")
    if not differences.max() <= TOLERANCE or math.isnan(differences.max()):
        raise SystemExit(f"the models differ by more than {TOLERANCE}")


def _logprobs(name: str, sentences: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    model = load_model(name)
    outputs = model.run(model.encode([Query(text) for text in sentences]))
    return np.concatenate([output.logprobs.astype(np.float64) for output in outputs])  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
