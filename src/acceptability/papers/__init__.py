"""The tables and figures of papers, recomputed: every printed number with ours beside it.

A paper is a folder or module with an object ``PAPER``, which declares what the paper's study can do: its tables, its
own options, and the function that computes its cells. The registry lists the papers under "study", and nothing else
knows them by name. What a paper prints is in ``values/NAME.csv``; it stands beside our number and never replaces it.

A user's own study is a TOML file, which may come from a stranger: ``evaluate_study`` checks all names in it before
anything is opened. ``confine_suite``, ``confine_model`` and ``confine_spec`` take a name from such a file (a study, or
the plan of a training), and return what may be opened in its place: a path beside the file, the name itself, or what
the user allows. Anything else is an error that names the flag; ``paths.TrustBoundary`` decides about single paths.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from acceptability import __version__, registry
from acceptability.api.evaluation import evaluate_suites
from acceptability.api.interface.arguments import accept_former_arguments, as_list
from acceptability.api.interface.results import Results
from acceptability.api.scoring import ProgressCallback
from acceptability.errors import SpecError, UnknownName, shorten, suggest_name
from acceptability.models import HUB_KINDS, load_model
from acceptability.models.files import hash_file
from acceptability.papers.cells import Cell, Cells
from acceptability.paths import HUB, TrustBoundary, list_path_forms
from acceptability.protocols import Engine
from acceptability.specs import (
    ParsedSpec,
    build_signature,
    format_parsed_spec,
    format_spec,
    parse_model_spec,
    parse_spec,
)
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.sampling_units import parse_sampling_unit
from acceptability.suites import find_entries, load_suite
from acceptability.suites.catalog import is_plugin_suite
from acceptability.suites.table_files import TABLE_SUFFIXES
from acceptability.train.recipe import TrainingProgress
from acceptability.types import Result, Suite

OptionType = type[bool] | type[int] | type[str] | type[Path] | type[list[str]] | type[list[Path]]


@dataclass(frozen=True)
class StudyOption:
    """An option of one paper's study, beside those that all studies share.

    Args:
        name: The keyword in Python; on the command line ``--name``, with dashes.
        type: The type of its value; a list is an option that can be repeated.
        help: One line for ``acceptability study NAME --help``.
        default: Its value if it is not given; the study's function then gets no such keyword.
        flags: How it is written on the command line, if not as ``--name``.
        requires: Options of which one must be given too.
    """

    name: str
    type: OptionType
    help: str
    default: Any = None
    flags: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def list_flags(self) -> tuple[str, ...]:
        """Return how the option is written on the command line.

        >>> StudyOption("suite_i", Path, "A file of pairs.").list_flags()
        ('--suite-i',)
        """
        return self.flags or (f"--{self.name.replace('_', '-')}",)


CORPUS = StudyOption(
    "corpus",
    list[Path],
    "Text to measure your models on: a file, a folder or .conllu; repeatable.",
    flags=("--corpus", "-c"),
)
RESTARTS = StudyOption(
    "restarts", list[Path], "A folder of classifiers that were trained from several seeds; repeatable."
)
"""Options that several papers have."""


ComputeCells = Callable[..., list[Cell]]
"""Computes the cells of a paper from the models; ``engine``, ``progress`` and the paper's own options are keywords."""


@dataclass(frozen=True)
class Paper:
    """What the study of a paper can do.

    Args:
        title: The paper and what is recomputed, in one line.
        compute: Computes the cells.
        tables: The names of the tables and figures that its cells can have, in the order of the paper; ``*`` stands for
            what depends on the user's data.
        options: Its own options, which ``compute`` takes as keywords.
        takes_models: Whether models of the user's own can join.
    """

    title: str
    compute: ComputeCells
    tables: tuple[str, ...]
    options: tuple[StudyOption, ...] = ()
    takes_models: bool = True


@accept_former_arguments(models="model")
def study(
    name: str,
    model: str | Sequence[str] = (),
    *,
    table: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> Cells:
    """Return the numbers of a paper, recomputed, with those of a user's own models beside them.

    Args:
        name: The paper, such as ``"adc"``; ``acceptability study --help`` lists them.
        model: The spec of a model of one's own, or a list of specs, which join under the paper's protocol.
        table: Only the cells of this table or figure, such as ``"Table 1"``.
        engine: Where the models run.
        progress: Called with a name, the queries done and their total.
        options: The paper's own options, which ``acceptability study NAME --help`` lists: ``corpus`` for a paper that
            measures models on text, ``restarts`` for one with rows of trained classifiers, and so on.
    """
    paper: Paper = registry.find("study", name)
    given = _select_options(name, paper, options)
    if table is not None:
        # Checked against the declared tables first: a slip of the pen must not cost a training.
        _check_table(table, paper.tables)
    specs: list[str] = as_list(model)
    # A misspelt model is refused here, and not after the hours that others may take.
    for spec in specs:
        if not isinstance(spec, str):
            raise SpecError(f"study: a model of your own is given by its spec, and this is a {type(spec).__name__}")
        load_model(spec)
    cells = paper.compute(specs, engine=engine, progress=progress, **given)
    if table is None:
        return Cells(cells)
    # Some tables exist only with a user's models, or with an option.
    _check_table(table, tuple(dict.fromkeys(cell.table for cell in cells)))
    return Cells(cell for cell in cells if cell.table.lower() == table.lower())


def sign_tables(
    name: str, cells: Sequence[Cell], models: Sequence[str] = (), options: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Return the signature of each table of a study: the paper, the options and models that it was computed with.

    Args:
        name: The paper.
        cells: Its cells.
        models: The specs of the user's own models.
        options: The paper's own options. Of a file, its name and hash are signed; of a folder, its name.
    """
    given = _select_options(name, registry.find("study", name), dict(options or {}))
    spec = format_spec("study", {"paper": name, **{key: _sign_option(value) for key, value in given.items()}})
    signatures = " and ".join(load_model(model).signature for model in models)
    shared = {"models": signatures} if signatures else {}
    counts = Counter(cell.table for cell in cells)
    return {
        table: build_signature(spec, {"table": table, **shared, "n": str(count), "acceptability": __version__})
        for table, count in counts.items()
    }


def _sign_option(value: Any) -> Any:
    """Return the value of an option as a literal, without the folders of this machine."""
    if isinstance(value, Path):
        return f"{value.name}@{hash_file(value)}" if value.is_file() else value.name
    return [_sign_option(item) for item in value] if isinstance(value, list) else value


def _select_options(name: str, paper: Paper, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; refuse one that the paper does not have, or that lacks its partner."""
    known = {option.name: option for option in paper.options}
    # An empty option is one that was not given, so that a command can pass on all that it parsed.
    given = {key: value for key, value in options.items() if value}
    for key in given:
        if key not in known:
            own = f"Its own options are: {', '.join(known)}." if known else "It has no options of its own."
            raise SpecError(f"the study {name!r} has no option {key!r}: omit it. {own}{suggest_name(key, known)}")
    # An option at its default does not need its partner: ``--engine local`` goes with everything.
    given = {key: value for key, value in given.items() if value != known[key].default}
    for key in given:
        required = known[key].requires
        if required and not any(partner in given for partner in required):
            flags = " or ".join(known[partner].list_flags()[0] for partner in required)
            raise SpecError(f"{known[key].list_flags()[0]} goes with {flags}")
    return given


def _check_table(table: str, known: tuple[str, ...]) -> None:
    """Refuse a name that no table has; names are compared without case."""
    if not any(fnmatchcase(table.lower(), pattern.lower()) for pattern in known):
        raise UnknownName("table", table, known, hint=f"There are: {', '.join(known)}.")


def adapt_progress(progress: ProgressCallback | None) -> Callable[[TrainingProgress], None]:
    """Return a callback for training that reports to one for scoring, so that a study has one progress bar."""

    def report(training: TrainingProgress) -> None:
        if progress is not None:
            # The total of a stage may be unknown; a bar that is full so far is then all there is to show.
            progress(training.stage, training.done, training.total or training.done)

    return report


_LISTS = ("suites", "models", "reductions", "measures")
_TEXTS = ("title", "by", "region", "resample_by", "unit", "interval")
_NUMBERS = ("resamples", "seed")


@dataclass(frozen=True)
class EvaluatedStudy:
    """A user's own study with its results, and the names of its suites and models as they were opened."""

    title: str
    suites: tuple[Suite, ...]
    results: tuple[Result, ...]
    suite_names: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


def evaluate_study(
    file: Path | str,
    *,
    allow: Sequence[str] = (),
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> EvaluatedStudy:
    """Return the results of a study that a TOML file describes.

    Args:
        file: The file. It may name what is in its own folder, suites of the catalog and named models.
        allow: What else it may open: ``"hub"`` for the Hugging Face Hub, ``"remote:HOST"``, ``"plugin:NAME"``, or the
            path of a file or folder.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
    """
    file = Path(file)
    # Everything in the file is checked before anything that it names is opened.
    description = read_study(file, allow=allow)
    by, within = parse_sampling_unit(description.get("resample_by"))
    bootstrap = Bootstrap(
        resamples=description.get("resamples", 1000),
        by=by,
        seed=description.get("seed", 0),
        method=description.get("interval", "auto"),
        within=within,
    )
    names = tuple(dict.fromkeys(description["suites"]))
    suites = tuple(load_suite(name, unit=description.get("unit")) for name in names)
    results = evaluate_suites(
        suites,
        description["models"],
        reductions=description.get("reductions", ()),
        measures=description.get("measures", ()),
        by=description.get("by"),
        region=description.get("region"),
        bootstrap=bootstrap,
        engine=engine,
        progress=progress,
    )
    title = description.get("title", file.stem)
    return EvaluatedStudy(title, suites, tuple(results), names, tuple(description["models"]))


def run_study(
    file: Path | str,
    *,
    allow: Sequence[str] = (),
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Results:
    """Return the results of a study that a TOML file describes, as ``acceptability study run`` does.

    Args:
        file: The file. It may name what is in its own folder, suites of the catalog and named models.
        allow: What else it may open: ``"hub"`` for the Hugging Face Hub, ``"remote:HOST"``, ``"plugin:NAME"``, or the
            path of a file or folder.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
    """
    evaluated = evaluate_study(file, allow=allow, engine=engine, progress=progress)
    return Results(evaluated.results, evaluated.suites)


def read_study(file: Path, *, allow: Sequence[str] = ()) -> dict[str, Any]:
    """Return the checked contents of a study file, with the paths of what it names.

    Args:
        file: A TOML file; the documentation of ``acceptability.cli.study`` shows one.
        allow: What the study may open besides its own folder, see ``evaluate_study``.
    """
    boundary = TrustBoundary(file, allow)
    try:
        description = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"cannot read the study {file}: {error}") from error
    # A file with thousands of nested brackets exhausts the stack of the parser.
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{file} is not TOML: {error}") from error
    kinds = dict.fromkeys(_LISTS, "a list of texts") | dict.fromkeys(_TEXTS, "a text")
    kinds |= dict.fromkeys(_NUMBERS, "a whole number")
    for key, value in description.items():
        if key not in kinds:
            keys = ", ".join(kinds)
            raise SpecError(f"{file}: a study has no {key!r}; it has {keys}.{suggest_name(key, kinds)}")
        if not _has_kind(value, kinds[key]):
            raise SpecError(f"{file}: {key} must be {kinds[key]}")
    for key in ("suites", "models"):
        if not description.get(key):
            raise SpecError(f"{file}: a study needs {key}, a list of names")
    return description | {
        "suites": [confine_suite(boundary, name) for name in description["suites"]],
        "models": [confine_model(boundary, name) for name in description["models"]],
        "reductions": [confine_spec(boundary, "reduction", name) for name in description.get("reductions", ())],
        "measures": [confine_spec(boundary, "measure", name) for name in description.get("measures", ())],
    }


def _has_kind(value: object, kind: str) -> bool:
    # True and False are integers to Python, but a mistake for a seed.
    if kind == "a whole number":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) if kind == "a text" else _is_strings(value)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_SUITE_SUFFIXES = (*TABLE_SUFFIXES, ".txt", ".json")
# What only the user may let a model do, since it can run the code of the model's author.
_OWN_OPTIONS = {"trust_remote_code": "run its own code", "allow_pickle": "be read from pickle files"}
# The files of a model in which libraries look for names of other files. ``recipe.json`` is a record that nothing opens.
_REFERRING_FILES = ("*config*.json", "*.index.json", "special_tokens_map.json", "added_tokens.json")
_BASE_MODEL = "base_model_name_or_path"
# A name with a slash here is code that transformers gets from the Hub.
_KERNEL_KEYS = ("attn_implementation", "experts_implementation")


def confine_suite(boundary: TrustBoundary, name: str) -> str:
    """Return the name or path of a suite, if the file may open it."""
    if name.startswith("hf:"):
        # Also for a folder on disk: its metadata may name files and addresses elsewhere, which the library opens.
        boundary.require(name, HUB)
        # Without the revision and the configuration that may follow.
        folder = name.removeprefix("hf:").partition("@")[0].partition(":")[0]
        if Path(folder).expanduser().exists():
            boundary.check_path(folder)
        elif "/" not in folder:
            # The library takes "text" or "json" for a format, and reads all such files in the current folder.
            raise SpecError(f"{boundary.file}: {name} does not say whose data set it is: write hf:OWNER/NAME")
        return name
    if name.lower().endswith(_SUITE_SUFFIXES):
        return boundary.confine_path(name)
    for entry in find_entries(name) or find_entries(name.partition("/")[0]):
        if is_plugin_suite(entry):
            boundary.require(f"the suite {entry.id} of a plug-in", f"plugin:{entry.id}")
    return name


def confine_model(boundary: TrustBoundary, spec: str) -> str:
    """Return the spec of a model with the path of its files, if the file may open it."""
    kind, location, options = parse_model_spec(spec)
    # The parsed options and not the text, in which Python also reads look-alikes of the letters, such as a bold "e".
    for option, effect in _OWN_OPTIONS.items():
        if options.get(option, False) is not False:
            raise SpecError(
                f"{boundary.file}: a file cannot let {shorten(spec)!r} {effect}. If you trust the model, name it on "
                "the command line: acceptability evaluate SUITE --model …"
            )
    if registry.is_plugin("model", kind):
        # Where a plug-in looks for its model is unknown: its name allows all of it.
        boundary.require(f"the model {spec} of a plug-in", f"plugin:{kind}")
        return spec
    current_kind, confined = registry.current_name("model", kind), location
    # A named model comes with a package and has no location; a misspelt kind is refused when it is opened.
    if not location or current_kind not in registry.names("model") or current_kind == "uniform":
        return spec
    if current_kind == "remote":
        _check_address(boundary, location)
    elif current_kind == "prompted":
        confined = confine_model(boundary, location)
        if isinstance(options.get("templates"), str):
            options = options | {"templates": boundary.confine_path(str(options["templates"]))}
    else:
        confined = _confine_location(boundary, location, may_be_hub=current_kind in HUB_KINDS)
    if confined == location and options == parse_model_spec(spec)[2]:
        return spec
    # A path that ends in a bracket needs a pair of its own, or its last one would be read as options.
    return format_spec(f"{kind}:{confined}", options) if options or confined.endswith(")") else f"{kind}:{confined}"


def _confine_location(boundary: TrustBoundary, location: str, *, may_be_hub: bool) -> str:
    """Return the path of a model, or its id on the Hub, if the file may open it."""
    if may_be_hub and boundary.find_path(location) is None and not location.startswith(("/", "~", ".")):
        boundary.require(f"{location} on the Hugging Face Hub", HUB)
        return location
    path = boundary.confine_path(location)
    # A hash may follow the name of the folder, which is then opened without it.
    for form in list_path_forms(path):
        check_references(boundary, form)
    # Without a model there, a relative path such as folder/name would be taken for an id on the Hub.
    return str(Path(path).expanduser().absolute()) if may_be_hub else path


def check_references(boundary: TrustBoundary, folder: Path, *, checked: frozenset[Path] = frozenset()) -> None:
    """Raise an error if the files of a model name other files, or another model, outside what may be opened.

    Args:
        folder: The folder of the model, or of several; nothing is checked if there is no such folder.
        checked: The folders that have been checked already.
    """
    if folder.resolve() in checked:
        return
    checked |= {folder.resolve()}
    for file in sorted(path for pattern in _REFERRING_FILES for path in folder.expanduser().rglob(pattern)):
        try:
            texts = set(_iter_texts(json.loads(file.read_text(encoding="utf-8"))))
        # Whoever opens the model reports a file that cannot be read.
        except (OSError, ValueError, RecursionError):
            continue
        for key, value in sorted(texts):
            for path in _check_reference(boundary, file, key, value):
                # The base model of an adapter is opened, with what its own files name.
                if key == _BASE_MODEL and path.is_dir():
                    check_references(boundary, path, checked=checked)


def _check_reference(boundary: TrustBoundary, file: Path, key: str, value: str) -> list[Path]:
    """Return the paths that a text in a file of a model names; raise an error for one that may not be opened."""
    # Some libraries open a name as it is, in the current folder.
    paths = (str(file.parent / value), value)
    # A text under any key may be a path. Folders are left out, unless the key says that it is one: "." is a token.
    is_path = os.path.exists if key == _BASE_MODEL or key.endswith("_file") else os.path.isfile
    found = [path for path in paths if is_path(path)]
    # Authors leave the paths of their own machines behind, which do no harm where there is no such file.
    for path in found:
        boundary.check_path(path)
    # A base model is opened beside the file or from the current folder, but only if there is one: of any other name,
    # also that of a folder without a model, it comes from the Hub.
    is_base_here = any((Path(path) / "config.json").is_file() for path in found)
    if (key == _BASE_MODEL and not is_base_here) or (key in _KERNEL_KEYS and "/" in value):
        boundary.require(f"{value}, which {file} names,", HUB)
    return [Path(path) for path in found]


def _iter_texts(content: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in the content of a JSON file, each with its key."""
    if isinstance(content, dict):
        for name, value in content.items():
            # The kernel of every part of a network is under the name of that part.
            yield from _iter_texts(value, key if key in _KERNEL_KEYS else name)
    elif isinstance(content, list):
        for value in content:
            yield from _iter_texts(value, key)
    elif isinstance(content, str) and content:
        yield key, content


def _check_address(boundary: TrustBoundary, location: str) -> None:
    """Raise an error for the address of a model if nothing may be sent there."""
    try:
        parts = urlsplit(location.partition("#")[0])
        host = parts.hostname or ""
    except ValueError as error:
        raise SpecError(f"{boundary.file}: remote:{shorten(location)} is no address: {error}") from error
    if not host:
        raise SpecError(f"{boundary.file}: remote:{shorten(location)} is no address: it has no host")
    boundary.require(f"the server {host}", f"remote:{host}", f"remote:{parts.netloc.rpartition('@')[2].lower()}")


def confine_spec(boundary: TrustBoundary, kind: str, text: str) -> str:
    """Return the spec of a measure or reduction with the path of its file, if the file may open it."""
    spec = parse_spec(text)
    confined = _confine_parsed(boundary, kind, spec)
    return text if confined == spec else format_parsed_spec(confined)


def _confine_parsed(boundary: TrustBoundary, kind: str, spec: ParsedSpec) -> ParsedSpec:
    if registry.is_plugin(kind, spec.name):
        boundary.require(f"the {kind} {spec.name} of a plug-in", f"plugin:{spec.name}")

    def confine(value: object) -> object:
        if isinstance(value, ParsedSpec):
            return _confine_parsed(boundary, kind, value)
        # The only texts in a reduction are the names of tables of unigrams.
        if kind == "reduction" and isinstance(value, str) and value and not value.startswith("wordfreq:"):
            return boundary.confine_path(value)
        return value

    options = {name: confine(value) for name, value in spec.options.items()}
    return ParsedSpec(spec.name, tuple(map(confine, spec.args)), options)
