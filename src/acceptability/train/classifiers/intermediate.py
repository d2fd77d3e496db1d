"""Intermediate training: another labelled task that an encoder is trained on before acceptability.

After Phang et al. (2018), as Warstadt et al. (2019, the NPI paper) do with MNLI and with the categories of CCGbank. A
copy of the network gets a head for the task, and all weights but those of that head are then copied back. Three kinds
of file are read, optionally compressed as .gz or .xz:

- sentence pairs, .tsv with a header or .jsonl: ``premise``, ``hypothesis``, ``label``, or the names in MNLI itself,
  ``sentence1``, ``sentence2``, ``gold_label``; pairs with the label ``-`` (no agreement among annotators) are left out;
- words with tags, CoNLL-U (.conllu): UPOS, or XPOS;
- words with supertags, any other text: one sentence per line, its words as ``word|category`` or ``word|POS|category``.
"""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from acceptability import __version__
from acceptability.errors import ModelError, SuiteError, TrainError, first_error_line
from acceptability.models.files import hash_file
from acceptability.models.hf.loading import pad_rows
from acceptability.text.io import read_lines
from acceptability.train.checkpoint import CheckpointManager, atomic_write
from acceptability.train.classifiers.finetuning import TAG_KINDS, UPOS, XPOS
from acceptability.train.classifiers.finetuning_task import (
    PretrainedNetwork,
    load_network,
    load_pretrained,
    make_optimiser,
    make_schedule,
)
from acceptability.train.classifiers.recipe import CHECKPOINT_FOLDER, EpochBatches
from acceptability.train.recipe import (
    RECIPE_FILE,
    CheckpointedRun,
    TrainingProgress,
    TrainingProgressCallback,
    list_renamed_options,
    read_elapsed_seconds,
    update_facts,
)
from acceptability.train.trainer import SingleProcess, TrainingTask, train_network

if TYPE_CHECKING:
    from acceptability.train.classifiers.finetuning import FineTuningRecipe

_TAG_COLUMNS = {UPOS: 3, XPOS: 4}
_CONLLU_COLUMN_COUNT = 10
_COLUMN_NAMES = {
    "premise": ("premise", "sentence1"),
    "hypothesis": ("hypothesis", "sentence2"),
    "label": ("label", "gold_label"),
}
NLI_LABELS = ("entailment", "neutral", "contradiction")
# Releases of MNLI as JSON, such as that of GLUE on the Hub, number the labels in this order.
_LABEL_OF_NUMBER = {str(number): name for number, name in enumerate(NLI_LABELS)}
_NO_LABEL = "-"
_COMPRESSED_SUFFIXES = (".gz", ".xz")
# A small compressed file can expand to any size: more than this is refused before it fills the memory.
_MAX_BYTES = 1 << 31
# The label that torch's cross-entropy skips: of special tokens, later tokens of a word, padding, and words without tag.
_IGNORE_INDEX = -100
# A tenth is held out to report the accuracy in the task, but no more than gives it to about one percentage point.
_HELD_OUT_DIVISOR = 10
_MAX_HELD_OUT = 2000
_EVAL_BATCH_SIZE = 64


@dataclass(frozen=True)
class SentencePair:
    """Two sentences, and the inference relation between them."""

    premise: str
    hypothesis: str
    label: str


@dataclass(frozen=True)
class TaggedSentence:
    """The words of a sentence and their tags; an empty tag is a missing one."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class IntermediateTask:
    """The examples of an intermediate task.

    Args:
        examples: Sentence pairs, or tagged sentences: all of one kind.
        labels: The classes, in alphabetical order.
        unlabelled_count: How many pairs had no label.
    """

    name: str
    kind: str
    examples: tuple[SentencePair, ...] | tuple[TaggedSentence, ...]
    labels: tuple[str, ...]
    unlabelled_count: int = 0


@dataclass(frozen=True)
class _TokenizedTask:
    """Rows of tokens, with one label per row (sentence pairs) or per token (tagged words)."""

    token_ids: list[list[int]]
    labels: list[list[int]]

    def select(self, indices: Sequence[int]) -> _TokenizedTask:
        """Return some of the rows."""
        return _TokenizedTask([self.token_ids[index] for index in indices], [self.labels[index] for index in indices])


def train_and_save_encoder(
    recipe: FineTuningRecipe, out: Path, device: torch.device, progress: TrainingProgressCallback
) -> dict[str, object]:
    """Train an encoder on the intermediate task and save it without a head, for several classifiers to start from.

    A finished encoder in the folder is not trained again, and an unfinished one is resumed.

    Returns:
        The facts of ``train_intermediate_task``, which are also stored in the folder's ``recipe.json``.
    """
    if (out / RECIPE_FILE).is_file():
        return update_facts(json.loads((out / RECIPE_FILE).read_text(encoding="utf-8")))
    pretrained = load_pretrained(recipe)
    identity = {"kind": recipe.kind, "acceptability": __version__}
    checkpoints = CheckpointManager(out / CHECKPOINT_FOLDER, identity, list_renamed_options(recipe))
    run = CheckpointedRun(checkpoints=checkpoints, report_progress=progress)
    facts = train_intermediate_task(recipe, pretrained, device, run)
    # Without the untrained head: every classifier then initialises one of its own, with its own seed.
    body = {name: weight for name, weight in pretrained.net.state_dict().items() if name not in pretrained.new_weights}
    pretrained.net.save_pretrained(out, state_dict=body)
    pretrained.tokenizer.save_pretrained(out)
    # Written last: its presence means that the encoder is complete.
    with atomic_write(out / RECIPE_FILE) as file:
        file.write(json.dumps(facts, indent=1, ensure_ascii=False).encode())
    checkpoints.clear()
    return facts


def train_intermediate_task(
    recipe: FineTuningRecipe, pretrained: PretrainedNetwork, device: torch.device, run: CheckpointedRun
) -> dict[str, object]:
    """Train a copy of a network on the intermediate task, and copy its weights into the network.

    Returns:
        What the model card lists of the task: its size, and the accuracy on held-out examples.
    """
    task = read_intermediate_task(recipe.intermediate, recipe.tags)
    rows = _tokenize_task(task, pretrained.tokenizer, pretrained.files.max_length)
    # Held out at random: a treebank, for example, is ordered by documents.
    order = np.random.default_rng(recipe.seed).permutation(len(rows.token_ids)).tolist()
    held_out_indices = order[: min(_MAX_HELD_OUT, max(1, len(order) // _HELD_OUT_DIVISOR))]
    train_indices = order[len(held_out_indices) :]
    if not train_indices:
        raise TrainError(f"{task.name} has one example: at least two are needed, one of them to be held out")
    train_rows, held_out_rows = rows.select(train_indices), rows.select(held_out_indices)
    # Checked before the training, which may take hours, and not after it.
    if all(label == _IGNORE_INDEX for labels in held_out_rows.labels for label in labels):
        raise TrainError(f"{task.name}: none of the held-out sentences has a tag")
    net = _load_task_network(recipe, pretrained, task).to(device)
    file_hash = hash_file(Path(recipe.intermediate).expanduser())
    accuracy = _train_on_task(
        recipe, net, pretrained, (train_rows, held_out_rows), device, _open_nested_run(recipe, run, file_hash)
    )
    _copy_body_weights(net.cpu(), pretrained)
    return {
        "intermediate task": task.kind,
        "file of the intermediate task": f"{task.name}#{file_hash[:8]}",
        "labels of the intermediate task": len(task.labels),
        "examples of the intermediate task": len(train_indices),
        "examples without a label": task.unlabelled_count,
        "accuracy in the intermediate task": round(accuracy, 4),
    }


def _open_nested_run(recipe: FineTuningRecipe, run: CheckpointedRun, file_hash: str) -> CheckpointedRun:
    """Return a run whose checkpoints lie within those of another, and are removed with them.

    They stay until the classifier is finished. A run that is killed while it is fine-tuned on acceptability then takes
    the weights of the intermediate task from them, instead of training it again.
    """

    def report_progress(progress: TrainingProgress) -> None:
        run.report_progress(replace(progress, stage=f"intermediate task: {progress.stage}"))

    identity = {**run.checkpoints.run_identity, "recipe": vars(recipe), "intermediate": file_hash}
    checkpoints = CheckpointManager(run.checkpoints.folder / "intermediate", identity, run.checkpoints.renamed_options)
    return CheckpointedRun(
        checkpoints=checkpoints,
        report_progress=report_progress,
        earlier_seconds=read_elapsed_seconds(checkpoints.latest()),
    )


def _train_on_task(
    recipe: FineTuningRecipe,
    net: Any,
    pretrained: PretrainedNetwork,
    train_and_held_out: tuple[_TokenizedTask, _TokenizedTask],
    device: torch.device,
    run: CheckpointedRun,
) -> float:
    """Train a network on the intermediate task, and return its accuracy on the held-out examples."""
    train_rows, held_out_rows = train_and_held_out
    lengths, pad_token_id = [len(row) for row in train_rows.token_ids], pretrained.pad_token_id
    batches = EpochBatches(lengths, recipe.batch_size, recipe.seed)

    def compute_loss(net: Any, indices: Sequence[int]) -> Tensor:
        logits, labels = _compute_logits_and_labels(net, train_rows, indices, pad_token_id)
        return functional.cross_entropy(logits.float(), labels, ignore_index=_IGNORE_INDEX)

    training_task = TrainingTask(
        net,
        [make_optimiser(recipe, net, pretrained.new_weights)],
        lambda context: [batches.get_batch(context.step)],
        compute_loss,
        tokens_per_step=sum(lengths) // batches.steps_per_epoch,
        # Evaluated once, at the end: the accuracy is reported, and chooses no weights.
        dev=lambda net: 1 - _compute_accuracy(net, held_out_rows, pad_token_id),
    )
    schedule = make_schedule(recipe, len(lengths), epochs=recipe.intermediate_epochs)
    result = train_network(training_task, schedule, run, SingleProcess(device))
    assert result.dev_loss is not None
    return 1 - result.dev_loss


def _load_task_network(recipe: FineTuningRecipe, pretrained: PretrainedNetwork, task: IntermediateTask) -> Any:
    """Return the network with a head for the task, of the class that transformers has for the architecture."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    is_pairs = isinstance(task.examples[0], SentencePair)
    auto_class = AutoModelForSequenceClassification if is_pairs else AutoModelForTokenClassification
    # A copy: the configuration of the classifier keeps its two labels.
    config = type(pretrained.net.config).from_dict(pretrained.net.config.to_dict())
    config.id2label = dict(enumerate(task.labels))
    config.label2id = {name: number for number, name in enumerate(task.labels)}
    try:
        # from_pretrained initialises the head from torch's global generator.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            return load_network(auto_class, pretrained.files, config)[0]
    # transformers raises a ValueError for an architecture without a class for the task.
    except (ValueError, ModelError) as error:
        raise TrainError(
            f"{pretrained.files.name} cannot be trained on {task.kind}: {first_error_line(error)}"
        ) from error


def _copy_body_weights(trained: Any, pretrained: PretrainedNetwork) -> None:
    """Copy into a network all weights that another one shares with it, except for its own head."""
    trained_weights = dict(trained.named_parameters())
    with torch.no_grad():
        for name, parameter in pretrained.net.named_parameters():
            trained_weight = trained_weights.get(name)
            # A weight with the same name but another shape is in the head, which has one row per label.
            if (
                name not in pretrained.new_weights
                and trained_weight is not None
                and trained_weight.shape == parameter.shape
            ):
                parameter.copy_(trained_weight)


def _tokenize_task(task: IntermediateTask, tokenizer: Any, max_length: int) -> _TokenizedTask:
    label_ids = {name: number for number, name in enumerate(task.labels)}
    tokenized = _TokenizedTask([], [])
    for example in task.examples:
        if isinstance(example, SentencePair):
            ids, labels = tokenize_pair(example, tokenizer), [label_ids[example.label]]
        else:
            ids, labels = tokenize_tagged_words(example, label_ids, tokenizer)
        # Truncated silently, unlike sentences to be judged: no published number is measured on this task.
        tokenized.token_ids.append(ids[:max_length])
        tokenized.labels.append(labels if isinstance(example, SentencePair) else labels[:max_length])
    return tokenized


def tokenize_pair(pair: SentencePair, tokenizer: Any) -> list[int]:
    """Return the tokens of premise and hypothesis as one row: ``[CLS] premise [SEP] hypothesis [SEP]`` for BERT."""
    # Not the tokenizer's own format for pairs: that of a causal model's tokenizer has no separator.
    first = tokenizer(pair.premise, verbose=False)["input_ids"]
    second = tokenizer(pair.hypothesis, return_special_tokens_mask=True, verbose=False)
    begin = second["special_tokens_mask"].index(0) if 0 in second["special_tokens_mask"] else 0
    return [*first, *second["input_ids"][begin:]]


def tokenize_tagged_words(
    sentence: TaggedSentence, label_ids: dict[str, int], tokenizer: Any
) -> tuple[list[int], list[int]]:
    """Return the tokens of a sentence and their labels: a word's tag at its first token, ``-100`` elsewhere."""
    encoded = tokenizer(" ".join(sentence.words), return_offsets_mapping=True, verbose=False)
    labels, spans = [_IGNORE_INDEX] * len(encoded["input_ids"]), encoded["offset_mapping"]
    # Tokens are aligned with words by characters. Tokenizers may drop characters or include the space before a word in
    # its first token, so that word boundaries and token boundaries need not coincide.
    word_start, token_index = 0, 0
    for word, tag in zip(sentence.words, sentence.tags, strict=True):
        while token_index < len(spans) and not (
            spans[token_index][1] > word_start and spans[token_index][1] > spans[token_index][0]
        ):
            token_index += 1
        # A word that the tokenizer dropped has no token of its own, and its tag no position.
        if token_index < len(spans) and tag and spans[token_index][0] < word_start + len(word):
            labels[token_index] = label_ids[tag]
            token_index += 1
        word_start += len(word) + 1
    return encoded["input_ids"], labels


def _compute_logits_and_labels(
    net: Any, rows: _TokenizedTask, indices: Sequence[int], pad_token_id: int
) -> tuple[Tensor, Tensor]:
    """Return the logits and the labels of some rows, one entry per sentence pair or per token."""
    ids, mask = pad_rows([rows.token_ids[index] for index in indices], pad_token_id)
    device = next(net.parameters()).device
    logits = net(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
    row_labels = [rows.labels[index] for index in indices]
    # Sentence pairs have logits of shape (rows, labels), tagged words (rows, tokens, labels).
    if logits.ndim == 2:
        return logits, torch.tensor([labels[0] for labels in row_labels], device=device)
    width = ids.shape[1]
    padded_labels = torch.tensor(
        [[*labels, *[_IGNORE_INDEX] * (width - len(labels))] for labels in row_labels], device=device
    )
    return logits.flatten(0, 1), padded_labels.flatten()


def _compute_accuracy(net: Any, rows: _TokenizedTask, pad_token_id: int) -> float:
    """Return the share of correct labels."""
    correct, total = 0, 0
    for start in range(0, len(rows.token_ids), _EVAL_BATCH_SIZE):
        indices = range(start, min(start + _EVAL_BATCH_SIZE, len(rows.token_ids)))
        logits, labels = _compute_logits_and_labels(net, rows, indices, pad_token_id)
        has_label = labels != _IGNORE_INDEX
        correct += int((logits.argmax(-1) == labels)[has_label].sum())
        total += int(has_label.sum())
    return correct / total


def read_intermediate_task(file: str | Path, tags: str = UPOS) -> IntermediateTask:
    """Return the examples in a file; an error names the line.

    Args:
        tags: Which tags of a CoNLL-U file are read: upos or xpos.
    """
    path = Path(file).expanduser()
    content, suffix = _read_content(path)
    try:
        if suffix in (".tsv", ".jsonl"):
            return _make_pair_task(path.name, list(_read_pairs(content, path.name, suffix)))
        sentences = (
            _read_conllu(content, path.name, tags) if suffix == ".conllu" else _read_supertags(content, path.name)
        )
        return _make_tagging_task(path.name, tags if suffix == ".conllu" else "supertags", list(sentences))
    except SuiteError as error:
        raise TrainError(str(error)) from error


def _read_content(path: Path) -> tuple[bytes, str]:
    """Return the decompressed bytes of a file, and its suffix without that of the compression."""
    try:
        with _open_compressed(path) as file:
            # One byte more than allowed shows that there is more.
            content = file.read(_MAX_BYTES + 1)
    except (OSError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise TrainError(f"cannot read {path}: {error}") from error
    if len(content) > _MAX_BYTES:
        raise TrainError(f"{path} holds more than {_MAX_BYTES:,} bytes, the limit for an intermediate task")
    return content, Path(path.stem).suffix if path.suffix in _COMPRESSED_SUFFIXES else path.suffix


def _open_compressed(path: Path) -> IO[bytes] | gzip.GzipFile | lzma.LZMAFile:
    if path.suffix == ".gz":
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _make_pair_task(name: str, pairs: list[SentencePair | None]) -> IntermediateTask:
    labelled_pairs = tuple(pair for pair in pairs if pair is not None)
    labels = tuple(sorted({pair.label for pair in labelled_pairs}))
    if len(labels) < 2:
        raise TrainError(
            f"{name} has {len(labelled_pairs)} labelled pairs with {len(labels)} labels: at least two are needed"
        )
    return IntermediateTask(name, "sentence pairs", labelled_pairs, labels, len(pairs) - len(labelled_pairs))


def _make_tagging_task(name: str, tag_kind: str, sentences: list[TaggedSentence]) -> IntermediateTask:
    labels = tuple(sorted({tag for sentence in sentences for tag in sentence.tags if tag}))
    if len(labels) < 2:
        raise TrainError(f"{name} has {len(sentences)} sentences with {len(labels)} tags: at least two are needed")
    return IntermediateTask(name, f"words with tags ({tag_kind})", tuple(sentences), labels)


def _read_pairs(content: bytes, name: str, suffix: str) -> Iterator[SentencePair | None]:
    """Yield sentence pairs, and None for every pair without a label."""
    for number, row in _read_json_rows(content, name) if suffix == ".jsonl" else _read_tsv_rows(content, name):
        cells = {}
        for field, column_names in _COLUMN_NAMES.items():
            column = next((column for column in column_names if column in row), None)
            if column is None:
                raise TrainError(
                    f"{name}, line {number}: there is no {' or '.join(column_names)}; there is {', '.join(row)}"
                )
            cells[field] = str(row[column]).strip()
        label = _LABEL_OF_NUMBER.get(cells["label"], cells["label"])
        if label == _NO_LABEL:
            yield None
            continue
        if label not in NLI_LABELS:
            raise TrainError(
                f"{name}, line {number}: label is {label!r}; expected {', '.join(NLI_LABELS)}, or - for none"
            )
        if not (cells["premise"] and cells["hypothesis"]):
            raise TrainError(f"{name}, line {number}: premise or hypothesis is empty")
        yield SentencePair(cells["premise"], cells["hypothesis"], label)


def _read_tsv_rows(content: bytes, name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield line numbers and rows of a file with a header."""
    # Not the csv module: MNLI's files have unbalanced quotation marks in sentences, and no quoting.
    rows = read_lines(content, name)
    header = next(rows, (0, ""))[1].split("\t")
    for number, line in rows:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise TrainError(f"{name}, line {number}: {len(cells)} columns; the header has {len(header)}")
        yield number, dict(zip(header, cells, strict=True))


def _read_json_rows(content: bytes, name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in read_lines(content, name):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TrainError(f"{name}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise TrainError(f"{name}, line {number}: expected an object with premise, hypothesis and label")
        yield number, row


def _read_conllu(content: bytes, name: str, tags: str) -> Iterator[TaggedSentence]:
    """Yield the sentences of a treebank: its syntactic words, without multiword tokens and empty nodes."""
    if tags not in TAG_KINDS:
        raise TrainError(f"tags is {tags!r}; expected {' or '.join(TAG_KINDS)}")
    words: list[tuple[str, str]] = []
    for number, line in enumerate(content.decode("utf-8").split("\n"), start=1):
        if not line.strip():
            yield from _make_tagged_sentence(words)
            words = []
        elif not line.startswith("#"):
            # Files from Windows end their lines with a carriage return.
            cells = line.rstrip("\r").split("\t")
            if len(cells) != _CONLLU_COLUMN_COUNT:
                raise TrainError(f"{name}, line {number}: {len(cells)} columns; CoNLL-U has {_CONLLU_COLUMN_COUNT}")
            # The ID of a multiword token is a range (2-3), that of an empty node a decimal number (3.1).
            if cells[0].isdigit():
                tag = cells[_TAG_COLUMNS[tags]]
                # An underscore is the missing value of CoNLL-U.
                words.append((cells[1], "" if tag == "_" else tag))
    yield from _make_tagged_sentence(words)


def _read_supertags(content: bytes, name: str) -> Iterator[TaggedSentence]:
    for number, line in read_lines(content, name):
        words = []
        for token in line.split():
            # Split from the right, since the word itself may be a bar.
            parts = token.rsplit("|", 2 if token.count("|") > 1 else 1)
            if len(parts) < 2 or not all(parts):
                raise TrainError(
                    f"{name}, line {number}: {token!r} is no word with a supertag; expected word|category or "
                    "word|POS|category. Sentence pairs end in .tsv or .jsonl, treebanks in .conllu."
                )
            words.append((parts[0], parts[-1]))
        yield from _make_tagged_sentence(words)


def _make_tagged_sentence(words: list[tuple[str, str]]) -> Iterator[TaggedSentence]:
    if words:
        yield TaggedSentence(*(tuple(column) for column in zip(*words, strict=True)))
