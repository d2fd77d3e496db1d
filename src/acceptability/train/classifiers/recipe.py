"""What all classifier recipes share: labelled sentences, the held-out split, batches, and ``train_classifier``.

A classifier recipe is a frozen dataclass with ``reads = "labels"``, whose ``fit`` writes the weights into the folder of
the classifier. ``train_classifier`` adds ``README.md`` and, last of all, ``recipe.json``, which describes how to repeat
the run: a folder without it is unfinished.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from acceptability import __version__
from acceptability.errors import TrainError
from acceptability.specs import fingerprint
from acceptability.suites import load_suite
from acceptability.train.checkpoint import CheckpointManager, atomic_write
from acceptability.train.recipe import (
    RECIPE_FILE,
    CheckpointedRun,
    RecipeDeclaration,
    TrainingProgressCallback,
    collect_versions,
    describe_machine,
    list_renamed_options,
    read_elapsed_seconds,
    read_finished_run,
)
from acceptability.types import Sentence, Suite

# Held-out sentences decide when training stops and which of several runs is best, so that a development set is only
# ever reported on. The seed is fixed: all recipes and restarts on one data set must be compared on the same sentences.
HELD_OUT_SHARE = 0.1
HELD_OUT_SEED = 20_190_101
CHECKPOINT_FOLDER = ".checkpoint"


@dataclass(frozen=True)
class LabelledSentences:
    """Sentences with labels: 1 for acceptable, 0 for unacceptable."""

    sentences: Sequence[Sentence]

    def __post_init__(self) -> None:
        unlabelled = [sentence.id for sentence in self.sentences if sentence.label is None]
        if unlabelled:
            raise TrainError(
                f"{len(unlabelled)} sentences have no label, {unlabelled[0]!r} first; a classifier needs 0 or 1"
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the sentences."""
        return tuple(sentence.text for sentence in self.sentences)

    @property
    def labels(self) -> tuple[int, ...]:
        """The labels of the sentences."""
        return tuple(int(sentence.label or 0) for sentence in self.sentences)

    @property
    def data_hash(self) -> str:
        """A fingerprint of texts and labels in their order."""
        return fingerprint([f"{sentence.label} {sentence.text}".encode() for sentence in self.sentences])

    def __len__(self) -> int:
        return len(self.sentences)

    def select(self, indices: Iterable[int]) -> LabelledSentences:
        """Return the sentences at some indices, in the order of the indices."""
        return LabelledSentences(tuple(self.sentences[index] for index in indices))


def read_labelled_sentences(data: Sequence[str | Suite]) -> LabelledSentences:
    """Return the labelled sentences of suites and tables, concatenated; both labels must occur."""
    suites = [load_suite(source) if isinstance(source, str) else source for source in data]
    labelled = LabelledSentences(tuple(sentence for suite in suites for sentence in suite.sentences))
    labels = set(labelled.labels)
    if len(labels) < 2:
        names = ", ".join(suite.name for suite in suites)
        only_kind = "acceptable" if labels == {1} else "unacceptable"
        raise TrainError(
            f"{names}: all {len(labelled):,} sentences are {only_kind}; a classifier is trained on both kinds"
        )
    return labelled


def split_held_out(
    labelled: LabelledSentences, share: float = HELD_OUT_SHARE, seed: int = HELD_OUT_SEED
) -> tuple[LabelledSentences, LabelledSentences]:
    """Return the training sentences and the held-out ones, stratified by source and label.

    Args:
        share: The share of every source and label that is held out.
    """
    random = np.random.default_rng(seed)
    groups = defaultdict(list)
    for index, sentence in enumerate(labelled.sentences):
        groups[sentence.tags.get("source", ""), sentence.label].append(index)
    held_out_indices: set[int] = set()
    remainder = 0.0
    # In a fixed order, so that the draw depends on the groups and not on which sentence comes first.
    for key in sorted(groups, key=str):
        # The rounding error is carried over to the next group. Otherwise a data set of many small groups, all rounded
        # in the same direction, would have far too few or too many held-out sentences.
        target_count = share * len(groups[key]) + remainder
        count = round(target_count)
        remainder = target_count - count
        held_out_indices.update(random.permutation(groups[key])[:count].tolist())
    training_indices = sorted(set(range(len(labelled))) - held_out_indices)
    train_set, held_out_set = labelled.select(training_indices), labelled.select(sorted(held_out_indices))
    for part, purpose in ((train_set, "train on"), (held_out_set, "hold out")):
        if len(set(part.labels)) < 2:
            raise TrainError(
                f"of the {len(labelled)} sentences, those to {purpose} would have one label only: give more sentences"
            )
    return train_set, held_out_set


def make_bucketed_batches(
    lengths: Sequence[int], batch_size: int, random: np.random.Generator, *, batches_per_bucket: int = 16
) -> list[list[int]]:
    """Return the batches of an epoch: every index once, shuffled, with sentences of similar length in one batch.

    Args:
        batches_per_bucket: Over how many batches' worth of shuffled sentences the sorting by length extends.

    >>> make_bucketed_batches([5, 9, 5, 9], 2, np.random.default_rng(0))
    [[1, 3], [2, 0]]
    """
    order, batches = random.permutation(len(lengths)), []
    # Sorting within buckets saves padding. Sorting all sentences would give the same batches in every epoch.
    for start in range(0, len(order), batches_per_bucket * batch_size):
        bucket = order[start : start + batches_per_bucket * batch_size].tolist()
        bucket.sort(key=lambda index: lengths[index])
        batches += [bucket[first : first + batch_size] for first in range(0, len(bucket), batch_size)]
    # The batches are shuffled again: otherwise every bucket would begin with its shortest sentences.
    return [batches[batch_index] for batch_index in random.permutation(len(batches))]


@dataclass(frozen=True, eq=False)
class EpochBatches:
    """The batches of all epochs as a function of the step, so that a resumed run sees what the killed one would have.

    Args:
        lengths: The length of every sentence, in words or tokens.
        drop_last: Whether the sentences that do not fill a batch are left out of an epoch, as several processes need,
            which divide every batch evenly among them.
    """

    lengths: Sequence[int]
    batch_size: int
    seed: int
    batches_per_bucket: int = 16
    drop_last: bool = False
    _cached_epoch: dict[int, list[list[int]]] = field(default_factory=dict, init=False, repr=False)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in an epoch."""
        full_batches, remainder = divmod(len(self.lengths), self.batch_size)
        return full_batches + (remainder > 0 and not self.drop_last)

    def get_batch(self, step: int) -> list[int]:
        """Return the indices of the sentences in the batch of a step, counted from the beginning of the training."""
        epoch, batch_index = divmod(step, self.steps_per_epoch)
        if epoch not in self._cached_epoch:
            # Seeded by the epoch, not by one generator for all epochs: a resumed run can begin in any of them.
            random = np.random.default_rng([self.seed, epoch])
            batches = make_bucketed_batches(
                self.lengths, self.batch_size, random, batches_per_bucket=self.batches_per_bucket
            )
            # One epoch at a time: the fakes of a corpus can be millions of sentences.
            self._cached_epoch.clear()
            self._cached_epoch[epoch] = [
                indices for indices in batches if len(indices) == self.batch_size or not self.drop_last
            ]
        return self._cached_epoch[epoch][batch_index]


@dataclass(frozen=True)
class FitResult:
    """What a recipe reports of a trained classifier.

    Args:
        facts: What the model card lists: sizes, losses, when training stopped.
        held_out_scores: What the classifier reaches on the held-out sentences: ``mcc`` and ``accuracy``.
    """

    facts: Mapping[str, object]
    held_out_scores: Mapping[str, float]


class ClassifierRecipe(RecipeDeclaration, Protocol):
    """A way to train a classifier on labelled sentences."""

    reads: ClassVar[str] = "labels"

    def fit(
        self,
        train_set: LabelledSentences,
        held_out_set: LabelledSentences,
        out: Path,
        progress: TrainingProgressCallback,
    ) -> FitResult:
        """Train a classifier and write its weights into a folder.

        A recipe whose training takes long saves checkpoints through ``open_checkpointed_run``.

        Args:
            held_out_set: Sentences to stop by and to choose the best weights with.
            out: The folder of the classifier, which exists.
            progress: Called with the stage of the training and how far it is.
        """
        ...


def open_checkpointed_run(
    recipe: ClassifierRecipe,
    train_set: LabelledSentences,
    held_out_set: LabelledSentences,
    out: Path,
    progress: TrainingProgressCallback,
) -> CheckpointedRun:
    """Return the run of a recipe in a folder, which resumes from the last checkpoint there.

    An unfinished run with another recipe or other sentences is an error.
    """
    hashes = {"data": train_set.data_hash, "held out": held_out_set.data_hash}
    identity = _describe_run(recipe, hashes)
    checkpoints = CheckpointManager(out / CHECKPOINT_FOLDER, identity, list_renamed_options(recipe))
    return CheckpointedRun(
        checkpoints=checkpoints,
        report_progress=progress,
        earlier_seconds=read_elapsed_seconds(checkpoints.latest()),
    )


def train_classifier(
    recipe: ClassifierRecipe,
    data: Sequence[str | Suite],
    out: str | Path,
    *,
    licence: str = "",
    progress: TrainingProgressCallback = lambda _: None,
) -> dict[str, Any]:
    """Train a classifier and return the contents of its ``recipe.json``; a finished one is not trained again.

    A run that was killed resumes from its last checkpoint when it is called again with the same arguments.

    Args:
        data: Suites or tables of labelled sentences, concatenated; a tenth of them is held out.
        out: The folder for the classifier; it is made if it does not exist.
        licence: What users of the classifier must know about the rights in its sentences.
        progress: Called with the stage of the training and how far it is.
    """
    folder, labelled = Path(out), read_labelled_sentences(data)
    run_identity = _describe_run(recipe, {"data": labelled.data_hash})
    if (stored_metadata := read_finished_run(folder, run_identity)) is not None:
        return stored_metadata
    train_set, held_out_set = split_held_out(labelled)
    folder.mkdir(parents=True, exist_ok=True)
    run = open_checkpointed_run(recipe, train_set, held_out_set, folder, progress)
    fit_result = recipe.fit(train_set, held_out_set, folder, progress)
    metadata = {
        **run_identity,
        "sentences": len(train_set),
        "held out": len(held_out_set),
        "acceptable": round(sum(labelled.labels) / len(labelled), 4),
        "licence": licence,
        "versions": collect_versions(),
        "seconds": round(run.elapsed_seconds(), 1),
        "machine": describe_machine(),
        "facts": dict(fit_result.facts),
        "results": {"held out": dict(fit_result.held_out_scores)},
    }
    with atomic_write(folder / "README.md") as file:
        file.write(_format_model_card(folder.resolve().name, metadata).encode())
    # recipe.json comes last: its presence means that everything else is complete.
    with atomic_write(folder / RECIPE_FILE) as file:
        file.write(json.dumps(metadata, indent=1, ensure_ascii=False).encode())
    run.checkpoints.clear()
    return metadata


def _describe_run(recipe: ClassifierRecipe, data_hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return what must be equal for two runs to be the same run."""
    # JSON has no tuples: the options must equal those that are read back from recipe.json.
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(recipe).items()}  # type: ignore[call-overload]
    return {"kind": recipe.kind, "recipe": options, **data_hashes, "acceptability": __version__}


def _format_model_card(name: str, metadata: Mapping[str, Any]) -> str:
    rows = {
        **metadata["recipe"],
        **metadata["facts"],
        **{f"held out, {key}": score for key, score in metadata["results"]["held out"].items()},
    }
    paragraphs = (
        f"# {name}",
        f"A classifier of acceptability of the kind `{metadata['kind']}`, trained with acceptability "
        f"{metadata['acceptability']}. Use it as `classifier:FOLDER`, where FOLDER is this folder.",
        f"Trained on {metadata['sentences']:,} sentences; another {metadata['held out']:,} were held out to choose the "
        f"best weights. {metadata['seconds']:,} seconds on {metadata['machine']}.",
        metadata["licence"] or "Nothing is known about the rights in the sentences.",
        "\n".join(f"- {key}: {value}" for key, value in rows.items()),
    )
    return "\n\n".join(paragraphs) + "\n"
