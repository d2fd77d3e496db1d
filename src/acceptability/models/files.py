"""A model's files and options: fingerprints of content, facts remembered, options checked."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from acceptability.errors import ModelError
from acceptability.home import home
from acceptability.signature import fingerprint

_DIGITS = 12
_LONGEST_LINE = 4_000_000


def file_hash(path: Path) -> str:
    """Return a short hash of a file's content."""
    return _digest(path, path.stat().st_size, path.stat().st_mtime_ns)[:_DIGITS]


def files_hash(paths: Sequence[Path]) -> str:
    """Return a short hash of several files: of their names and contents, not of their folder."""
    return fingerprint(f"{path.name}:{file_hash(path)}".encode() for path in sorted(paths))


@cache
def _digest(path: Path, size: int, changed_ns: int) -> str:
    """Hash a file once for as long as size and time stay the same."""
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error


def bounded_lines(opened: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a file, packed or not; one without end, which would fill the memory, is refused."""
    while line := opened.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and line[-1] != "\n":
            raise ModelError(f"{path} has a line of more than {_LONGEST_LINE:,} characters: it is no file of this kind")
        yield line


def is_importable(module: str) -> bool:
    """Tell whether a package is installed, without importing it."""
    try:
        return find_spec(module) is not None
    except ValueError:
        return False


def at_version(path: Path) -> Path:
    """Return the file that ``FILE@HASH`` names, as a signature writes it; the content must match."""
    bare, at, version = str(path).rpartition("@")
    if not at or path.exists() or not Path(bare).is_file():
        return path
    if file_hash(Path(bare)) != version:
        raise ModelError(f"{bare} has the content hash {file_hash(Path(bare))}, not {version}: it is another model")
    return Path(bare)


def remembered(version: str, name: str, find: Callable[[], object]) -> object:
    """Return a fact about files of a version, found once and then remembered beside the store.

    So a signature needs no tokenizer, and no n-gram table, from the second time on. A
    fact depends on the files' content alone; where it cannot be kept, it is found again.
    """
    path = home() / "models" / f"{re.sub(r'[^0-9A-Za-z]', '_', version)}-{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = find()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(found), encoding="utf-8")
        draft.replace(path)
    except OSError:
        return found
    return found


def checked_bool(name: str, value: object) -> bool:
    """Return an option that is True or False; "no" and 0 are neither."""
    if not isinstance(value, bool):
        raise ModelError(f"{name} is {value!r}; expected True or False")
    return value


def checked_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return an option that is one of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ModelError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")
    return value
