"""N-gram models of varying length, grown and pruned by variKN (Siivola, Hirsimäki and Virpioja 2007).

Where a longer n-gram pays for its place in the model it is added, up to the order; the others are never
counted. The package ``varikn`` does the work, in a process of its own; what it makes is kept as ``ngram`` models are.
"""

from __future__ import annotations

import subprocess  # nosec B404
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.arpa import Arpa
from acceptability.models.files import is_importable
from acceptability.models.splitting import RULES
from acceptability.models.vocabulary import END
from acceptability.train.arpa import orders_of
from acceptability.train.checkpoint import atomic
from acceptability.train.ngram import unigrams_of, write_model
from acceptability.train.recipe import Job, Trained
from acceptability.train.tick import Tick
from acceptability.train.vocabulary import Encoded, encode

_SPELLED = {"<unk>": "<UNK>"}


@dataclass(frozen=True)
class VariKN:
    """N-gram model of varying length with Kneser–Ney smoothing, grown and pruned by the package varikn.

    Args:
        order: The longest sequence of words that may be looked at.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is cut into words: split, punctuation, words or spaces.
        lower: Whether words are put into lower case.
        growth: How much an n-gram must gain to be added: smaller makes larger models (variKN's D).
        prune: How much an n-gram must be worth to stay afterwards, twice the growth as a rule (variKN's E).
        bits: How finely log-probabilities are kept: 32, 16, or 8 bits.
        arpa: Whether to write ``model.arpa`` too, which other programs read.
    """

    order: int = 5
    vocabulary: int = 60_000
    words: str = "split"
    lower: bool = False
    growth: float = 0.05
    prune: float = 0.1
    bits: int = 32
    arpa: bool = False

    kind: ClassVar[str] = "varikn"
    opened_as: ClassVar[str] = "ngram"

    def __post_init__(self) -> None:
        if not 2 <= self.order <= 20:
            raise TrainError(f"order is {self.order}; expected a whole number from 2 to 20")
        if self.vocabulary < 0:
            raise TrainError(f"vocabulary is {self.vocabulary}; expected a number of words, or 0 for all")
        if self.words not in RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(RULES)}")
        if self.growth <= 0 or self.prune < 0:
            raise TrainError(
                f"growth is {self.growth} and prune {self.prune}; expected a number above 0, and one from 0"
            )
        if self.bits not in (8, 16, 32):
            raise TrainError(f"bits is {self.bits}; expected 8, 16 or 32")

    def follow(self, job: Job) -> Trained:
        """Write the text as variKN reads it, let it grow a model, and keep that as arrays."""
        if not is_importable("varikn"):
            raise MissingExtra("varikn", "the package varikn", "'acceptability[ngram]'")
        job.tell(Tick("reading", 0, 1))
        encoded = encode(job.corpus, self.vocabulary, self.words, lower=self.lower)
        job.tell(Tick("reading", 1, 1))
        if "<UNK>" in encoded.vocabulary.index:
            raise TrainError("the corpus has <UNK> as a word, which variKN takes for unknown ones. Write <unk>.")
        job.tell(Tick("growing", 0, 1))
        arpa = self._grown(encoded, job.checkpoints.folder)
        job.tell(Tick("growing", 1, 1))
        orders = orders_of(Arpa(arpa), encoded.vocabulary.words)
        write_model(job.out, encoded.vocabulary, orders, bits=self.bits, arpa=self.arpa)
        sizes = [len(order.keys) for order in orders]
        return Trained(unigrams_of(encoded), {"vocabulary": len(encoded.vocabulary), "n-grams of each order": sizes})

    def _grown(self, encoded: Encoded, folder: Path) -> Path:
        text, words, arpa = folder / "text", folder / "words", folder / "grown.arpa"
        known = encoded.vocabulary.words
        with atomic(words) as out:
            out.write("\n".join(known[1:]).encode() + b"\n")
        with atomic(text) as out:
            spelled = np.array([_SPELLED.get(word, word) for word in known], dtype=object)
            for sentence in np.split(encoded.ids, np.flatnonzero(encoded.ids == END) + 1)[:-1]:
                out.write(f"<s> {' '.join(spelled[sentence])}\n".encode())
        options = [str(each) for each in (text, words, arpa, self.order, self.growth, self.prune)]
        command = [sys.executable, "-m", __name__, *options]
        # A list of our own words, paths and numbers, and no shell.
        done = subprocess.run(command, capture_output=True, text=True)  # nosec B603
        if done.returncode or not arpa.exists():
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise TrainError(f"variKN broke off with status {done.returncode}: {last[0]}")
        return arpa


def main(text: str, words: str, arpa: str, order: str, growth: str, prune: str) -> None:
    """Grow a model with variKN: this runs in a process of its own, since variKN ends the process when it fails."""
    import varikn

    grower = varikn.VarigramTrainer(True, False)
    grower.set_datacost_scale(float(growth))
    grower.set_datacost_scale2(float(prune))
    grower.set_max_order(int(order))
    grower.initialize(text, 0, 0, -1, "", "<s>", False, words)
    grower.grow(1)
    grower.write_file(arpa, True)


if __name__ == "__main__":
    main(*sys.argv[1:])
