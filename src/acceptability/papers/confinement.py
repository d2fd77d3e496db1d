"""What a file of a stranger's names, confined to its own folder: suites, models, measures and reductions.

Each function takes a name from such a file (a study, or the plan of a training), and returns what may be opened in its
place: a path beside the file, the name itself, or what the user allows. Anything else is an error that names the flag.
``acceptability.paths.TrustBoundary`` decides about single paths.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from acceptability import registry
from acceptability.errors import SpecError, shorten
from acceptability.paths import HUB, TrustBoundary, list_path_forms
from acceptability.specs import ParsedSpec, format_spec, parse_model_spec, parse_spec
from acceptability.suites import find_entries
from acceptability.suites.catalog import is_plugin_suite
from acceptability.suites.tables import TABLE_SUFFIXES

# Kinds of models whose location may be an id on the Hub; that of every other kind is a path.
_HUB_KINDS = ("causal", "masked", "seq2seq", "classifier")
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
        confined = _confine_location(boundary, location, may_be_hub=current_kind in _HUB_KINDS)
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
    return path


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
    if (key == _BASE_MODEL and not found) or (key in _KERNEL_KEYS and "/" in value):
        boundary.require(f"{value}, which {file} names,", HUB)
    # Authors leave the paths of their own machines behind, which do no harm where there is no such file.
    for path in found:
        boundary.check_path(path)
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
    boundary.require(f"the server {host}", f"remote:{host}", f"remote:{parts.netloc.rpartition('@')[2].lower()}")


def confine_spec(boundary: TrustBoundary, kind: str, text: str) -> str:
    """Return the spec of a measure or reduction with the path of its file, if the file may open it."""
    spec = parse_spec(text)
    confined = _confine_parsed(boundary, kind, spec)
    return text if confined == spec else _format_parsed(confined)


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


def _format_parsed(spec: ParsedSpec) -> str:
    """Return the text of a parsed spec.

    >>> _format_parsed(parse_spec("exp(slor(unigrams='counts.tsv'))"))
    "exp(slor(unigrams='counts.tsv'))"
    """

    def write(value: object) -> str:
        return _format_parsed(value) if isinstance(value, ParsedSpec) else repr(value)

    words = [*map(write, spec.args), *(f"{name}={write(value)}" for name, value in spec.options.items())]
    return f"{spec.name}({', '.join(words)})" if words else spec.name
