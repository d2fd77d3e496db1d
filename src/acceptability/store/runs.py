"""Saved runs: the results of a command in a folder of their own, as JSON and CSV.

``ACCEPTABILITY_HOME/runs/ID/`` holds ``run.json`` (the command line, the time, the versions of this package and of
those that compute, the signatures, and the inputs of a run: suites, models and files of scores), ``results`` and
``units`` (the rows that the results are computed from, see `acceptability.store.unit_rows`), and the sentences and
contrasts of a user's own suites, ``suite-1.json.gz`` and so on. Suites of the catalog are kept by their names and
hashes, since anybody can load them again.
"""

from __future__ import annotations

import gzip
import json
import os
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acceptability import __version__
from acceptability.errors import AcceptabilityError, StoreError, SuiteError, UnknownName
from acceptability.paths import home_folder
from acceptability.store.scores import SCORING_VERSION
from acceptability.store.unit_rows import RunRow, open_for_writing, to_json, write_rows, write_unit_rows
from acceptability.suites import is_catalog_name, load_suite
from acceptability.timings import time_stage
from acceptability.types import Contrast, Sentence, Suite, Tags, find_named_part

# The packages whose versions can change a score in the last digits, or more.
_COMPUTING_PACKAGES = ("torch", "transformers", "tokenizers")
# Far above any suite, and below what fills the memory: a folder of a run may come from somebody else.
_MAX_SUITE_BYTES = 1 << 30
# What reading and unpacking raise if a file holds something else than a suite.
_DAMAGE_ERRORS = (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, IndexError, AttributeError)


@dataclass(frozen=True)
class SuiteInput:
    """A suite with the name and the options by which a command loaded it."""

    suite: Suite
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, int | None] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunInputs:
    """What a command was given.

    Args:
        suites: The suites, with what they were loaded from.
        models: The specs of models.
        files: The paths of other files, such as scores and responses.
        columns: The columns of these files by their meaning, one mapping per reading.
    """

    suites: Sequence[SuiteInput] = ()
    models: Sequence[str] = ()
    files: Sequence[Path] = ()
    columns: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class SavedRun:
    """A saved run, as ``run.json`` describes it.

    Args:
        id: Its name, which is that of its folder.
        command: The command, such as "evaluate".
        arguments: The whole command line.
        made: The time, in ISO 8601.
        version: The version of this package.
        results: The number of results.
        signatures: Their signatures.
        inputs: What the command was given: ``folder``, the current folder, ``suites``, ``models``, ``files`` and
            ``columns``; empty for a run of the version before.
        environment: What computed the results: ``scoring``, the scoring version, ``device``, the class of device that a
            network takes by default, None if none was run, and ``packages``, the versions of PyTorch and others that
            are installed; empty for a run of the version before.
    """

    id: str
    command: str
    arguments: str
    made: str
    version: str
    results: int
    signatures: tuple[str, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return runs_folder() / self.id


def runs_folder() -> Path:
    """Return the folder of all runs."""
    return home_folder() / "runs"


def save_run(
    command: str,
    arguments: str,
    rows: Sequence[RunRow],
    units: Iterable[RunRow],
    signatures: Iterable[str],
    inputs: RunInputs | None = None,
) -> SavedRun:
    """Save the results of a command, and return the run with its new id.

    Args:
        command: The name of the command.
        arguments: The whole command line.
        rows: The results.
        units: The rows that the results are computed from; they are iterated over several times.
        signatures: The signatures of the results.
        inputs: What the command was given. A user's own suites are saved whole.
    """
    inputs = inputs or RunInputs()
    now = datetime.now(UTC)
    # In the order of time, and unique: two commands may start in the same microsecond, or a clock may go back.
    name = f"{now:%Y%m%d-%H%M%S-%f}-{command}-{secrets.token_hex(2)}"
    made = now.isoformat(timespec="seconds")
    own_suites = _number_own_suites(inputs.suites)
    described = _describe_inputs(inputs, own_suites)
    run = SavedRun(
        *(name, command, arguments, made, __version__, len(rows), tuple(signatures), described),
        environment=_describe_environment(),
    )
    # Written under a hidden name and then renamed, so that a killed command leaves no half run that others would list.
    draft = runs_folder() / f".{name}.{os.getpid()}"
    try:
        draft.mkdir(parents=True)
        with open_for_writing(draft / "run.json") as out:
            out.write(to_json(dict(vars(run).items()), indent=1))
        write_rows(draft / "results", rows)
        write_unit_rows(draft, units)
        for file, suite in own_suites.items():
            _write_suite(draft / file, suite)
        draft.rename(run.folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise StoreError(
            f"cannot save the run in {runs_folder()}: {error.strerror}. Check that the folder can be "
            "written to and has space, or name another in ACCEPTABILITY_HOME."
        ) from error
    return run


def _describe_environment() -> dict[str, Any]:
    """Return what computes scores here: scoring version, device and versions of packages, without importing these."""
    # Imported here: commands that save no run, such as judge, would otherwise import them too.
    from importlib.metadata import PackageNotFoundError, version

    from acceptability.models.hf.loading import get_default_device

    packages = {}
    for package in _COMPUTING_PACKAGES:
        # Not installed: the results are of models that do not need it.
        with suppress(PackageNotFoundError):
            packages[package] = version(package)
    return {"scoring": SCORING_VERSION, "device": get_default_device(), "packages": packages}


def list_saved_runs() -> tuple[list[SavedRun], list[str]]:
    """Return all saved runs, the oldest first, and a message for each that cannot be read."""
    runs, problems = [], []
    for path in sorted(runs_folder().glob("[!.]*/run.json")):
        try:
            runs.append(_read_run(path))
        # One damaged run must not hide all others. Nested brackets by the thousand raise RecursionError.
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            problems.append(f"the run {path.parent} cannot be read ({error}); delete its folder if it is damaged")
    return runs, problems


LATEST = "latest"
"""Stands for the newest run."""


def find_run(name: str) -> tuple[SavedRun, Path] | None:
    """Return a run and its folder by its id, "latest" or the path of its folder; None if there is none."""
    known = sorted(path.parent.name for path in runs_folder().glob("[!.]*/run.json"))
    newest = known[-1] if name == LATEST and known else name
    folders = [runs_folder() / newest] if newest in known else [Path(name)]
    for folder in folders:
        if name and (folder / "run.json").is_file():
            try:
                return _read_run(folder.absolute() / "run.json"), folder
            except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
                raise StoreError(f"the run {folder} cannot be read ({error}); run the command again") from error
    return None


def require_run(name: str) -> Path:
    """Return the folder of a run by its id, "latest" or the path of its folder.

    Raises:
        UnknownName: There is no such run.
    """
    found = find_run(name)
    if found is None:
        known = [saved.id for saved in list_saved_runs()[0]]
        raise UnknownName("run", name, [*known, LATEST], hint="`acceptability runs` lists them.")
    return found[1]


def read_result_rows(folder: Path, run: SavedRun, signature: str) -> list[dict[str, Any]]:
    """Return the saved rows of the result, or results, that have a signature."""
    path = folder / "results.json"
    try:
        rows = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        signed = [row for row in rows if row.get("signature") == signature]
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {error}") from error
    # Some commands print one signature for all of their rows.
    return signed or (rows if run.signatures == (signature,) else [])


def _read_run(path: Path) -> SavedRun:
    """Return the run that a ``run.json`` describes."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    run = SavedRun(**fields | {"signatures": tuple(fields["signatures"])})
    # The id becomes a path when its files are read and its report is written. One like "../x" must not lead elsewhere.
    if run.id != path.parent.name:
        raise ValueError(f"its id is {run.id!r}")
    return run


def _number_own_suites(given: Sequence[SuiteInput]) -> dict[str, Suite]:
    """Return the suites that are not in the catalog, by the names of the files that they are saved in."""
    own = [suite_input.suite for suite_input in given if not is_catalog_name(suite_input.name)]
    return {f"suite-{number}.json.gz": suite for number, suite in enumerate(own, start=1)}


def _describe_inputs(inputs: RunInputs, own_suites: Mapping[str, Suite]) -> dict[str, Any]:
    """Return the inputs as ``run.json`` holds them; of a suite, its file or, for one of the catalog, its name."""
    file_of = {id(suite): file for file, suite in own_suites.items()}
    with time_stage("fingerprint"):
        signatures = [given.suite.signature for given in inputs.suites]
    suites = [
        {
            "name": given.name if is_catalog_name(given.name) or given.name.startswith("hf:") else _resolve(given.name),
            "signature": signature,
            "columns": dict(given.columns),
            "marks": dict(given.marks),
            "reading": dict(given.reading),
            "file": file_of.get(id(given.suite)),
        }
        for given, signature in zip(inputs.suites, signatures, strict=True)
    ]
    return {
        "folder": _resolve("."),
        "suites": suites,
        "models": list(inputs.models),
        "files": [_resolve(str(path)) for path in inputs.files],
        "columns": [dict(columns) for columns in inputs.columns],
    }


def _resolve(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _write_suite(path: Path, suite: Suite) -> None:
    """Write a suite column by column, compressed: its texts and tags repeat themselves."""
    index_of = {sentence.id: index for index, sentence in enumerate(suite.sentences)}
    content = {
        "name": suite.name,
        "ids": list(index_of),
        "texts": [sentence.text for sentence in suite.sentences],
        "labels": [sentence.label for sentence in suite.sentences],
        "ratings": [sentence.rating for sentence in suite.sentences],
        "regions": [dict(sentence.regions) for sentence in suite.sentences],
        "tags": _to_columns([sentence.tags for sentence in suite.sentences]),
        "better": [index_of[contrast.better] for contrast in suite.contrasts],
        "worse": [index_of[contrast.worse] for contrast in suite.contrasts],
        "contrast_tags": _to_columns([contrast.tags for contrast in suite.contrasts]),
        "unit": suite.unit,
        "derived_tags": list(suite.derived_tags),
    }
    # Compressed, because tags repeat: a suite of BLiMP's size shrinks from 44 MB to 2.4 MB. gzip would write the time
    # into the file, and the same suite would give another file every time.
    path.write_bytes(gzip.compress(to_json(content).encode("utf-8"), compresslevel=6, mtime=0))


def _to_columns(rows: Sequence[Tags]) -> dict[str, list[str | None]]:
    """Return the value of each tag in each row; None where a row lacks it."""
    names = dict.fromkeys(name for tags in rows for name in tags)
    return {name: [tags.get(name) for tags in rows] for name in names}


def _to_rows(columns: Mapping[str, Sequence[str | None]], count: int) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = [{} for _ in range(count)]
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            if value is not None:
                row[name] = value
    return rows


def load_input_suite(folder: Path, inputs: Mapping[str, Any], signature: str) -> Suite | None:
    """Return a suite of a saved run, or the part of one, by its signature; None if the run has no such suite.

    Args:
        folder: The folder of the run.
        inputs: Its inputs, as ``run.json`` describes them.
        signature: The name of the suite and the hash of its content.
    """
    suites = iter_input_suites(folder, inputs, signature.rpartition("#")[0])
    return next(filter(None, (find_part(suite, signature) for suite in suites)), None)


def iter_input_suites(folder: Path, inputs: Mapping[str, Any], name: str) -> Iterator[Suite]:
    """Yield the suites of a saved run that have a name, or of which a part has it.

    Args:
        folder: The folder of the run.
        inputs: Its inputs, as ``run.json`` describes them.
        name: The name of a suite or of its part.
    """
    for described in inputs.get("suites", ()):
        whole = str(described.get("signature")).rpartition("#")[0]
        if name != whole and not name.startswith(f"{whole}["):
            continue
        try:
            yield _load_described_suite(folder, described)
        # It was a suite of the catalog, whose data are not on this machine.
        except AcceptabilityError:
            continue


def find_part(suite: Suite, signature: str) -> Suite | None:
    """Return the suite or the part of it that has a signature; None if neither has.

    >>> suite = Suite("two", (Sentence("a", "Cats sleep.", tags={"item": "1"}), Sentence("b", "Dogs sleep.")))
    >>> find_part(suite, suite.filter(item="1").signature)
    Suite('two[item=1]', 1 sentences, 0 contrasts)
    """
    if suite.signature == signature:
        return suite
    part = find_named_part(suite, signature.rpartition("#")[0])
    return part if part and part.signature == signature else None


def _load_described_suite(folder: Path, described: Mapping[str, Any]) -> Suite:
    file, name = described.get("file"), str(described.get("name"))
    # A run from somebody else may name any file or data set: only its own files and the catalog are opened.
    if file:
        return _read_suite(folder, str(file))
    if not is_catalog_name(name):
        raise SuiteError(f"the run names {name!r}, which is no suite of the catalog")
    return load_suite(name)


def _read_suite(folder: Path, file: str) -> Suite:
    """Return a suite that was saved with a run."""
    path = folder / file
    try:
        # A run may come from somebody else: its files are read from its own folder only.
        if Path(file).name != file or path.is_symlink():
            raise ValueError("it is no file of this folder")
        with gzip.open(path) as opened:
            compressed = opened.read(_MAX_SUITE_BYTES + 1)
        if len(compressed) > _MAX_SUITE_BYTES:
            raise ValueError(f"it expands to more than {_MAX_SUITE_BYTES:,} bytes, which no suite has")
        content = json.loads(compressed)
        ids = content["ids"]
        columns = [content[name] for name in ("texts", "labels", "ratings", "regions")]
        tags, contrast_tags = (
            _to_rows(content[name], count)
            for name, count in (("tags", len(ids)), ("contrast_tags", len(content["better"])))
        )
        sentences = [
            Sentence(name, text, label, rating, {region: (start, end) for region, (start, end) in regions.items()}, own)
            for name, text, label, rating, regions, own in zip(ids, *columns, tags, strict=True)
        ]
        contrasts = [
            Contrast(ids[better], ids[worse], own)
            for better, worse, own in zip(content["better"], content["worse"], contrast_tags, strict=True)
        ]
        # The version before saved no sampling unit.
        unit, derived = str(content.get("unit", "")), tuple(map(str, content.get("derived_tags", ())))
        return Suite(content["name"], tuple(sentences), tuple(contrasts), unit=unit, derived_tags=derived)
    # Whatever a damaged file holds in the place of a suite.
    except (*_DAMAGE_ERRORS, RecursionError) as error:
        raise StoreError(
            f"the sentences of a run cannot be read from {path}: {error}. Run the command again."
        ) from error
