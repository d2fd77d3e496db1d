"""Folders of trained classifiers: which restarts belong together, and which row of which paper they correspond to.

A group is a folder whose sub-folders are the restarts of a classifier, ``GROUP/KIND-SEED``. The name of the group says
what it is for: a number is a size on the learning curve of Figure 3, ``split-NAME`` a split of Table 5; any other name
is a row of Table 4. The row of the paper follows from the ``recipe.json`` that training writes into each folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from acceptability.errors import ModelError
from acceptability.specs import parse_model_spec
from acceptability.train.recipe import RECIPE_FILE, update_metadata

BASELINE_ROW = "CoLA baseline (W&B)"
DESIGN_ROW = "Pooling, ELMo-Style, Real/Fake, CoLA"
"""The classifier of Table 5 and Figures 3 and 4, which is also the baseline of Warstadt and Bowman (2019)."""

_TRANSFORMER_ROWS = {
    "bert-base-uncased": "BERT base-uncased",
    "bert-large-uncased": "BERT large-uncased",
    "bert-large-cased": "BERT large-cased",
    "openai-gpt": "GPT (W&B)",
}
"""Rows of the ADC paper's Table 5, by the checkpoint that was fine-tuned."""

# No colon within a match: "elmo:recurrent:/models/lstm" is a path inside a spec, whose prefixes must stay, since they
# name the kind of vectors.
_FOLDER_PATTERN = re.compile(r"[^:]*/")
_SPLIT_PREFIX = "split-"


@dataclass(frozen=True)
class TrainedClassifier:
    """A classifier that ``acceptability`` trained, as its ``recipe.json`` describes it.

    Args:
        folder: Where it is saved.
        kind: The name of its recipe, such as ``cbow``.
        options: The options of its recipe.
        held_out_mcc: Its MCC on held-out sentences, of CoLA or of the real/fake task; None if it was not recorded.
        data: The hash of its training data.
        facts: Whatever else training recorded.
    """

    folder: Path
    kind: str
    options: Mapping[str, Any]
    held_out_mcc: float | None
    data: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> str:
        """The spec that loads the classifier as a model."""
        return f"classifier:{self.folder}"

    @property
    def description(self) -> str:
        """The recipe and its inputs, in a few words."""
        named_options = {name: self.options.get(name) for name in ("model", "vectors", "encoder", "frozen")}
        inputs = ", ".join(f"{name}={_strip_folders(value)}" for name, value in named_options.items() if value)
        return f"{self.kind} ({inputs or 'word vectors learnt with it'})"

    @property
    def input_description(self) -> str:
        """The dimension of its word vectors and their coverage of the training text, as far as recorded."""
        width, coverage = self.facts.get("dimension of word vectors"), self.facts.get("token coverage")
        parts = (
            f"word vectors of {width} dimensions" if width else "",
            f"token coverage {coverage:.1%}" if coverage else "",
        )
        return ", ".join(filter(None, parts))


def _strip_folders(value: object) -> str:
    """Return the value of an option without the folders of the machine it was trained on.

    >>> _strip_folders("elmo:recurrent:/data/models/lstm"), _strip_folders("/data/glove.txt")
    ('elmo:recurrent:lstm', 'glove.txt')
    """
    return _FOLDER_PATTERN.sub("", str(value))


def read_trained_classifier(folder: Path) -> TrainedClassifier:
    """Return the classifier in a folder, as its ``recipe.json`` describes it."""
    metadata = _read_metadata(folder / RECIPE_FILE)
    if not isinstance(metadata.get("kind"), str) or not isinstance(metadata.get("recipe"), dict):
        raise ModelError(
            f"{folder / RECIPE_FILE} lacks 'kind' or 'recipe': it is not of a classifier that acceptability trained"
        )
    facts = metadata.get("facts", {})
    # Classifiers record their MCC among the results; encoders of the real/fake task have no results on CoLA, and
    # record the MCC on their own development set among the facts.
    held_out_mcc = metadata.get("results", {}).get("held out", {}).get("mcc", facts.get("real/fake MCC on the dev set"))
    return TrainedClassifier(
        folder, metadata["kind"], metadata["recipe"], held_out_mcc, str(metadata.get("data", "")), facts
    )


def _read_metadata(file: Path) -> dict[str, Any]:
    try:
        metadata = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {file}: {error}. Delete that folder, or train the classifier again.") from error
    # Under the present names of options and facts, whichever version trained the classifier.
    return update_metadata(metadata) if isinstance(metadata, dict) else {}


def find_trained_classifier(model: str) -> TrainedClassifier | None:
    """Return the classifier that a model spec refers to; None if its folder has no ``recipe.json``."""
    _, path, _ = parse_model_spec(model)
    return read_trained_classifier(Path(path)) if path and (Path(path) / RECIPE_FILE).is_file() else None


def is_trained_classifier(folder: Path) -> bool:
    """Return whether a folder holds a completely trained classifier."""
    # Training writes recipe.json last, so a run that was interrupted has none and is not taken for a classifier.
    return (folder / RECIPE_FILE).is_file()


def find_table_4_row(classifier: TrainedClassifier) -> str | None:
    """Return the row of Table 4 for a classifier of this kind; None if the paper has none like it.

    Rows are named by model, embeddings, training of the encoder, and training of the classifier.
    """
    if classifier.kind == "cbow":
        # The paper's bag of words has the embeddings of a language model. One that learns its embeddings from CoLA
        # alone is a different model, and must not appear under the same name.
        return "CBOW" if str(classifier.options.get("vectors", "")).startswith("recurrent:") else None
    if classifier.kind == "real-fake":
        return f"Pooling, {_name_embeddings(classifier)}, Real/Fake, Real/Fake"
    if classifier.kind != "pooling":
        return None
    if classifier.options.get("encoder"):
        return f"Pooling, {_name_embeddings(classifier)}, Real/Fake, CoLA"
    # Without an encoder from the real/fake task, the paper has a row for ELMo-style embeddings only.
    return (
        f"Pooling, {_name_embeddings(classifier)}, CoLA, CoLA" if _name_embeddings(classifier) == "ELMo-Style" else None
    )


def find_adc_row(classifier: TrainedClassifier) -> str | None:
    """Return the row of the ADC paper's Table 5 for a classifier of this kind; None if there is none like it."""
    if classifier.kind == "transformer":
        # The paper fine-tunes every weight; a probe of a frozen network is a different experiment.
        return (
            None
            if classifier.options.get("frozen")
            else _TRANSFORMER_ROWS.get(_strip_folders(classifier.options.get("model", "")))
        )
    return BASELINE_ROW if find_table_4_row(classifier) == DESIGN_ROW else None


def _name_embeddings(classifier: TrainedClassifier) -> str:
    """Return the paper's name for the embeddings: those of the encoder, if the classifier was built on one.

    The paper's "BNC" embeddings come from its language model; embeddings trained with the classifier count as such too.
    """
    vectors = next((vectors for vectors in _list_vector_options(classifier) if vectors), "")
    if not vectors or vectors.startswith("recurrent:"):
        return "BNC"
    return "ELMo-Style" if vectors.startswith("elmo:") else "GloVe"


def _list_vector_options(classifier: TrainedClassifier) -> Iterator[str]:
    yield str(classifier.options.get("vectors", ""))
    encoder = classifier.options.get("encoder")
    if encoder and is_trained_classifier(Path(encoder)):
        yield str(read_trained_classifier(Path(encoder)).options.get("vectors", ""))


@dataclass(frozen=True)
class RestartGroup:
    """Restarts of one classifier: the same recipe and data, different seeds.

    Args:
        name: The path of the folder, relative to the parent of the folder given to ``--restarts``.
        runs: The restarts, in the order of their seeds.
        size: For a point on the learning curve, how many training sentences they have; else None.
        split: The split of CoLA that they were trained on; empty for the published one.
    """

    name: str
    runs: tuple[TrainedClassifier, ...]
    size: int | None = None
    split: str = ""

    @property
    def best_run_index(self) -> int | None:
        """The index of the run with the highest held-out MCC, the first of equals; None if any run lacks it."""
        # If one run has no MCC, the best of the others need not be the best of all, so none is chosen.
        held_out_mccs = [run.held_out_mcc for run in self.runs if run.held_out_mcc is not None]
        return held_out_mccs.index(max(held_out_mccs)) if len(held_out_mccs) == len(self.runs) else None

    @property
    def description(self) -> str:
        """The recipe and its inputs, in a few words."""
        return self.runs[0].description


def find_groups(folders: Sequence[str | Path]) -> list[RestartGroup]:
    """Return the groups of restarts in some folders and, recursively, in their sub-folders.

    A folder without any classifier is an error.
    """
    return [group for folder in folders for group in _find_groups_below(Path(folder))]


def _find_groups_below(root: Path) -> list[RestartGroup]:
    # Resolved, so that "--restarts ." still gives the group the name of its folder.
    root = root.resolve()
    if not root.is_dir():
        raise ModelError(f"there is no folder {root}; --restarts names one whose sub-folders are classifiers")
    restart_groups = [group for folder in (root, *_list_subfolders(root)) for group in _groups_of_folder(folder, root)]
    if not restart_groups:
        raise ModelError(
            f"no folder in {root} holds a classifier: a sub-folder with a {RECIPE_FILE}, which training writes last"
        )
    return restart_groups


def _list_subfolders(root: Path) -> Iterator[Path]:
    """Yield the folders below one, except those of classifiers and whatever is inside them."""
    for path in sorted(root.iterdir()):
        if path.is_dir() and not is_trained_classifier(path):
            yield path
            yield from _list_subfolders(path)


def _groups_of_folder(folder: Path, root: Path) -> Iterator[RestartGroup]:
    """Yield the groups of one folder: one for each kind of classifier."""
    classifier_folders = sorted(path for path in folder.iterdir() if path.is_dir() and is_trained_classifier(path))
    name = "/".join((root.name, *folder.relative_to(root).parts))
    kinds = [
        (kind, tuple(runs))
        for kind, runs in groupby(_read_sorted_by_kind(classifier_folders), key=lambda classifier: classifier.kind)
    ]
    for kind, runs in kinds:
        group_name = f"{name}, {kind}" if len(kinds) > 1 else name
        split = folder.name.removeprefix(_SPLIT_PREFIX) if folder.name.startswith(_SPLIT_PREFIX) else ""
        yield RestartGroup(group_name, runs, int(folder.name) if folder.name.isdigit() else None, split)


def _read_sorted_by_kind(folders: Iterable[Path]) -> list[TrainedClassifier]:
    # groupby only merges neighbours, hence by kind first. By name alone, seed 10 would come before seed 2.
    return sorted(
        (read_trained_classifier(folder) for folder in folders),
        key=lambda classifier: (classifier.kind, parse_seed(classifier.folder)),
    )


def parse_seed(folder: Path) -> tuple[int, str]:
    """Return a sort key, the seed in a folder's name (``KIND-SEED``) and the name itself; -1 if there is no seed.

    >>> parse_seed(Path("cbow-12"))
    (12, 'cbow-12')
    """
    last = folder.name.rpartition("-")[2]
    return int(last) if last.isdigit() else -1, folder.name
