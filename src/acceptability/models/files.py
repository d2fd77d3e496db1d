"""Files and options of models: content hashes, facts cached on disk, versions in specs, and checks of options.

A signature holds the hash of a model's files, so that scores stored for other content are not mistaken for its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any, TextIO, TypeVar

from acceptability.errors import ModelError
from acceptability.paths import home_folder
from acceptability.specs import fingerprint

Value = TypeVar("Value")

# One lock for all networks: transformers patches PyTorch while it loads one, and a second network that is loaded at
# that moment is left without weights.
_load_lock = RLock()

# 48 bits: short enough for a signature under a table, and chance collisions among one user's files are out of reach.
_HASH_DIGITS = 12
_MAX_LINE_LENGTH = 4_000_000
_HASH = re.compile(r"[0-9a-f]{64}")
# Smaller files are hashed in less time than it takes to look their hash up.
_REMEMBERED_BYTES = 1 << 22
_SETTLED_NS = 2_000_000_000


class locked_cached_property(cached_property[Value]):  # noqa: N801
    """A cached property for loading a network: computed once, and never by two threads at the same time.

    ``functools.cached_property`` has had no lock since Python 3.12.

    >>> class Model:
    ...     @locked_cached_property
    ...     def net(self):
    ...         return "loaded"
    >>> Model().net
    'loaded'
    """

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Value:  # type: ignore[override]
        """Return the cached value; else wait until no other network is being loaded, and compute it."""
        with _load_lock:
            return super().__get__(instance, owner)


def hash_file(path: Path) -> str:
    """Return a short hash of a file's content."""
    status = path.stat()
    # The time of the last change of the file's entry too, which no program can set back.
    marks = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _hash_content(path.absolute(), marks)[:_HASH_DIGITS]


def hash_files(paths: Sequence[Path]) -> str:
    """Return a short hash of several files: of their names and contents, not of their folder."""
    return fingerprint(f"{path.name}:{hash_file(path)}".encode() for path in sorted(paths))


# Once per process, and large files once for all processes: a checkpoint takes seconds, and its hash is in every
# signature, without which stored scores are not found.
@cache
def _hash_content(path: Path, marks: tuple[int, ...]) -> str:
    """Return the hash of a file, read again if its content may have changed.

    Args:
        marks: What a change of the content changes: inode, size and times. They are part of the keys of both caches.
    """
    size, *changed_ns = marks[2:]
    # A file that is being written may change again without another time.
    is_settled = max(changed_ns) < time.time_ns() - _SETTLED_NS
    if size < _REMEMBERED_BYTES or not is_settled:
        return _read_hash(path)
    version = hashlib.sha256(f"{path}\0{marks}".encode("utf-8", "surrogatepass")).hexdigest()
    remembered = get_cached_fact(version, "hash", lambda: _read_hash(path))
    return remembered if isinstance(remembered, str) and _HASH.fullmatch(remembered) else _read_hash(path)


def _read_hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error


def resolve_version(path: Path) -> Path:
    """Return the file that ``FILE@HASH`` names, as in a signature; its content must have that hash."""
    bare, at, version = str(path).rpartition("@")
    # A file whose own name contains an @ is meant literally.
    if not at or path.exists() or not Path(bare).is_file():
        return path
    _check_version(bare, hash_file(Path(bare)), version)
    return Path(bare)


def resolve_folder_version(folder: Path, names: Sequence[str]) -> Path:
    """Return the folder that ``FOLDER@HASH`` names, as in a signature; its content must have that hash.

    Args:
        names: The files in the folder that the hash is made of.
    """
    bare, at, version = str(folder).rpartition("@")
    if not at or folder.exists() or not Path(bare).is_dir():
        return folder
    _check_version(bare, hash_files([Path(bare) / name for name in names]), version)
    return Path(bare)


def _check_version(path: str, actual: str, expected: str) -> None:
    if actual != expected:
        raise ModelError(f"{path} has the content hash {actual}, not {expected}: it is another model")


def get_cached_fact(version: str, name: str, compute: Callable[[], object]) -> object:
    """Return a JSON value that depends only on the content of a model's files, cached on disk beside the store.

    With it, a signature needs no tokenizer and no n-gram table from the second time on.

    Args:
        version: The hash of the files.
        name: The name of the fact, unique among those of a version.
        compute: Called if the value is not cached.
    """
    # Versions may hold characters that file names must not, such as the colon of a URL.
    path = home_folder() / "models" / f"{re.sub(r'[^0-9A-Za-z]', '_', version)}-{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        fact = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place, so that another process never reads half a file.
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(fact), encoding="utf-8")
        temporary.replace(path)
    except OSError:
        # The cache only saves time: on a full or read-only disk the value is computed again next time.
        return fact
    return fact


def read_bounded_lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines of a text file; an extremely long line is an error.

    Without a bound, a binary file or a small archive that unpacks to one endless line would fill the memory.
    """
    while line := file.readline(_MAX_LINE_LENGTH):
        if len(line) == _MAX_LINE_LENGTH and line[-1] != "\n":
            raise ModelError(
                f"{path} has a line of more than {_MAX_LINE_LENGTH:,} characters: it is no file of this kind"
            )
        yield line


def is_importable(module: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return find_spec(module) is not None
    except ValueError:
        # find_spec raises it for a module that is in sys.modules without a spec, such as a stub put there by hand.
        return False


def validate_bool(name: str, value: object) -> bool:
    """Return an option that must be True or False; 0 and "no" are errors."""
    # Not by truth value, by which the string "False" would be true.
    if not isinstance(value, bool):
        raise ModelError(f"{name} is {value!r}; expected True or False")
    return value


def validate_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return an option that must be one of some words."""
    if not isinstance(value, str) or value not in choices:
        raise ModelError(f"{name} is {value!r}; expected one of {', '.join(map(repr, choices))}")
    return value
