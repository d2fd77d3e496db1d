"""A training run from start to finish: ``train(recipe, corpus, out)``, its progress, its metadata, its options.

A recipe is a frozen dataclass, whose fields are all that can change the model, besides the corpus. The model's folder
has the weights, ``vocabulary.json`` or a tokenizer, ``unigrams.tsv`` for SLOR, a model card (``README.md``) and,
written last, ``recipe.json`` with everything that is needed to repeat the run. On the command line the fields are
options, ``--set order=3``, which ``read_options`` parses.

Options and facts that had other names in the version before: ``rename_options`` makes a recipe accept the former names,
and ``update_metadata`` reads the files that have them.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, fields, replace
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

from acceptability import __version__, registry
from acceptability.api.interface.arguments import as_list
from acceptability.display import ShownMapping, format_html
from acceptability.errors import ModelError, SpecError, TrainError, suggest_name
from acceptability.train.checkpoint import CheckpointManager, CheckpointState, PartWriter, atomic_write
from acceptability.train.corpus import Corpus, CorpusCounts, count_corpus, count_overlap, open_corpus
from acceptability.train.perplexity import perplexity

RECIPE_FILE = "recipe.json"
_PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "safetensors", "varikn")
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_RENAMED_FACTS = {
    "begins with": "pretrained model",
    "began with": "initial model",
    "parameters that learnt": "trainable parameters",
    "sentences cut": "sentences truncated",
    "mcc at each look": "mcc at each evaluation",
    "steps to the best look": "steps to the best evaluation",
    "learnt first": "intermediate task",
    "learnt first from": "file of the intermediate task",
    "labels of that task": "labels of the intermediate task",
    "examples of that task": "examples of the intermediate task",
    "accuracy in that task": "accuracy in the intermediate task",
    "words known": "words in the vocabulary",
    "numbers of a word": "dimension of word vectors",
    "numbers of a sentence": "dimension of sentence vectors",
    "share of different words known": "type coverage",
    "share of running words known": "token coverage",
    "lines left out, their word had come before": "duplicate lines left out",
    "share of real ones": "share of real sentences",
    "sentences made, and left out": "sentences generated and left out",
    "words in the model's own rule": "words by the model's own rule",
    "groups of words in the output": "word groups of the output layer",
    "sentences read in pieces": "sentences divided into pieces",
    "different pairs": "distinct bigrams",
    "passes": "iterations",
    "perplexity of the corpus after each pass": "perplexity of the corpus after each iteration",
    "words that each class foretells most": "most probable words of each class",
}
"""The present names of facts in ``recipe.json`` by those that the version before wrote."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingProgress:
    """How far a run is.

    Args:
        stage: The name of what is being done, in a word or two.
        done: How much of it is done, in the stage's own unit.
        total: How much there is to do; None if that is not known yet.
        tokens: How many words or tokens were processed in this stage.
        loss: The mean negative log-probability of a token (nats), if the recipe has one.
    """

    stage: str
    done: int
    total: int | None = None
    tokens: int = 0
    loss: float | None = None


TrainingProgressCallback = Callable[[TrainingProgress], None]


@dataclass(frozen=True, kw_only=True)
class CheckpointedRun:
    """A training run that saves checkpoints, reports its progress, and resumes after it was killed.

    Args:
        earlier_seconds: How many seconds the killed runs took that this one resumes.
    """

    checkpoints: CheckpointManager
    report_progress: TrainingProgressCallback
    earlier_seconds: float = 0.0
    # Monotonic, as the time of day can be set back while a model trains.
    started_at: float = field(default_factory=time.monotonic)

    def elapsed_seconds(self) -> float:
        """Return how long the training has taken so far, including the runs that it resumes."""
        return self.earlier_seconds + time.monotonic() - self.started_at

    def save(
        self, step: int, parts: Mapping[str, PartWriter], facts: Mapping[str, object] | None = None
    ) -> CheckpointState:
        """Write a checkpoint, from which the same command resumes after anything that ends this process."""
        return self.checkpoints.save(step, parts, facts={**(facts or {}), "seconds": self.elapsed_seconds()})


@dataclass(frozen=True)
class TrainingJob(CheckpointedRun):
    """What a recipe that reads text works on.

    Args:
        out: The folder of the model; the recipe writes its weights there, each file through ``atomic_write``.
        dev: Held-out text, for a recipe that stops when its loss there no longer falls.
    """

    corpus: Corpus
    counts: CorpusCounts
    out: Path
    dev: Corpus | None


@dataclass(frozen=True)
class RecipeOutput:
    """The output of a recipe, besides the weights that it wrote.

    Args:
        unigrams: The corpus count of each unit (word or token) of the model, as the model spells it.
        facts: Sizes, discounts, losses and the like, for ``recipe.json`` and the model card.
    """

    unigrams: Mapping[str, int]
    facts: Mapping[str, object]


class RecipeDeclaration(Protocol):
    """What a recipe says of itself: a frozen dataclass, whose fields are the options ``--set name=value``.

    A recipe has to have ``kind``. The other attributes are optional, and the defaults below are those of every recipe
    that has none of its own, whether or not its class inherits from this one.
    """

    kind: ClassVar[str]
    """Its name in the registry."""

    opened_as: ClassVar[str] = "classifier"
    """The kind of model that it makes, as in ``ngram:FOLDER``."""

    reads: ClassVar[str] = "text"
    """Whether it trains on plain "text" or on sentences with "labels"."""

    renamed_options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The present names of its options by former ones, see ``rename_options``."""

    def sample_hyperparameters(self, seed: int) -> Any:
        """Return the recipe with hyperparameters that are drawn for a search, and with the seed."""
        raise TrainError(
            f"the recipe {self.kind} cannot be searched: its class has no method sample_hyperparameters(seed). "
            "Omit --search, and set its options yourself."
        )


class TrainedModel(ShownMapping[Any]):
    """The content of the ``recipe.json`` of a trained model, which shows itself as a table.

    Args:
        metadata: The content of the file.
        spec: The model's spec, ready for ``score`` and ``evaluate``.
    """

    def __init__(self, metadata: Mapping[str, Any], spec: str) -> None:
        super().__init__(metadata)
        self.spec = spec

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each fact: what it was trained on, for how long, and what it reaches."""
        names = ("sentences", "words", "held out", "seconds")
        rows: list[dict[str, object]] = [
            {"fact": name, "value": self[name]} for name in names if isinstance(self.get(name), int | float)
        ]
        rows += [{"fact": name, "value": value} for name, value in self["facts"].items()]
        for name, value in self["results"].items():
            parts = value.items() if isinstance(value, Mapping) else [("", value)]
            rows += [{"fact": f"{name}: {part}" if part else name, "value": number} for part, number in parts]
        return rows

    def __repr__(self) -> str:
        # Above the table, in which a long path would be cut.
        return f"{self.spec}\n{super().__repr__()}"

    def _repr_html_(self) -> str:
        return format_html(self.rows(), caption=self.spec)


def read_declared(recipe: Any, name: str) -> Any:
    """Return what a recipe, or the class of one, declares: its own attribute, else that of ``RecipeDeclaration``."""
    return getattr(recipe, name, getattr(RecipeDeclaration, name))


class Recipe(RecipeDeclaration, Protocol):
    """A kind of model that is trained on plain text, and how to train it."""

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Train, from the last checkpoint if there is one, and write the weights into ``job.out``."""
        ...


RecipeClass = TypeVar("RecipeClass", bound=type)


def rename_options(**renamed: str) -> Callable[[RecipeClass], RecipeClass]:
    """Return a decorator for a recipe whose options had other names in the version before: they are still accepted.

    Apply it above ``@dataclass``, also to each subclass, since every dataclass has a constructor of its own; a subclass
    inherits the renamed options of its base class. A former name is logged once with the present one.

    Args:
        renamed: The present names by the former ones.
    """

    def decorate(recipe: RecipeClass) -> RecipeClass:
        decorated: Any = recipe
        decorated.renamed_options = {**list_renamed_options(recipe), **renamed}
        construct = decorated.__init__

        # The signature stays that of the dataclass: help, lists of options and copies show the present names alone.
        @wraps(construct)
        def construct_from_any_names(self: Any, *args: object, **options: object) -> None:
            construct(self, *args, **replace_former_options(recipe, options))

        decorated.__init__ = construct_from_any_names
        return recipe

    return decorate


def list_renamed_options(recipe: Any) -> Mapping[str, str]:
    """Return a recipe's renamed options as a mapping from old to current names."""
    renamed: Mapping[str, str] = read_declared(recipe, "renamed_options")
    return renamed


def replace_former_options(recipe: Any, options: Mapping[str, object]) -> dict[str, object]:
    """Return options of a recipe under their present names, and log the former ones among them."""
    replaced: dict[str, object] = {}
    for name, value in options.items():
        present_name = find_present_option(recipe, name)
        if present_name in replaced:
            raise SpecError(f"{recipe.kind}: {present_name} is given twice, once by a former name")
        replaced[present_name] = value
    return replaced


def find_present_option(recipe: Any, name: str) -> str:
    """Return the present name of an option, and log it if the given name is a former one."""
    present_name = list_renamed_options(recipe).get(name, name)
    if present_name != name:
        registry.report_former_name(f"{recipe.kind} option", name, present_name)
    return present_name


def make_recipe(kind: str, options: Mapping[str, object]) -> Recipe:
    """Return the recipe of a name in the registry with some options; former names of options are replaced."""
    recipe = registry.find("recipe", kind)
    made: Recipe = registry.call_factory(recipe, kind, [], replace_former_options(recipe, options))
    return made


def update_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a ``recipe.json`` with the present names of options and facts, without logging anything."""
    updated = dict(metadata)
    if isinstance(updated.get("recipe"), dict):
        updated["recipe"] = rename_stored_options(str(updated.get("kind")), updated["recipe"])
    if isinstance(updated.get("facts"), dict):
        updated["facts"] = update_facts(updated["facts"])
    return updated


def rename_stored_options(kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a recipe that a file holds, under their present names.

    Args:
        kind: The name of the recipe in the registry.
    """
    # The recipe may belong to a package that is not installed here; its options then stay as they are.
    renamed = list_renamed_options(registry.find("recipe", kind)) if kind in registry.names("recipe") else {}
    return {renamed.get(name, name): value for name, value in options.items()}


def update_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts of a ``recipe.json`` under their present names."""
    return {_RENAMED_FACTS.get(name, name): value for name, value in facts.items()}


def train(
    recipe: Recipe,
    corpus: Sequence[str | Path],
    out: str | Path,
    *,
    dev: Sequence[str | Path] = (),
    licence: str = "",
    progress: TrainingProgressCallback = lambda _: None,
) -> dict[str, Any]:
    """Train a model and return the content of its ``recipe.json``; a run that was killed resumes where it stopped.

    Args:
        recipe: The kind of model, with its options.
        corpus: Files and folders of text, one sentence a line.
        out: The folder for the model, which is created if needed.
        dev: Held-out text, whose perplexity is measured; neural recipes choose their weights by it.
        licence: The licence of the training text, for the model card.
        progress: Called with the progress of the training.
    """
    out, train_corpus, dev_corpus = _make_folder(Path(out)), open_corpus(corpus), open_corpus(dev) if dev else None
    corpus_counts, dev_counts = count_corpus(train_corpus), count_corpus(dev_corpus) if dev_corpus else None
    identity = _build_run_identity(recipe, corpus_counts, dev_counts)
    if (finished_metadata := read_finished_run(out, identity)) is not None:
        _log.info("%s holds this model already; nothing was done", out)
        # A run that was killed between writing recipe.json and removing its checkpoint leaves the latter behind.
        _open_checkpoints(recipe, out, identity).clear()
        return finished_metadata
    shared_sentences = _count_shared_sentences(dev_corpus, train_corpus)
    job = TrainingJob(
        train_corpus,
        corpus_counts,
        out,
        dev_corpus,
        checkpoints=_open_checkpoints(recipe, out, identity),
        report_progress=progress,
    )
    # Before any work is done: the checkpoint of another run is an error.
    last_checkpoint = job.checkpoints.latest()
    output = recipe.follow(replace(job, earlier_seconds=read_elapsed_seconds(last_checkpoint)))
    metadata = {
        **identity,
        "files": [path.name for path in train_corpus.files],
        "sentences": corpus_counts.sentences,
        "words": corpus_counts.words,
        "licence": licence,
        "seed": identity["recipe"].get("seed"),
        "versions": collect_versions(),
        # The cost of a model is that of all runs, the killed ones included.
        "seconds": round(replace(job, earlier_seconds=read_elapsed_seconds(last_checkpoint)).elapsed_seconds(), 1),
        "machine": describe_machine(),
        "facts": dict(output.facts),
        # Of the saved files, so that the result is what users of the model get, after rounding to its precision.
        "results": _evaluate_on_dev(f"{find_model_kind(recipe)}:{out}", dev_corpus, shared_sentences),
    }
    _write_text(out / "unigrams.tsv", _format_unigrams(output.unigrams))
    _write_text(out / "README.md", format_model_card(out.resolve().name, find_model_kind(recipe), metadata))
    # Last, as this file marks the model as finished.
    _write_text(out / RECIPE_FILE, json.dumps(metadata, indent=1, ensure_ascii=False))
    job.checkpoints.clear()
    return metadata


def train_from_options(
    kind: str,
    out: str | Path,
    *,
    corpus: str | Path | Sequence[str | Path] = (),
    data: str | Sequence[str] = (),
    dev: str | Path | Sequence[str | Path] = (),
    options: Mapping[str, object] | Sequence[str] = (),
    intermediate: str = "",
    licence: str = "",
    progress: TrainingProgressCallback = lambda _: None,
) -> TrainedModel:
    """Train by a recipe that is given by its name, from text or from labelled sentences, and return its metadata.

    A run that was killed resumes where it stopped when the function is called again with the same arguments.

    Args:
        kind: The name of the recipe, such as ``ngram``; ``acceptability recipes`` lists them with their options.
        out: The folder for the model, which is created if it does not exist.
        corpus: A file or folder of text, or a list of them, for a recipe that reads text.
        data: A suite or table of labelled sentences, or a list of them, for a recipe that reads these.
        dev: Held-out text to measure the perplexity on.
        options: Options of the recipe: ``{"order": 3}``, or a list of texts, ``["order=3"]``.
        intermediate: For ``transformer``: the file of an intermediate task to train on first.
        licence: What users of the model must know about the rights in its training data.
        progress: Called with the progress of the training.
    """
    corpus, data, dev = as_list(corpus), as_list(data), as_list(dev)
    first = {"intermediate": intermediate} if intermediate else {}
    if isinstance(options, Mapping):
        recipe: Any = make_recipe(kind, {**options, **first})
    else:
        if isinstance(options, str):
            raise SpecError(f"options is the text {options!r}; expected {{'order': 3}} or ['order=3']")
        recipe = read_options(registry.find("recipe", kind), [*options, *map("=".join, first.items())])
    if reads_labels(recipe):
        if corpus or not data:
            raise SpecError(
                f"{kind} learns from labelled sentences: give --data, such as --data cola/train, no --corpus"
            )
        # Imported here, since the module of classifiers imports this one.
        from acceptability.train.classifiers.recipe import train_classifier

        metadata = train_classifier(recipe, data, out, licence=licence, progress=progress)
        return TrainedModel(metadata, f"classifier:{out}")
    if data or not corpus:
        raise SpecError(f"{kind} learns from text: give --corpus FILE_OR_FOLDER, no --data")
    metadata = train(recipe, corpus, out, dev=dev, licence=licence, progress=progress)
    return TrainedModel(metadata, f"{find_model_kind(recipe)}:{out}")


def reads_labels(recipe: Any) -> bool:
    """Return whether a recipe trains on labelled sentences, not on plain text."""
    return bool(read_declared(recipe, "reads") == "labels")


def find_model_kind(recipe: Any) -> str:
    """Return the kind of model that a recipe, or the class of a recipe, makes."""
    return str(read_declared(recipe, "opened_as"))


def _make_folder(out: Path) -> Path:
    """Create the folder of a model, before any work is done for it, and return it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainError(f"cannot create the folder {out}: {error.strerror}. Choose another --out.") from error
    return out


def _open_checkpoints(recipe: Recipe, out: Path, identity: Mapping[str, Any]) -> CheckpointManager:
    return CheckpointManager(out / ".checkpoint", identity, list_renamed_options(recipe))


def _build_run_identity(recipe: Recipe, corpus_counts: CorpusCounts, dev_counts: CorpusCounts | None) -> dict[str, Any]:
    """Return the options and data that determine a model: a run resumes only if they are the same."""
    # JSON has no tuples: what is compared with a stored identity must have lists.
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(recipe).items()}  # type: ignore[call-overload]
    return {
        "kind": recipe.kind,
        "recipe": options,
        "corpus": corpus_counts.sha256,
        # It decides when a run stops and which weights are the best.
        "dev": dev_counts.sha256 if dev_counts else None,
        "acceptability": __version__,
    }


def read_finished_run(out: Path, identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the metadata of the model in a folder, None if it has none; a model of another run is an error."""
    try:
        metadata = update_metadata(json.loads((out / RECIPE_FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TrainError(
            f"cannot read {out / RECIPE_FILE}: {error}. Choose another --out, or delete that folder."
        ) from error
    differing = [name for name in identity if metadata.get(name) != identity[name]]
    # Training would overwrite a finished model, perhaps the only copy of days of work.
    if differing:
        raise TrainError(
            f"{out} holds another model: its {' and '.join(differing)} differ. Choose another --out, or delete it."
        )
    return metadata


def read_elapsed_seconds(state: CheckpointState | None) -> float:
    """Return how long a run had taken when it saved a checkpoint; 0 without one."""
    return float(str(state.facts.get("seconds", 0.0))) if state else 0.0


def _count_shared_sentences(dev: Corpus | None, text: Corpus) -> int:
    shared = count_overlap(dev, text) if dev else 0
    if shared:
        _log.warning("%s sentences of the dev set are also in the training text: its results are too good", shared)
    return shared


def _evaluate_on_dev(model: str, dev: Corpus | None, shared: int) -> dict[str, object]:
    if dev is None:
        return {}
    if model.startswith("classifier:"):
        return {"sentences of dev also in training": shared}
    try:
        dev_results = perplexity(model, dev).row()
    except (ModelError, SpecError) as error:
        # A masked model, for one, gives no text a probability. The model is trained all the same, and is not lost.
        _log.warning("the dev set has no perplexity: %s", error)
        # FOLDER instead of the path: the model card is published, and folders move.
        dev_results = {"perplexity": None, "why": str(error).replace(model, model.partition(":")[0] + ":FOLDER")}
    return {"dev": dev_results, "sentences of dev also in training": shared}


def _format_unigrams(unigrams: Mapping[str, int]) -> str:
    return "token\tcount\n" + "".join(f"{token}\t{number}\n" for token, number in unigrams.items())


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as out:
        out.write(text.encode())


def collect_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change the weights."""
    collected = {"python": platform.python_version(), "acceptability": __version__}
    for name in _PACKAGES:
        try:
            collected[name] = version(name)
        except PackageNotFoundError:
            continue
    return collected


def describe_machine() -> str:
    """Return the system, the cores and the GPUs of this machine."""
    # Not imported here: a recipe that needs no torch does not load it for the names of GPUs that it did not use.
    torch = sys.modules.get("torch")
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())] if torch else []
    return ", ".join((f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores", *gpus))


def format_model_card(name: str, model_kind: str, metadata: Mapping[str, Any]) -> str:
    """Return the model card (README.md) of a trained model.

    Args:
        name: The name of its folder.
        model_kind: The kind of model that opens it.
        metadata: The content of ``recipe.json``.
    """
    files = metadata["files"]
    file_names = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if len(files) > 5 else "")
    model_type = "classifier" if model_kind == "classifier" else "language model"
    parts = [
        f"# {name}",
        f"A {model_type} of the kind `{metadata['kind']}`, trained with acceptability {metadata['acceptability']}. "
        f"Use it as `{model_kind}:FOLDER`, where FOLDER is this folder.",
        "## Data",
        f"{metadata['sentences']:,} sentences, {metadata['words']:,} words (separated by spaces) from {file_names}; "
        f"sha256 of the text `{metadata['corpus']}`.",
        "## Licence",
        metadata["licence"] or "No licence of the training text was given.",
        "## Recipe",
        _format_list(metadata["recipe"] | ({"seed": metadata["seed"]} if metadata["seed"] is not None else {})),
        "## Cost",
        f"{metadata['seconds']:,} seconds on {metadata['machine']}.",
        "## Training",
        _format_list(metadata["facts"]),
        "## Results",
        _format_list(metadata["results"].get("dev", {})) or "There was no held-out text.",
        "## SLOR",
        "`unigrams.tsv` counts the model's own units in the training text: `slor(unigrams='FOLDER/unigrams.tsv')`.",
    ]
    return "\n\n".join(parts) + "\n"


def _format_list(facts: Mapping[str, Any]) -> str:
    return "\n".join(f"- {name}: {_format_value(value)}" for name, value in facts.items())


def _format_value(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_format_value(entry)}" for name, entry in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value) or "none"


def read_options(recipe: type[Recipe], options: Sequence[str]) -> Recipe:
    """Return a recipe with the given options, such as ``order=3``, ``lower=true`` or ``words=spaces``.

    Args:
        recipe: The class of the recipe, whose defaults the others keep.
        options: Texts of the form NAME=VALUE.
    """
    known = {option.name: option for option in fields(recipe)}  # type: ignore[arg-type]
    given: dict[str, object] = {}
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip()
        if not equals or not text.strip():
            raise SpecError(f"cannot read --set {option!r}: write NAME=VALUE")
        name = find_present_option(recipe, name)
        if name not in known:
            known_options = ", ".join(
                f"{option_field.name}={option_field.default!r}" for option_field in known.values()
            )
            raise SpecError(f"{recipe.kind} has no option {name!r}.{suggest_name(name, known)} It has {known_options}.")
        if name in given:
            raise SpecError(f"--set {name} is given twice")
        given[name] = _parse_value(recipe.kind, known[name], text.strip())
    return recipe(**given)


def _parse_value(kind: str, option: Field[Any], text: str) -> object:
    """Return a text as a value of the type of the option's default: boolean, number, text, or tuple of numbers."""
    expected_type = type(option.default)
    if expected_type is str:
        return text
    if expected_type is bool and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    # literal_eval reads numbers and tuples, and unlike eval runs no code.
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = None
    # "dropout=0" means 0.0; but type(), not isinstance(), since True is an int.
    if expected_type is float and type(value) is int:
        return float(value)
    if type(value) is not expected_type:
        names = {bool: "true or false", int: "a whole number", float: "a number", tuple: "numbers in parentheses"}
        raise SpecError(
            f"{kind}: {option.name} is {text!r}; expected {names.get(expected_type, expected_type.__name__)}"
        )
    return value
