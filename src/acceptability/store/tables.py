"""The tables of a store: models, each with how many blocks it has, and blocks of answers.

Every row says whether it is as we wrote it: a block by its checksum, a model by its seal; and a model's
count tells when a block is gone. The format stands in the file twice, so that one changed bit
does not make it a newer one.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from acceptability.errors import StoreError
from acceptability.store.trouble import Damaged

VERSION = 3
_MARK = 0x61630000
"""What every format from the third on adds its number to, as the file's application id."""
_SCHEMA = """
CREATE TABLE model (
    number INTEGER PRIMARY KEY, signature TEXT NOT NULL, blocks INTEGER NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE block (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL REFERENCES model, keys BLOB NOT NULL, answers BLOB NOT NULL
);
CREATE INDEX block_of_model ON block (model)
"""


@dataclass(frozen=True)
class Known:
    """A model that has answers in the store."""

    number: int
    signature: str
    blocks: int

    @property
    def seal(self) -> int:
        """A checksum of all that is said of it."""
        return zlib.crc32(f"{self.number} {self.blocks} {self.signature}".encode("utf-8", "surrogatepass"))


def version(database: sqlite3.Connection, path: Path) -> int:
    """Return the format of a store, 0 for an empty file; one that is newer than ours is refused."""
    number, mark = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("user_version", "application_id")
    )
    if number in (1, 2) and mark == 0:
        return number
    if number == mark == 0:
        if database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise Damaged("it is another program's")
        return 0
    if mark != _MARK + number:
        raise Damaged("it does not say which format it has")
    if number > VERSION:
        raise StoreError(
            f"{path} was written by a newer version of acceptability (format {number}; this one reads {VERSION}). "
            "Upgrade, or name another folder in ACCEPTABILITY_HOME."
        )
    return number


def create(database: sqlite3.Connection) -> None:
    """Make the tables, and say which format they have."""
    for statement in _SCHEMA.split(";"):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {_MARK + VERSION}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def models(database: sqlite3.Connection) -> dict[str, Known]:
    """Return all models by their signatures."""
    rows = database.execute("SELECT number, signature, blocks, seal FROM model").fetchall()
    found = {signature: Known(number, signature, blocks) for number, signature, blocks, _ in rows}
    (last,) = database.execute("SELECT MAX(model) FROM block").fetchone()
    if len(found) != max([number for number, *_ in rows] + [last or 0]):
        raise Damaged("a model is missing")
    if any(found[signature].seal != seal for _, signature, _, seal in rows):
        raise Damaged("a model does not match its checksum")
    return found


def put(database: sqlite3.Connection, model: str, keys: bytes, block: bytes) -> None:
    """Add a block to a model, which need not be known yet. The caller keeps a transaction."""
    known = models(database)
    before = known.get(model, Known(len(known) + 1, model, 0))
    after = Known(before.number, model, before.blocks + 1)
    database.execute(
        "INSERT INTO block (model, keys, answers) VALUES (?, ?, ?)",
        (after.number, keys, block),
    )
    database.execute(
        "INSERT OR REPLACE INTO model (number, signature, blocks, seal) VALUES (?, ?, ?, ?)",
        (after.number, model, after.blocks, after.seal),
    )


@contextmanager
def transaction(database: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Do all or nothing."""
    database.execute(f"BEGIN {kind}")
    try:
        yield
        database.execute("COMMIT")
    finally:
        # SQLite itself goes back when a disk is full.
        if database.in_transaction:
            database.execute("ROLLBACK")
