"""A model's files: where they are, and a fingerprint of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from acceptability.errors import ModelError
from acceptability.signature import fingerprint

_DIGITS = 12


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


def is_importable(module: str) -> bool:
    """Tell whether a package is installed, without importing it."""
    try:
        return find_spec(module) is not None
    except ValueError:
        return False
