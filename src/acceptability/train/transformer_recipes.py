"""Transformers trained on plain text, in the format of transformers: a decoder (``gpt``), a masked encoder (``bert``).

Both read byte-level BPE tokens in short rows that begin at a sentence, and train with Muon (matrices) and AdamW
(embeddings and norms). transformers opens what they save without code of ours. This module holds their options, the
tokenizer and the tokenized corpus, and needs no torch; ``transformer_task`` trains the network.

The token ``<s>`` is the boundary between sentences: it stands before each, so the next one marks the end of the last.
Any text can be written in bytes, so there are no unknown words. The first word of a text is spelled as it is within a
text, with a space before it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import CorpusError, MissingExtra, TrainError, shorten
from acceptability.models.files import is_importable
from acceptability.train.checkpoint import make_array_writer
from acceptability.train.corpus import Corpus
from acceptability.train.recipe import (
    Recipe,
    RecipeOutput,
    TrainingJob,
    TrainingProgress,
    rename_options,
    update_metadata,
)

if TYPE_CHECKING:
    from acceptability.train.trainer import ProcessGroup

BOUNDARY, PAD, MASK = "<s>", "<pad>", "<mask>"
SPECIAL_TOKENS = (BOUNDARY, PAD, MASK)
MIN_VOCABULARY_SIZE = 256 + len(SPECIAL_TOKENS)
"""The size of a vocabulary without merges, which has only the bytes."""
_CHUNK_SENTENCES = 20_000
_REQUIRED_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "accelerate")
_DTYPES = ("float32", "float16", "bfloat16")
_COMPILE_CHOICES = ("auto", "yes", "no")
_log = logging.getLogger(__name__)


@rename_options(
    matrix_rate="muon_learning_rate",
    other_rate="adamw_learning_rate",
    decay="weight_decay",
    parts="gradient_accumulation_steps",
    row="sequence_length",
    positions="max_positions",
    constant="constant_fraction",
    start="initial_model",
)
@dataclass(frozen=True)
class TransformerRecipe(Recipe):
    """The options that ``gpt`` and ``bert`` share.

    Args:
        layers: The number of layers.
        width: The size of hidden states and embeddings.
        heads: The attention heads of a layer; the width must be an even multiple.
        feed_forward: The inner size of the feed-forward layers.
        vocabulary: The size of the byte-level BPE vocabulary that is trained on the corpus.
        sequence_length: How many tokens are read together; a row begins at a sentence.
        max_positions: How many tokens the finished model takes; beyond ``sequence_length`` it was never trained.
        batch_tokens: The tokens of a step, in all processes together.
        gradient_accumulation_steps: In how many micro-batches a batch is processed, where memory is short.
        muon_learning_rate: The learning rate of Muon, for the matrices of hidden layers.
        adamw_learning_rate: The learning rate of AdamW, for embeddings and norms.
        weight_decay: The weight decay of matrices.
        constant_fraction: The share of the training at full learning rates; then they fall linearly to zero.
        dropout: The share of values that are dropped after each layer and embedding in training.
        epochs: How often each token is seen, on average.
        minutes: How long the training lasts, instead of epochs; 0 means epochs.
        evaluate_every: After how many steps the dev set is evaluated; the best weights are kept.
        patience: After how many evaluations without a lower loss the training stops; 0 means never.
        save_seconds: After how many seconds a checkpoint is written.
        initial_model: The folder of a finished model of the same shape, whose weights and tokenizer the training starts
            from.
        seed: Determines initial weights, order, dropout and masks.
        dtype: How weights are saved: float32, float16 or bfloat16.
        compile: Whether torch.compile is used: yes, no, or auto, which means on a GPU.
    """

    layers: int = 7
    width: int = 320
    heads: int = 5
    feed_forward: int = 832
    vocabulary: int = 12_288
    sequence_length: int = 64
    max_positions: int = 512
    batch_tokens: int = 65_536
    gradient_accumulation_steps: int = 1
    muon_learning_rate: float = 0.02
    adamw_learning_rate: float = 0.003
    weight_decay: float = 0.0
    constant_fraction: float = 0.3
    dropout: float = 0.0
    epochs: float = 10.0
    minutes: float = 0.0
    evaluate_every: int = 500
    patience: int = 0
    save_seconds: float = 120.0
    initial_model: str = ""
    seed: int = 1
    dtype: str = "float32"
    compile: str = "auto"

    kind: ClassVar[str]
    opened_as: ClassVar[str]
    is_masked: ClassVar[bool]

    def __post_init__(self) -> None:
        self._check_shape()
        for name in ("muon_learning_rate", "adamw_learning_rate", "save_seconds"):
            _check_option(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")
        for name in ("weight_decay", "minutes", "evaluate_every", "patience"):
            _check_option(getattr(self, name) >= 0, name, getattr(self, name), "0 or a number above it")
        for name in ("constant_fraction", "dropout"):
            _check_option(0 <= getattr(self, name) < 1, name, getattr(self, name), "a share from 0 to below 1")
        _check_option(
            self.epochs > 0 or self.minutes > 0, "epochs", self.epochs, "a number above 0, or minutes above 0"
        )
        _check_option(self.dtype in _DTYPES, "dtype", self.dtype, f"one of {', '.join(_DTYPES)}")
        _check_option(
            self.compile in _COMPILE_CHOICES, "compile", self.compile, f"one of {', '.join(_COMPILE_CHOICES)}"
        )

    def _check_shape(self) -> None:
        for name in ("layers", "width", "heads", "feed_forward", "gradient_accumulation_steps"):
            _check_option(getattr(self, name) > 0, name, getattr(self, name), "a whole number above 0")
        # Rotary position embeddings rotate pairs of values, so a head needs an even size.
        _check_option(
            self.width % (2 * self.heads) == 0, "width", self.width, f"an even multiple of heads ({self.heads})"
        )
        _check_option(
            self.vocabulary >= MIN_VOCABULARY_SIZE,
            "vocabulary",
            self.vocabulary,
            f"at least {MIN_VOCABULARY_SIZE}, for all bytes",
        )
        _check_option(self.sequence_length >= 4, "sequence_length", self.sequence_length, "at least 4 tokens")
        _check_option(
            self.max_positions >= self.sequence_length,
            "max_positions",
            self.max_positions,
            f"at least the tokens of a row ({self.sequence_length})",
        )
        # Micro-batches are of whole rows and of one size; otherwise the mean of their losses would not be the batch's.
        multiple = self.sequence_length * self.gradient_accumulation_steps
        problem = f"a multiple of sequence_length times gradient_accumulation_steps ({multiple})"
        _check_option(
            self.batch_tokens >= multiple and self.batch_tokens % multiple == 0,
            "batch_tokens",
            self.batch_tokens,
            problem,
        )

    @property
    def rows_per_batch(self) -> int:
        """The number of rows in a batch."""
        return self.batch_tokens // self.sequence_length

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Train a tokenizer, tokenize the corpus, train the network, save the model."""
        if not all(map(is_importable, _REQUIRED_PACKAGES)):
            raise MissingExtra(f"train {self.kind}", " and ".join(_REQUIRED_PACKAGES), "'acceptability[neural]'")
        # Only now, so that recipes can be listed and checked without torch.
        from acceptability.train.trainer import ProcessGroup
        from acceptability.train.transformer_task import train_transformer

        process_group = ProcessGroup()
        corpus, dev = self.load_tokenized(job, process_group)
        return train_transformer(self, corpus, dev, job, process_group)

    def load_tokenized(
        self, job: TrainingJob, process_group: ProcessGroup
    ) -> tuple[TokenizedCorpus, TokenizedCorpus | None]:
        """Return the tokenized corpus and dev set, from the checkpoint if they are there."""
        # The other processes wait, and read what the first one wrote.
        with process_group.main_process_first():
            state = job.checkpoints.latest()
            if state is None:
                self._tokenize(job)
                state = job.checkpoints.latest()
        assert state is not None
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(state.parts["tokenizer"].read_text(encoding="utf-8"))
        # Memory-mapped: every process reads the same file, and copies the tokens to its device anyway.
        corpus = TokenizedCorpus(tokenizer, np.load(state.parts["tokens"], mmap_mode="r"))
        dev_path = state.parts.get("dev")
        return corpus, TokenizedCorpus(tokenizer, np.load(dev_path)) if dev_path else None

    def _tokenize(self, job: TrainingJob) -> None:
        """Write the tokenizer and the tokenized corpus and dev set into the first checkpoint."""
        job.report_progress(TrainingProgress("learning subwords", 0, 1))
        start_folder = Path(self.initial_model) if self.initial_model else None
        tokenizer = (
            load_initial_tokenizer(start_folder) if start_folder else train_tokenizer(job.corpus, self.vocabulary)
        )
        job.report_progress(TrainingProgress("learning subwords", 1, 1))
        done = np.zeros(2, np.int64)

        def report_reading(sentences: int, tokens: int) -> None:
            done[:] += (sentences, tokens)
            job.report_progress(TrainingProgress("reading", int(done[0]), job.counts.sentences, int(done[1])))

        content = tokenizer.to_str().encode()
        parts = {
            "tokenizer": lambda out: out.write(content),
            "tokens": make_array_writer(tokenize_corpus(tokenizer, job.corpus, report_reading).ids),
        }
        if job.dev:
            parts["dev"] = make_array_writer(tokenize_corpus(tokenizer, job.dev).ids)
        job.save(0, parts)


@rename_options()
@dataclass(frozen=True)
class GPTRecipe(TransformerRecipe):
    """Causal transformer in the style of Llama (Qwen3 in transformers), about 12 million parameters by default."""

    kind: ClassVar[str] = "gpt"
    opened_as: ClassVar[str] = "causal"
    is_masked: ClassVar[bool] = False


@rename_options(mask_begin="mask_rate_start", mask_end="mask_rate_end")
@dataclass(frozen=True)
class BERTRecipe(TransformerRecipe):
    """Masked transformer (ModernBERT with full attention), about 12 million parameters by default.

    Args:
        mask_rate_start: The share of tokens that ``<mask>`` replaces at the beginning of the training.
        mask_rate_end: The share that it replaces at the end.
    """

    feed_forward: int = 824
    mask_rate_start: float = 0.4
    mask_rate_end: float = 0.15

    kind: ClassVar[str] = "bert"
    opened_as: ClassVar[str] = "masked"
    is_masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mask_rate_start", "mask_rate_end"):
            # A row without a masked token has no loss, and one without any other token has no context.
            share = getattr(self, name)
            _check_option(
                1 <= share * self.sequence_length <= self.sequence_length - 1,
                name,
                share,
                "a share that leaves and hides a token of a row",
            )


def _check_option(is_valid: bool, name: str, value: object, expected: str) -> None:
    if not is_valid:
        raise TrainError(f"{name} is {value!r}; expected {expected}")


@dataclass(frozen=True)
class TokenizedCorpus:
    """A corpus as token ids.

    Args:
        tokenizer: A ``tokenizers.Tokenizer``.
        ids: The tokens of all sentences, each with ``<s>`` before it.
    """

    tokenizer: Any
    ids: NDArray[np.uint16] | NDArray[np.int32]

    @property
    def boundary_id(self) -> int:
        """The id of ``<s>``."""
        return int(self.tokenizer.token_to_id(BOUNDARY))

    def count_tokens(self) -> dict[str, int]:
        """Return how often each token of the vocabulary occurs in the corpus."""
        size = self.tokenizer.get_vocab_size()
        token_counts = np.bincount(self.ids, minlength=size).tolist()
        return {self.tokenizer.id_to_token(token_id): token_counts[token_id] for token_id in range(size)}


def train_tokenizer(corpus: Corpus, size: int) -> Any:
    """Return a byte-level BPE tokenizer (byte-pair encoding) trained on a corpus.

    Args:
        size: The size of the vocabulary, special tokens and all 256 bytes included.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(SPECIAL_TOKENS),
        # All bytes, also those that the corpus does not have; sorted, as the order decides the ids.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_check_sentences(corpus), trainer)
    actual_size = tokenizer.get_vocab_size()
    if actual_size < size:
        _log.warning("the vocabulary has %s subwords, not %s: the corpus has no others", actual_size, size)
    return tokenizer


def tokenize_corpus(
    tokenizer: Any, corpus: Corpus, on_progress: Callable[[int, int], None] = lambda *_: None
) -> TokenizedCorpus:
    """Return the tokenized corpus.

    Args:
        on_progress: Called with the numbers of sentences and tokens that were read since the last call.
    """
    # Two bytes per token where they suffice: the ids of a large corpus lie in memory and in the checkpoint.
    dtype = np.uint16 if tokenizer.get_vocab_size() <= 1 << 16 else np.int32
    boundary_id, blocks, sentences = tokenizer.token_to_id(BOUNDARY), [], _check_sentences(corpus)
    while texts := list(islice(sentences, _CHUNK_SENTENCES)):
        # The fast variant leaves out the offsets of tokens in the text, which training does not need.
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        blocks.append(_join_sentences([encoding.ids for encoding in encodings], boundary_id).astype(dtype))
        on_progress(len(texts), len(blocks[-1]))
    return TokenizedCorpus(tokenizer, np.concatenate(blocks))


def _join_sentences(sentences: Sequence[Sequence[int]], boundary_id: int) -> NDArray[np.int64]:
    """Return the tokens of all sentences in one array, with the boundary before each sentence.

    >>> _join_sentences([[5, 6], [7]], boundary_id=0).tolist()
    [0, 5, 6, 0, 7]
    """
    total = sum(map(len, sentences)) + len(sentences)
    return np.fromiter(chain.from_iterable((boundary_id, *sentence) for sentence in sentences), np.int64, total)


def _check_sentences(corpus: Corpus) -> Iterator[str]:
    """Yield the sentences; one that contains a special token is an error."""
    # The tokenizer would read the characters as the special token itself, such as a boundary within the sentence.
    for sentence in corpus.sentences():
        # Most sentences pass the test for one character, which is faster than that for three tokens.
        if "<" in sentence and (special_token := next((token for token in SPECIAL_TOKENS if token in sentence), None)):
            raise CorpusError(
                f"the corpus has {special_token} in {shorten(sentence)!r}; it is a special token. Remove it."
            )
        yield sentence


# The output layer is tied to the embeddings, and safetensors files hold shared tensors once, under their name there.
_TIED_PREFIXES = ("lm_head.", "decoder.")


def load_initial_weights(net: Any, folder: Path) -> None:
    """Load the weights of a finished model into a network of the same shape."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        # Saved in half precision, perhaps; training is in float32.
        weights = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
        mismatch = net.load_state_dict(weights, strict=False)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise TrainError(f"initial_model={str(folder)!r}: its weights do not fit this recipe: {error}") from error
    missing = [name for name in mismatch.missing_keys if not name.startswith(_TIED_PREFIXES)]
    if mismatch.unexpected_keys or missing:
        differ = ", ".join([*mismatch.unexpected_keys, *missing][:3])
        raise TrainError(f"initial_model={str(folder)!r} is a model of another shape; they differ in {differ}")
    # The output layer, which the file leaves out, shares the embeddings that were just loaded.
    net.tie_weights()


def load_initial_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a finished model."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise TrainError(
            f"initial_model={str(folder)!r}: there is no {path.name}. Give the folder of a model that was trained"
        )
    return Tokenizer.from_file(str(path))


def read_training_metadata(folder: Path) -> dict[str, object]:
    """Return what a finished model's ``recipe.json`` has of its training, and its name; the name alone without one."""
    path = folder / "recipe.json"
    if not path.is_file():
        return {"name": folder.name}
    metadata = update_metadata(json.loads(path.read_text(encoding="utf-8")))
    return {"name": folder.name, **{key: metadata[key] for key in ("kind", "recipe", "corpus", "seconds", "facts")}}
