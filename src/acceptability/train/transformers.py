"""Transformers from plain text, in the format of Hugging Face: a decoder (``gpt``) and a masked encoder (``bert``).

Both read subwords in short rows that begin at a sentence, and learn with Muon (matrices) and
AdamW (the rest). transformers opens what they save without code of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.files import is_importable
from acceptability.train.beginning import its_subwords
from acceptability.train.checkpoint import array
from acceptability.train.recipe import Job, Trained
from acceptability.train.subwords import SMALLEST, Pieces, encode, learn_subwords
from acceptability.train.tick import Tick

if TYPE_CHECKING:
    from acceptability.train.team import Team

_NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "accelerate")
_DTYPES = ("float32", "float16", "bfloat16")
_COMPILE = ("auto", "yes", "no")


@dataclass(frozen=True)
class Transformer:
    """What both kinds have in common.

    Args:
        layers: How many layers.
        width: The numbers that stand for a token within the network.
        heads: The attention heads of a layer; the width must be an even multiple.
        feed_forward: The width of the inner layers.
        vocabulary: How many subwords are learnt from the corpus (byte-level BPE).
        row: How many tokens are read together; a row begins at a sentence.
        positions: How many tokens the finished model takes; beyond ``row`` it was never trained.
        batch_tokens: The tokens of a step, in all processes together.
        parts: In how many parts a batch is worked through, where memory is short.
        matrix_rate: The learning rate of Muon, for matrices.
        other_rate: The learning rate of AdamW, for embeddings and norms.
        decay: The weight decay of matrices.
        constant: For which share of the training the rates stay; then they fall to zero.
        dropout: The share of values that are dropped after each layer and embedding while learning.
        epochs: How often each token is seen, on average.
        minutes: How long the training lasts, instead of epochs; 0 means epochs.
        evaluate_every: After how many steps the dev set is looked at; the best weights are kept.
        patience: After how many looks without gain the training stops; 0 means never.
        save_seconds: After how many seconds a checkpoint is written.
        start: A folder of a finished model of the same shape, with whose weights and subwords the training begins.
        seed: Decides on first weights, order, dropout and what is hidden.
        dtype: How weights are saved: float32, float16 or bfloat16.
        compile: Whether torch.compile makes it faster: yes, no, or auto, which means on a GPU.
    """

    layers: int = 7
    width: int = 320
    heads: int = 5
    feed_forward: int = 832
    vocabulary: int = 12_288
    row: int = 64
    positions: int = 512
    batch_tokens: int = 65_536
    parts: int = 1
    matrix_rate: float = 0.02
    other_rate: float = 0.003
    decay: float = 0.0
    constant: float = 0.3
    dropout: float = 0.0
    epochs: float = 10.0
    minutes: float = 0.0
    evaluate_every: int = 500
    patience: int = 0
    save_seconds: float = 120.0
    start: str = ""
    seed: int = 1
    dtype: str = "float32"
    compile: str = "auto"

    kind: ClassVar[str]
    opened_as: ClassVar[str]
    is_masked: ClassVar[bool]

    def __post_init__(self) -> None:
        self._check_shape()
        for name in ("matrix_rate", "other_rate", "save_seconds"):
            _check(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")
        for name in ("decay", "minutes", "evaluate_every", "patience"):
            _check(getattr(self, name) >= 0, name, getattr(self, name), "0 or a number above it")
        for name in ("constant", "dropout"):
            _check(0 <= getattr(self, name) < 1, name, getattr(self, name), "a share from 0 to below 1")
        _check(self.epochs > 0 or self.minutes > 0, "epochs", self.epochs, "a number above 0, or minutes above 0")
        _check(self.dtype in _DTYPES, "dtype", self.dtype, f"one of {', '.join(_DTYPES)}")
        _check(self.compile in _COMPILE, "compile", self.compile, f"one of {', '.join(_COMPILE)}")

    def _check_shape(self) -> None:
        for name in ("layers", "width", "heads", "feed_forward", "parts"):
            _check(getattr(self, name) > 0, name, getattr(self, name), "a whole number above 0")
        _check(self.width % (2 * self.heads) == 0, "width", self.width, f"an even multiple of heads ({self.heads})")
        _check(self.vocabulary >= SMALLEST, "vocabulary", self.vocabulary, f"at least {SMALLEST}, for all bytes")
        _check(self.row >= 4, "row", self.row, "at least 4 tokens")
        _check(self.positions >= self.row, "positions", self.positions, f"at least the tokens of a row ({self.row})")
        each = self.row * self.parts
        problem = f"a multiple of row times parts ({each})"
        _check(self.batch_tokens >= each and self.batch_tokens % each == 0, "batch_tokens", self.batch_tokens, problem)

    @property
    def rows(self) -> int:
        """How many rows a batch has."""
        return self.batch_tokens // self.row

    def follow(self, job: Job) -> Trained:
        """Learn subwords, put the corpus into numbers, train, write."""
        if not all(map(is_importable, _NEEDED)):
            raise MissingExtra(f"train {self.kind}", " and ".join(_NEEDED), "'acceptability[neural]'")
        from acceptability.train.teaching import taught
        from acceptability.train.team import Team

        team = Team()
        pieces, dev = self.pieces(job, team)
        return taught(self, pieces, dev, job, team)

    def pieces(self, job: Job, team: Team) -> tuple[Pieces, Pieces | None]:
        """Return the corpus and the dev set in numbers, from the checkpoint if they are there."""
        with team.first_goes_first():
            state = job.checkpoints.latest()
            if state is None:
                self._read(job)
                state = job.checkpoints.latest()
        assert state is not None
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(state.parts["tokenizer"].read_text(encoding="utf-8"))
        found = Pieces(tokenizer, np.load(state.parts["tokens"], mmap_mode="r"))
        held = state.parts.get("dev")
        return found, Pieces(tokenizer, np.load(held)) if held else None

    def _read(self, job: Job) -> None:
        job.tell(Tick("learning subwords", 0, 1))
        begins = Path(self.start) if self.start else None
        tokenizer = its_subwords(begins) if begins else learn_subwords(job.corpus, self.vocabulary)
        job.tell(Tick("learning subwords", 1, 1))
        done = np.zeros(2, np.int64)

        def told(sentences: int, tokens: int) -> None:
            done[:] += (sentences, tokens)
            job.tell(Tick("reading", int(done[0]), job.counts.sentences, int(done[1])))

        content = tokenizer.to_str().encode()
        parts = {"tokenizer": lambda out: out.write(content), "tokens": array(encode(tokenizer, job.corpus, told).ids)}
        if job.dev:
            parts["dev"] = array(encode(tokenizer, job.dev).ids)
        job.save(0, parts)


@dataclass(frozen=True)
class GPT(Transformer):
    """Causal transformer in the style of Llama (Qwen3 in transformers), about 12 million parameters by default."""

    kind: ClassVar[str] = "gpt"
    opened_as: ClassVar[str] = "causal"
    is_masked: ClassVar[bool] = False


@dataclass(frozen=True)
class BERT(Transformer):
    """Masked transformer (ModernBERT with full attention), about 12 million parameters by default.

    Args:
        mask_begin: Which share of the tokens is hidden behind ``<mask>`` at the beginning of the training.
        mask_end: Which share is hidden at its end.
    """

    feed_forward: int = 824
    mask_begin: float = 0.4
    mask_end: float = 0.15

    kind: ClassVar[str] = "bert"
    opened_as: ClassVar[str] = "masked"
    is_masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mask_begin", "mask_end"):
            share = getattr(self, name)
            _check(1 <= share * self.row <= self.row - 1, name, share, "a share that leaves and hides a token of a row")


def _check(is_right: bool, name: str, value: object, expected: str) -> None:
    if not is_right:
        raise TrainError(f"{name} is {value!r}; expected {expected}")
