"""How classifiers over words are trained: networks and their inputs, the training task, and the real/fake encoder.

``fit_classifier`` trains CBOW and pooling networks on labelled sentences, ``train_discriminator`` the encoder of
``train real-fake`` on real sentences and fakes. Both describe a ``TrainingTask`` for ``train.trainer``: Adam, batches
of sentences of similar length, binary cross-entropy, and the MCC on held-out sentences to stop by.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from acceptability.errors import TrainError, shorten
from acceptability.measures.classification import matthews
from acceptability.models import recurrent
from acceptability.models.hf.loading import select_device
from acceptability.models.recurrent import Recurrent
from acceptability.models.recurrent.network import RecurrentNetwork
from acceptability.models.sentence import (
    LM_FOLDER,
    WEIGHTS_FILE,
    SentenceClassifier,
    SentenceNetworkShape,
    is_sentence_classifier,
    open_sentence_classifier,
)
from acceptability.models.sentence.network import (
    SentenceNetwork,
    WordEmbedding,
    build_sentence_network,
    compute_lm_states,
    get_mix_dimensions,
    serialize_sentence_network,
)
from acceptability.text import words
from acceptability.text.words import SPECIAL_WORDS, UNKNOWN, Vocabulary
from acceptability.train.checkpoint import atomic_write, make_array_writer
from acceptability.train.classifiers.recipe import EpochBatches, LabelledSentences
from acceptability.train.classifiers.word_classifiers import WordInputs, count_vocabulary_words, describe_vocabulary
from acceptability.train.corpus import Corpus
from acceptability.train.recipe import CheckpointedRun, TrainingJob, TrainingProgress
from acceptability.train.trainer import (
    ProcessGroup,
    SingleProcess,
    StepContext,
    TrainingResult,
    TrainingSchedule,
    TrainingTask,
    train_network,
)

if TYPE_CHECKING:
    from acceptability.train.classifiers.real_fake import RealFakeRecipe
    from acceptability.train.classifiers.word_classifiers import WordRecipe

_EVAL_BATCH_SIZE = 256
# Word networks are small and their batches cheap, so that padding matters: lengths are sorted over many batches.
_BATCHES_PER_BUCKET = 50
# Language model states of all sentences are cached if they fit into this many bytes, else recomputed for every batch.
_MAX_CACHE_BYTES = {"cpu": 2 << 30, "cuda": 8 << 30}
_PROGRESS_EVERY = 1000


@dataclass(frozen=True, eq=False)
class TrainableClassifier:
    """A network and its inputs.

    Args:
        frozen: Whether only the layers above the sentence vector are trained.
    """

    network: SentenceNetwork
    inputs: WordInputs
    frozen: bool = False

    @property
    def trained_module(self) -> nn.Module:
        """The part of the network that is trained."""
        return self.network.head if self.frozen else self.network

    def to_facts(self) -> dict[str, object]:
        """Return what the model card lists of inputs and sizes."""
        sizes = [parameter.numel() for parameter in self.trained_module.parameters() if parameter.requires_grad]
        return {
            **self.inputs.facts,
            "dimension of sentence vectors": self.network.shape.sentence_width,
            "parameters": sum(sizes),
        }


def build_classifier(shape: SentenceNetworkShape, inputs: WordInputs, dropout: float, seed: int) -> TrainableClassifier:
    """Return a randomly initialised network on the default device; pretrained word vectors are frozen."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build_sentence_network(shape, dropout)
    if inputs.table is not None and isinstance(network.inputs, WordEmbedding):
        # Copied, since from_numpy shares its memory with the array.
        network.inputs.table = torch.nn.Parameter(torch.from_numpy(inputs.table.copy()), requires_grad=False)
    return TrainableClassifier(network.to(select_device("auto")), inputs)


def load_frozen_encoder(encoder: str, texts: Iterable[str], top: int, dropout: float, seed: int) -> TrainableClassifier:
    """Return the frozen encoder of a finished pooling classifier under a new, untrained hidden layer of tanh.

    Args:
        encoder: The folder of that classifier.
        texts: Sentences whose coverage by the encoder's vocabulary is reported.
        top: The width of the hidden layer.
    """
    model = _open_pooling_classifier(Path(encoder).expanduser())
    shape = replace(model.shape, top=top, activation="tanh")
    lm = Recurrent(model.folder / LM_FOLDER, eos=False, unknown="<unk>") if shape.reads_states else None
    facts = {
        **describe_vocabulary(model.vocabulary, shape.input_width, count_vocabulary_words(model.vocabulary, texts)),
        "encoder": model.signature,
    }
    classifier = build_classifier(shape, WordInputs(model.vocabulary, shape.width, lm=lm, facts=facts), dropout, seed)
    weights = {name: weight for name, weight in model.net.state_dict().items() if not name.startswith("head.")}
    if isinstance(classifier.network.inputs, WordEmbedding):
        # Replaced rather than copied into, so that the table keeps the precision in which it was saved.
        classifier.network.inputs.table = torch.nn.Parameter(weights["inputs.table"].clone())
    # Not strict: the new head has no weights in the file.
    classifier.network.load_state_dict(weights, strict=False)
    return replace(classifier, frozen=True)


def _open_pooling_classifier(folder: Path) -> SentenceClassifier:
    if not is_sentence_classifier(folder):
        raise TrainError(f"encoder={str(folder)!r} is no classifier of this package; `train real-fake` makes one")
    model = open_sentence_classifier(folder)
    if model.shape.network != "pooling":
        kind = model.shape.network
        raise TrainError(f"encoder={str(folder)!r} is of the kind {kind!r}; expected a pooling classifier")
    return model


def save_classifier(classifier: TrainableClassifier, out: Path) -> None:
    """Write a classifier that ``classifier:DIR`` opens; a language model is copied, so that the folder can be moved."""
    files = {out / WEIGHTS_FILE: serialize_sentence_network(classifier.network)}
    if (lm := classifier.inputs.lm) is None:
        files[out / words.VOCABULARY_FILE] = classifier.inputs.vocabulary.to_json()
    else:
        # The language model's card is copied too, since it states the licence of the weights.
        names = (
            recurrent.WEIGHTS_FILE,
            words.VOCABULARY_FILE,
            *(["README.md"] if (lm.folder / "README.md").is_file() else []),
        )
        files |= {out / LM_FOLDER / name: (lm.folder / name).read_bytes() for name in names}
    for path, content in sorted(files.items()):
        with atomic_write(path) as file:
            file.write(content)


@dataclass(frozen=True, eq=False)
class PackedSentences:
    """The word ids of all sentences, concatenated, and the number of words of every sentence."""

    word_ids: NDArray[np.int32]
    lengths: NDArray[np.int64]

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The index of every sentence's first word."""
        return np.cumsum(self.lengths) - self.lengths

    def select_rows(self, indices: Sequence[int]) -> list[list[int]]:
        """Return the word ids of some sentences."""
        edges = ((self.offsets[index], self.offsets[index] + self.lengths[index]) for index in indices)
        return [self.word_ids[begin:end].tolist() for begin, end in edges]


def pack_sentences(rows: Iterable[Sequence[int]]) -> PackedSentences:
    """Return sentences, given as rows of word ids, in packed form.

    >>> pack_sentences([[5, 6], [7]]).select_rows([1, 0])
    [[7], [5, 6]]
    """
    # Arrays of machine integers, not lists: the rows of a corpus of millions of sentences arrive one at a time.
    word_ids, lengths = array("i"), array("q")
    for row in rows:
        word_ids.extend(row)
        lengths.append(len(row))
    return PackedSentences(np.array(word_ids, np.int32), np.array(lengths, np.int64))


def encode_sentences(classifier: TrainableClassifier, texts: Iterable[str]) -> PackedSentences:
    """Return the word ids of sentences; one without words, or with too many, is an error."""
    return pack_sentences(
        _encode_sentence(text, classifier.inputs.vocabulary, classifier.network.shape.longest) for text in texts
    )


def _encode_sentence(text: str, word_vocabulary: Vocabulary, max_words: int) -> list[int]:
    """Return the word ids of a sentence; ``<unk>`` in the text itself is an unknown word."""
    # Fakes sampled from a language model contain <unk>, which the tokenizer would split into "<", "unk" and ">".
    first, *later_parts = (
        word_vocabulary.to_ids(word_vocabulary.tokenize(part)[0]) for part in text.split(SPECIAL_WORDS[UNKNOWN])
    )
    row = [*first, *(word_id for part in later_parts for word_id in (UNKNOWN, *part))]
    if not 1 <= len(row) <= max_words:
        raise TrainError(f"{shorten(text)!r} has {len(row)} words; a classifier reads from 1 to {max_words}")
    return row


class BatchSource(Protocol):
    """Sentences as inputs of a network, in random access."""

    lengths: NDArray[np.int64]

    def get_batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """Return the arguments of the network for some sentences."""
        ...


class _WordPositions:
    """Where the words of sentences are in the packed form, on a device."""

    def __init__(self, texts: PackedSentences, device: torch.device | str) -> None:
        self.lengths = texts.lengths
        self.offsets, self.sizes = (torch.from_numpy(array).to(device) for array in (texts.offsets, texts.lengths))

    def locate_words(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return the positions of the words of some sentences, (time, rows), and the sentences' lengths."""
        selected = torch.tensor(indices, device=self.sizes.device)
        sizes = self.sizes[selected]
        # The length is taken from NumPy: reading it from a GPU would wait for the device.
        time_steps = torch.arange(int(self.lengths[indices].max()), device=selected.device).unsqueeze(1)
        # A shorter sentence is padded with its own last word, whose position is always valid; networks mask it.
        return self.offsets[selected] + time_steps.minimum(sizes - 1), sizes


class WordIdSource:
    """Sentences as word ids."""

    def __init__(self, texts: PackedSentences, device: torch.device | str) -> None:
        self.lengths, self.positions = texts.lengths, _WordPositions(texts, device)
        self.word_ids = torch.from_numpy(texts.word_ids).to(device)

    def get_batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """Return word ids, (time, rows), and the sentences' lengths."""
        word_positions, sizes = self.positions.locate_words(indices)
        return self.word_ids[word_positions].long(), sizes


class LMStateSource:
    """Sentences as the hidden states of a language model at their words, cached if they fit into memory."""

    def __init__(self, texts: PackedSentences, lm: RecurrentNetwork, max_cache_bytes: int | None = None) -> None:
        device = lm.table.device
        self.texts, self.lm, self.lengths, self.positions = texts, lm, texts.lengths, _WordPositions(texts, device)
        max_cache_bytes = _MAX_CACHE_BYTES.get(device.type, 2 << 30) if max_cache_bytes is None else max_cache_bytes
        self._sizes = (lm.shape.directions, *get_mix_dimensions(lm.shape.layer_widths))
        required_bytes = 4 * math.prod(self._sizes) * len(texts.word_ids)
        self.cached_states = self._compute_all_states() if required_bytes <= max_cache_bytes else None

    def get_batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """Return hidden states, (time, rows, directions, layers, width), and the sentences' lengths."""
        word_positions, sizes = self.positions.locate_words(indices)
        if self.cached_states is None:
            return compute_lm_states(self.lm, self.texts.select_rows(indices)), sizes
        return self.cached_states[word_positions], sizes

    def _compute_all_states(self) -> Tensor:
        """Return the hidden states at all words, in the order of the packed form."""
        all_states = torch.empty(len(self.texts.word_ids), *self._sizes, device=self.lm.table.device)
        for indices in _iter_batches_by_length(self.lengths):
            states = compute_lm_states(self.lm, self.texts.select_rows(indices))
            for column, sentence_index in enumerate(indices):
                begin, length = self.texts.offsets[sentence_index], self.lengths[sentence_index]
                all_states[begin : begin + length] = states[:length, column]
        return all_states


class SentenceVectorSource:
    """Sentences as vectors that a frozen encoder computed once."""

    def __init__(self, network: SentenceNetwork, source: BatchSource) -> None:
        self.lengths = source.lengths
        network.eval()
        with torch.no_grad():
            # Not sorted by length: the vectors are concatenated in the order of the sentences.
            starts = range(0, len(self.lengths), _EVAL_BATCH_SIZE)
            batches = [list(range(start, min(start + _EVAL_BATCH_SIZE, len(self.lengths)))) for start in starts]
            self.vectors = torch.cat([network.encode_sentences(*source.get_batch(indices)) for indices in batches])

    def get_batch(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """Return the vectors of some sentences."""
        return (self.vectors[torch.tensor(indices, device=self.vectors.device)],)


@dataclass(frozen=True)
class LabelledSource:
    """Sentences as inputs of a network, with labels."""

    source: BatchSource
    labels: NDArray[np.float64]


def build_source(classifier: TrainableClassifier, texts: PackedSentences) -> BatchSource:
    """Return sentences as a classifier reads them: as hidden states of its language model, or as word ids."""
    lm = classifier.inputs.lm
    if lm is not None:
        return LMStateSource(texts, lm.net)
    return WordIdSource(texts, next(classifier.network.parameters()).device)


def _iter_batches_by_length(lengths: NDArray[np.int64]) -> Iterator[list[int]]:
    """Yield the indices of all sentences in batches of similar length, for evaluation with little padding."""
    order = np.argsort(lengths, kind="stable").tolist()
    for start in range(0, len(order), _EVAL_BATCH_SIZE):
        yield order[start : start + _EVAL_BATCH_SIZE]


@dataclass(frozen=True)
class ClassifierTrainingResult:
    """How the training of a classifier went.

    Args:
        epochs: The number of epochs, and ``best_epoch`` the one whose weights were kept.
        loss: The mean loss of a sentence in the last epoch (nats).
        mcc: The MCC of the kept weights on the held-out sentences, and ``accuracy`` their accuracy.
    """

    epochs: int
    best_epoch: int
    loss: float
    mcc: float
    accuracy: float
    stopped_early: bool

    def to_facts(self) -> dict[str, object]:
        """Return what the model card lists of it."""
        return {
            "epochs": self.epochs,
            "best epoch": self.best_epoch,
            "loss of a sentence at the end": round(self.loss, 4),
            "stopped early": self.stopped_early,
        }


def fit_classifier(
    classifier: TrainableClassifier,
    recipe: WordRecipe,
    train_and_held_out: tuple[LabelledSentences, LabelledSentences],
    run: CheckpointedRun,
) -> ClassifierTrainingResult:
    """Train a network on some sentences until its MCC on the held-out ones no longer rises."""
    # The cached states and vectors of the inputs must not depend on the number of threads either.
    with use_single_thread():
        train_set, held_out_set = (_make_labelled_source(classifier, labelled) for labelled in train_and_held_out)
    return fit_network(classifier.trained_module, train_set, held_out_set, recipe, run)


def _make_labelled_source(classifier: TrainableClassifier, labelled: LabelledSentences) -> LabelledSource:
    source = build_source(classifier, encode_sentences(classifier, labelled.texts))
    if classifier.frozen:
        source = SentenceVectorSource(classifier.network, source)
    return LabelledSource(source, np.array(labelled.labels, np.float64))


def fit_network(
    net: nn.Module,
    train_set: LabelledSource,
    held_out_set: LabelledSource,
    recipe: WordRecipe,
    run: CheckpointedRun,
) -> ClassifierTrainingResult:
    """Train the trainable parameters of a network; it ends with the weights that are best on ``held_out_set``."""
    process = SingleProcess(next(net.parameters()).device)
    batches = EpochBatches(train_set.source.lengths.tolist(), recipe.batch_size, recipe.seed, _BATCHES_PER_BUCKET)
    task = _make_training_task(
        net, train_set, batches, recipe.learning_rate, process, lambda net: _compute_selection_loss(net, held_out_set)
    )
    schedule = TrainingSchedule(
        steps=recipe.epochs * batches.steps_per_epoch,
        clip=0,
        evaluate_every=batches.steps_per_epoch,
        patience=recipe.patience,
        seed=recipe.seed,
    )
    with use_single_thread():
        result = train_network(task, schedule, run, process)
        # The trainer has restored the best weights, so these are the logits of the best evaluation.
        logits = predict_logits(net, held_out_set.source)
    # The first of several equal evaluations, whose weights the trainer keeps too.
    best_step, _ = min(result.evaluations, key=lambda evaluation: evaluation[1])
    return ClassifierTrainingResult(
        epochs=result.steps // batches.steps_per_epoch,
        best_epoch=best_step // batches.steps_per_epoch,
        loss=float(task.memory["epoch_loss"]) / len(train_set.labels),
        mcc=_compute_mcc(logits, held_out_set.labels),
        accuracy=float(((logits > 0) == (held_out_set.labels > 0)).mean()),
        stopped_early=result.stopped_early,
    )


def _make_training_task(
    net: nn.Module,
    train_set: LabelledSource,
    batches: EpochBatches,
    rate: float,
    process_group: ProcessGroup,
    dev: Callable[[nn.Module], float] | None,
) -> TrainingTask:
    """Return binary cross-entropy on labelled sentences, minimised with Adam.

    The task's memory has the sum of the losses in the current epoch, of the sentences of this process.
    """
    device = process_group.device
    labels = torch.from_numpy(train_set.labels).float().to(device)
    # In the memory of the task, so that a run resumed in the middle of an epoch reports the same loss.
    memory = {"epoch_loss": torch.zeros((), device=device)}

    def select_batch(context: StepContext) -> list[Any]:
        if context.step % batches.steps_per_epoch == 0:
            memory["epoch_loss"].zero_()
        indices = batches.get_batch(context.step)
        indices = indices[context.shard(len(indices))]
        return [(train_set.source.get_batch(indices), labels[torch.tensor(indices, device=device)])]

    def compute_loss(net: nn.Module, batch: Any) -> Tensor:
        inputs, batch_labels = batch
        loss = binary_cross_entropy_with_logits(net(*inputs).float(), batch_labels)
        memory["epoch_loss"] += loss.detach() * len(batch_labels)
        return loss

    optimiser = torch.optim.Adam([parameter for parameter in net.parameters() if parameter.requires_grad], lr=rate)
    tokens_per_step = int(train_set.source.lengths.sum()) // batches.steps_per_epoch
    return TrainingTask(net, [optimiser], select_batch, compute_loss, tokens_per_step, dev, memory)


def _compute_selection_loss(net: nn.Module, held_out_set: LabelledSource) -> float:
    """Return a number that falls as the held-out MCC rises, or, where the MCC is equal, as the held-out loss falls.

    In its first epochs a network may call all sentences acceptable, with an MCC of 0 each time. Without the loss the
    training would then run out of patience while the network still improves.
    """
    logits = predict_logits(net, held_out_set.source)
    loss = float(np.logaddexp(0, np.where(held_out_set.labels > 0, -logits, logits)).mean())
    # The loss, squeezed into 0 to 1, weighs less than any difference in MCC that the sizes of held-out sets allow, and
    # more than the rounding error of a float.
    return 1 - _compute_mcc(logits, held_out_set.labels) + 1e-9 * loss / (1 + loss)


def _compute_mcc(logits: NDArray[np.float64], labels: NDArray[np.float64]) -> float:
    return matthews((logits > 0).astype(np.float64), labels)


def predict_logits(net: nn.Module, source: BatchSource) -> NDArray[np.float64]:
    """Return the logits of all sentences, in their order."""
    net.eval()
    logits = np.empty(len(source.lengths))
    with torch.no_grad():
        for indices in _iter_batches_by_length(source.lengths):
            logits[indices] = net(*source.get_batch(indices)).double().cpu().numpy()
    # NaN compares as "unacceptable" and would pass as an ordinary, bad MCC.
    if not np.isfinite(logits).all():
        raise TrainError("the logits are no longer finite numbers: choose a lower learning rate")
    return logits


@contextmanager
def use_single_thread() -> Iterator[None]:
    """Compute on one CPU thread: the same seed then gives the same weights, bit for bit, on every machine.

    Sums that several threads share differ in their last bits with the number of threads.
    """
    previous_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(previous_threads)


@dataclass(frozen=True, eq=False)
class RealFakeData:
    """Real sentences (label 1) and fakes (label 0).

    Args:
        tally: How many sentences of each kind were generated, and how many were left out for each reason.
    """

    texts: PackedSentences
    labels: np.ndarray[Any, np.dtype[np.int8]]
    tally: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)


def prepare_data(
    recipe: RealFakeRecipe, job: TrainingJob, classifier: TrainableClassifier
) -> tuple[RealFakeData, RealFakeData | None]:
    """Return the sentences to train on and those of the dev set, from the checkpoint if they are there."""
    # Generating fakes can take longer than training on them, so the first checkpoint, of step 0, stores them.
    state = job.checkpoints.latest()
    if state is None:
        tally: Counter[str] = Counter()
        generated = {"read": _generate_data(recipe, job.corpus, recipe.sentences, classifier, job, tally)}
        if job.dev is not None:
            generated["held"] = _generate_data(recipe, job.dev, recipe.dev_sentences, classifier, job, Counter())
        parts = {name: writer for key, data in generated.items() for name, writer in _pack_arrays(key, data).items()}
        state = job.save(0, parts, {"tally": dict(sorted(tally.items()))})
    train_data, dev_data = (_load_arrays(state.parts, key) for key in ("read", "held"))
    assert train_data is not None
    return replace(train_data, tally=cast(dict[str, int], state.facts["tally"])), dev_data


def _pack_arrays(key: str, data: RealFakeData) -> dict[str, Any]:
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "numbers": data.texts.word_ids,
        "lengths": data.texts.lengths,
        "labels": data.labels,
    }
    return {f"{key}_{name}": make_array_writer(values) for name, values in arrays.items()}


def _load_arrays(parts: Any, key: str) -> RealFakeData | None:
    if f"{key}_labels" not in parts:
        return None
    word_ids, lengths, labels = (np.load(parts[f"{key}_{name}"]) for name in ("numbers", "lengths", "labels"))
    return RealFakeData(PackedSentences(word_ids, lengths), labels)


def _generate_data(
    recipe: RealFakeRecipe,
    corpus: Corpus,
    max_sentences: int,
    classifier: TrainableClassifier,
    job: TrainingJob,
    tally: Counter[str],
) -> RealFakeData:
    """Return sentences, real and fake, that are generated from a corpus; 0 means as many as it yields."""
    # Imported here, since that module's recipe imports this one.
    from acceptability.train.classifiers.real_fake import generate_real_fake_texts

    labels: list[int] = []

    def generate_texts() -> Iterator[str]:
        for text, label in generate_real_fake_texts(
            corpus, recipe.lm, seed=recipe.seed, limit=max_sentences or None, tally=tally
        ):
            labels.append(label)
            if len(labels) % _PROGRESS_EVERY == 0:
                job.report_progress(TrainingProgress("generating fakes", len(labels), max_sentences or None))
            yield text

    packed = encode_sentences(classifier, generate_texts())
    if len(set(labels)) < 2:
        raise TrainError(f"the text gives {len(labels)} sentences, not both real and fake ones: give more text")
    return RealFakeData(packed, np.array(labels, np.int8))


def train_discriminator(
    recipe: RealFakeRecipe,
    job: TrainingJob,
    classifier: TrainableClassifier,
    train_and_dev: tuple[RealFakeData, RealFakeData | None],
    process_group: ProcessGroup,
) -> TrainingResult:
    """Train a network to distinguish real sentences from fakes, until its MCC on the dev set no longer rises."""
    train_data, dev_data = train_and_dev
    batches = EpochBatches(
        train_data.texts.lengths.tolist(),
        min(recipe.batch_size, len(train_data)),
        recipe.seed,
        _BATCHES_PER_BUCKET,
        # Several processes divide every batch evenly among them.
        drop_last=True,
    )
    train_set = _make_pair_source(classifier, train_data)
    dev_loss = None if dev_data is None else _make_dev_loss(_make_pair_source(classifier, dev_data))
    task = _make_training_task(classifier.network, train_set, batches, recipe.learning_rate, process_group, dev_loss)
    schedule = TrainingSchedule(
        steps=recipe.epochs * batches.steps_per_epoch,
        evaluate_every=recipe.evaluate_every or batches.steps_per_epoch,
        patience=recipe.patience if dev_data is not None else 0,
        save_every=recipe.save_every,
        seed=recipe.seed,
    )
    return train_network(task, schedule, job, process_group)


def _make_pair_source(classifier: TrainableClassifier, data: RealFakeData) -> LabelledSource:
    return LabelledSource(build_source(classifier, data.texts), data.labels.astype(np.float64))


def _make_dev_loss(dev_set: LabelledSource) -> Callable[[nn.Module], float]:
    """Return a function that falls as the MCC on the dev set rises."""
    return lambda net: 1 - _compute_mcc(predict_logits(net, dev_set.source), dev_set.labels)


def count_unigrams(classifier: TrainableClassifier, train_data: RealFakeData) -> dict[str, int]:
    """Return the frequency of every word in the real sentences."""
    # Fakes are left out: unigrams.tsv is for SLOR, which needs frequencies of real text.
    is_real = np.repeat(train_data.labels == 1, train_data.texts.lengths)
    words = classifier.inputs.vocabulary.words
    counts = np.bincount(train_data.texts.word_ids[is_real], minlength=len(words)).tolist()
    return {word: count for word, count in zip(words, counts, strict=True) if word not in ("<s>", "</s>")}


def collect_facts(
    classifier: TrainableClassifier,
    train_data: RealFakeData,
    dev_data: RealFakeData | None,
    training_result: TrainingResult,
) -> dict[str, object]:
    """Return what the model card lists: the number of sentences, and how well real and fake ones are distinguished."""
    training_facts: dict[str, object] = {
        "sentences, real and fake": len(train_data),
        "share of real sentences": round(float(train_data.labels.mean()), 4),
        "sentences generated and left out": dict(train_data.tally),
        "steps": training_result.steps,
        "loss of a sentence at the end": round(training_result.loss, 4),
        "stopped early": training_result.stopped_early,
    }
    if dev_data is None:
        return training_facts
    logits = predict_logits(classifier.network, _make_pair_source(classifier, dev_data).source)
    correct = (logits > 0) == (dev_data.labels > 0)
    mcc = _compute_mcc(logits, dev_data.labels.astype(np.float64))
    return training_facts | {
        "sentences of the dev set, real and fake": len(dev_data),
        "real/fake accuracy on the dev set": round(float(correct.mean()), 4),
        "real/fake MCC on the dev set": round(mcc, 4),
    }
