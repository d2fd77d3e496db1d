"""Courses so small that many can be taught in a test; here, and not in a test, so that other processes find them."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability import Sentence, Suite
from acceptability.errors import TrainError
from acceptability.measures.classification import matthews
from acceptability.train.classifiers import Examples, Fitted
from acceptability.train.tick import Tell, Tick
from tiny import bert_tokenizer

_KNOWN = "the cat dog sleep chase who did he is she i think that it rain no has ever a was"
WORDS = _KNOWN.split()


def labelled(count: int = 60, name: str = "made", seed: int = 0) -> Suite:
    """Return sentences of a few words, of which those with "the" before the last word are acceptable, and a few not."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        words = [WORDS[place] for place in random.integers(1, len(WORDS), 4)]
        good = int(random.random() < 0.6)
        words.insert(3 if good else 0, "the")
        label = good if random.random() < 0.9 else 1 - good
        rows.append(Sentence(f"{name}-{number}", " ".join(words), label, tags={"source": name}))
    return Suite(name, tuple(rows))


@dataclass(frozen=True)
class Stand:
    """A course that learns nothing and writes down what it drew.

    Args:
        failing: Seeds that fail with an error of ours.
        breaking: Seeds that fail with an error of Python's.
        dying: Seeds whose process is killed.
        slow: How many seconds a run takes.
    """

    width: int = 3
    rate: float = 0.5
    failing: tuple[int, ...] = ()
    breaking: tuple[int, ...] = ()
    dying: tuple[int, ...] = ()
    slow: float = 0.0
    seed: int = 1

    kind: ClassVar[str] = "stand"
    reads: ClassVar[str] = "labels"

    def fit(self, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
        tell(Tick("learning", 1, 2, tokens=len(learn)))
        print("the stand-in talks")
        time.sleep(self.slow)
        if self.seed in self.failing:
            raise TrainError("the stand-in falls over")
        if self.seed in self.breaking:
            raise ZeroDivisionError("a bug")
        if self.seed in self.dying:
            os.kill(os.getpid(), signal.SIGKILL)
        drawn = np.random.default_rng(self.seed).normal(size=self.width)
        (out / "weights.json").write_text(json.dumps(drawn.tolist()))
        marks = {"threads": os.environ["OMP_NUM_THREADS"], "process": os.getpid()}
        return Fitted(marks, {"mcc": round(float(np.tanh(drawn[0])), 4), "accuracy": 0.5})


def sampled(seed: int, recipe: Stand | TinyBert) -> Stand | TinyBert:
    random = np.random.default_rng(seed)
    if isinstance(recipe, TinyBert):
        return replace(recipe, rate=float(random.uniform(0.01, 0.1)), seed=seed)
    return replace(recipe, width=int(random.integers(1, 50)), rate=float(random.uniform()), seed=seed)


@dataclass(frozen=True)
class TinyBert:
    """A BERT of one layer, whose head and layer learn for some steps from all sentences at once."""

    steps: int = 3
    rate: float = 0.05
    seed: int = 1

    kind: ClassVar[str] = "tiny-bert"
    reads: ClassVar[str] = "labels"

    def fit(self, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
        import torch
        from transformers import BertConfig, BertForSequenceClassification

        torch.manual_seed(self.seed)
        tokenizer = bert_tokenizer(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS))
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=16,
            num_labels=2,
        )
        net = BertForSequenceClassification(config)
        adam = torch.optim.Adam(net.parameters(), lr=self.rate)
        batch = tokenizer(list(learn.texts), return_tensors="pt", padding=True)
        for step in range(self.steps):
            loss = net(**batch, labels=torch.tensor(learn.labels)).loss
            adam.zero_grad()
            loss.backward()
            adam.step()
            tell(Tick("learning", step + 1, self.steps, loss=loss.item()))
        net.eval()
        with torch.inference_mode():
            logits = net(**tokenizer(list(held.texts), return_tensors="pt", padding=True)).logits
        predicted = (logits[:, 1] > logits[:, 0]).double().numpy()
        labels = np.array(held.labels, dtype=np.float64)
        net.save_pretrained(out)
        tokenizer.save_pretrained(out)
        reached = {"mcc": matthews(predicted, labels), "accuracy": float((predicted == labels).mean())}
        return Fitted({"steps": self.steps, "loss": loss.item()}, reached)


@dataclass(frozen=True)
class Seedless:
    """A course that draws nothing."""

    kind: ClassVar[str] = "seedless"
    reads: ClassVar[str] = "labels"
