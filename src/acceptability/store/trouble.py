"""What goes wrong with the file of the store, told apart: damage, which is mended, and a disk that does not let us."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from acceptability.errors import StoreError

# Of SQLite's codes, those that say what the file is like; the others are about locks, rights and space.
_DAMAGE = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_INTERNAL,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOTADB,
}
_CHECK = "Check that its folder can be written to and has space, or name another in ACCEPTABILITY_HOME."


class Damaged(StoreError):
    """The file is not what we wrote. The message tells in a few words in what way."""


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say of a store into errors of ours."""
    try:
        yield
    except sqlite3.Error as error:
        if _is_damage(error, path):
            raise Damaged(str(error)) from error
        raise StoreError(f"cannot use the store {path}: {error}. {_CHECK}") from error
    except OSError as error:
        raise StoreError(f"cannot use the store {path}: {error.strerror}. {_CHECK}") from error


def _is_damage(error: sqlite3.Error, path: Path) -> bool:
    # An error without a code is of Python's module: a text that is none.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_READONLY:
        # A changed byte can say that a file is only for reading, where the system says otherwise.
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return code & 0xFF in _DAMAGE
