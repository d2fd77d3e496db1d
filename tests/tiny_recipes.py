"""Recipes so small that a test can train many; in a module of their own, so that worker processes can import them."""

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
from acceptability.train.classifiers import FitResult, LabelledSentences
from acceptability.train.recipe import TrainingProgress, TrainingProgressCallback
from tiny import bert_tokenizer

_VOCABULARY = "the cat dog sleep chase who did he is she i think that it rain no has ever a was"
WORDS = _VOCABULARY.split()


def labelled(count: int = 60, name: str = "made", seed: int = 0) -> Suite:
    """Return short sentences: those with "the" in front of the last word are acceptable, but for some noise."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        words = [WORDS[index] for index in random.integers(1, len(WORDS), 4)]
        acceptable = int(random.random() < 0.6)
        words.insert(3 if acceptable else 0, "the")
        label = acceptable if random.random() < 0.9 else 1 - acceptable
        rows.append(Sentence(f"{name}-{number}", " ".join(words), label, tags={"source": name}))
    return Suite(name, tuple(rows))


@dataclass(frozen=True)
class Stand:
    """A stand-in for a recipe: it trains nothing, and writes down the random numbers that it drew.

    Args:
        failing: Seeds that fail with an error of ours.
        breaking: Seeds that fail with an error of Python's.
        dying: Seeds whose process is killed.
        slow: How many seconds a run takes.
        processes: How many processes must have begun a run before any run ends.
    """

    width: int = 3
    learning_rate: float = 0.5
    failing: tuple[int, ...] = ()
    breaking: tuple[int, ...] = ()
    dying: tuple[int, ...] = ()
    slow: float = 0.0
    processes: int = 0
    seed: int = 1

    kind: ClassVar[str] = "stand"
    reads: ClassVar[str] = "labels"

    def fit(
        self,
        train_set: LabelledSentences,
        held_out_set: LabelledSentences,
        out: Path,
        progress: TrainingProgressCallback,
    ) -> FitResult:
        progress(TrainingProgress("training", 1, 2, tokens=len(train_set)))
        print("the stand-in talks")
        time.sleep(self.slow)
        self._wait_for_processes(out.parent)
        if self.seed in self.failing:
            raise TrainError("the stand-in falls over")
        if self.seed in self.breaking:
            raise ZeroDivisionError("a bug")
        if self.seed in self.dying:
            os.kill(os.getpid(), signal.SIGKILL)
        drawn = np.random.default_rng(self.seed).normal(size=self.width)
        (out / "weights.json").write_text(json.dumps(drawn.tolist()))
        facts = {"threads": os.environ["OMP_NUM_THREADS"], "process": os.getpid()}
        return FitResult(facts, {"mcc": round(float(np.tanh(drawn[0])), 4), "accuracy": 0.5})

    def sample_hyperparameters(self, seed: int) -> Stand:
        random = np.random.default_rng(seed)
        return replace(self, width=int(random.integers(1, 50)), learning_rate=float(random.uniform()), seed=seed)

    def _wait_for_processes(self, folder: Path) -> None:
        # Without this, one worker may train all runs before a second one has started on a busy machine.
        (folder / f"process-{os.getpid()}").touch()
        for _ in range(60_000):
            if len(list(folder.glob("process-*"))) >= self.processes:
                return
            time.sleep(0.01)
        raise TimeoutError(f"only one process of {self.processes} trains runs")


@dataclass(frozen=True)
class TinyBert:
    """A BERT of one layer, trained for some steps on all sentences at once."""

    steps: int = 3
    learning_rate: float = 0.05
    seed: int = 1

    kind: ClassVar[str] = "tiny-bert"

    def sample_hyperparameters(self, seed: int) -> TinyBert:
        return replace(self, learning_rate=float(np.random.default_rng(seed).uniform(0.01, 0.1)), seed=seed)

    reads: ClassVar[str] = "labels"

    def fit(
        self,
        train_set: LabelledSentences,
        held_out_set: LabelledSentences,
        out: Path,
        progress: TrainingProgressCallback,
    ) -> FitResult:
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
        adam = torch.optim.Adam(net.parameters(), lr=self.learning_rate)
        batch = tokenizer(list(train_set.texts), return_tensors="pt", padding=True)
        for step in range(self.steps):
            loss = net(**batch, labels=torch.tensor(train_set.labels)).loss
            adam.zero_grad()
            loss.backward()
            adam.step()
            progress(TrainingProgress("training", step + 1, self.steps, loss=loss.item()))
        net.eval()
        with torch.inference_mode():
            logits = net(**tokenizer(list(held_out_set.texts), return_tensors="pt", padding=True)).logits
        predicted = (logits[:, 1] > logits[:, 0]).double().numpy()
        labels = np.array(held_out_set.labels, dtype=np.float64)
        net.save_pretrained(out)
        tokenizer.save_pretrained(out)
        scores = {"mcc": matthews(predicted, labels), "accuracy": float((predicted == labels).mean())}
        return FitResult({"steps": self.steps, "loss": loss.item()}, scores)


@dataclass(frozen=True)
class Seedless:
    """A recipe without a seed."""

    kind: ClassVar[str] = "seedless"
    reads: ClassVar[str] = "labels"
