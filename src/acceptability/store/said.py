"""The one file that keeps what models said: model × query → tokens and log-probabilities, or logits.

SQLite with a write-ahead log. The answers of a batch are one block and one transaction, so a
killed run loses at most the two batches in flight, and several processes may share the file.
Every block carries a checksum; one that does not match it is an error, never a score.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np

from acceptability.errors import StoreError
from acceptability.home import home
from acceptability.store.block import read, read_row, written
from acceptability.types import Said

_VERSION = 2
_SECONDS_TO_WAIT = 60.0
_KEY = 16
_ROWS_TAKEN_OVER = 10_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS model (number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS block (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL REFERENCES model, keys BLOB NOT NULL, answers BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS block_of_model ON block (model);
"""


class Store:
    """An open store. Use it in a ``with`` statement."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home() / "scores.sqlite"
        with self._guarded():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, timeout=_SECONDS_TO_WAIT, isolation_level=None)
            self._prepare()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def known(self, model: str, keys: Sequence[bytes], text: Callable[[int], str]) -> Iterator[tuple[int, Said]]:
        """Yield what the model has said already to any of the queries with these keys, with its place among them.

        Args:
            text: Gives the text of the query at a place.
        """
        with self._guarded():
            found = self._database.execute("SELECT number FROM model WHERE signature = ?", [model]).fetchone()
        if found:
            yield from self._known(found[0], keys, text)

    def _known(self, number: int, keys: Sequence[bytes], text: Callable[[int], str]) -> Iterator[tuple[int, Said]]:
        wanted = np.array(list(keys), dtype=f"S{_KEY}")
        order = np.argsort(wanted)
        in_order, is_found = wanted[order], np.zeros(len(wanted), bool)
        with self._guarded():
            blocks = self._database.execute("SELECT number, keys FROM block WHERE model = ?", [number]).fetchall()
        for block, held in blocks:
            has = np.frombuffer(held, dtype=in_order.dtype)
            near = np.minimum(np.searchsorted(in_order, has), len(in_order) - 1)
            inside = np.flatnonzero(in_order[near] == has)
            places = order[near[inside]]
            # Two processes may have answered the same query; the first answer counts.
            new = ~is_found[places]
            is_found[places] = True
            if new.any():
                rows = zip(inside[new].tolist(), places[new].tolist(), strict=True)
                yield from self._answers(block, held, list(rows), text)

    def _answers(
        self, block: int, keys: bytes, rows: Sequence[tuple[int, int]], text: Callable[[int], str]
    ) -> Iterator[tuple[int, Said]]:
        """Yield the answers of a block that stand at some of its rows, each with the place of its query."""
        with self._guarded():
            (answers,) = self._database.execute("SELECT answers FROM block WHERE number = ?", [block]).fetchone()
        found = read(answers, keys, {row: text(place) for row, place in rows})
        if found is None:
            raise StoreError(f"the store {self.path} is damaged: a block does not match its checksum. {_ADVICE}")
        for row, place in rows:
            yield place, found[row]

    def add(self, model: str, answers: Iterable[tuple[bytes, Said]]) -> None:
        """Keep what the model said to queries of some keys, all or nothing."""
        rows = list(answers)
        if not rows:
            return
        keys = b"".join([key for key, _ in rows])
        body = written([said for _, said in rows], keys)
        with self._guarded(), self._transaction():
            number = self._number(model)
            self._database.execute("INSERT INTO block (model, keys, answers) VALUES (?, ?, ?)", (number, keys, body))

    def counts(self) -> dict[str, int]:
        """Return to how many different queries the answers of each model are kept."""
        with self._guarded():
            models = self._database.execute("SELECT signature, number FROM model").fetchall()
            held = {
                signature: self._database.execute("SELECT keys FROM block WHERE model = ?", [number]).fetchall()
                for signature, number in models
            }
        return {
            signature: len(np.unique(np.frombuffer(b"".join([keys for (keys,) in blocks]), f"S{_KEY}")))
            for signature, blocks in held.items()
        }

    def _prepare(self) -> None:
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise StoreError(
                f"{self.path} was written by a newer version of acceptability (format {version}; this one reads "
                f"{_VERSION}). Upgrade, or name another folder in ACCEPTABILITY_HOME."
            )
        if version == 0:
            tables = self._database.execute("SELECT name FROM sqlite_master WHERE tbl_name NOT IN ('model', 'block')")
            if any(not name.startswith("sqlite_") for (name,) in tables):
                raise StoreError(f"{self.path} is another program's database. {_ADVICE}")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        # The log is carried over into the file when it has grown to some 64 MB, not at every batch of a GPU.
        self._database.execute("PRAGMA wal_autocheckpoint = 16384")
        if version != _VERSION:
            with self._transaction():
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
                # Asked again, since another process may have been faster.
                if self._database.execute("PRAGMA user_version").fetchone()[0] == 1:
                    self._take_over()
                self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def _take_over(self) -> None:
        """Bring the answers of the first format, a row for each, into blocks."""
        for number, signature in self._database.execute("SELECT number, signature FROM model").fetchall():
            rows = self._database.execute("SELECT query, answer FROM said WHERE model = ?", [number])
            while some := rows.fetchmany(_ROWS_TAKEN_OVER):
                answers = [read_row(answer) for _, answer in some]
                if any(each is None for each in answers):
                    raise StoreError(
                        f"the store {self.path} is damaged: an answer of {signature} is not whole. {_ADVICE}"
                    )
                keys = b"".join([key for key, _ in some])
                self._database.execute(
                    "INSERT INTO block (model, keys, answers) VALUES (?, ?, ?)",
                    (number, keys, written([each for each in answers if each], keys)),
                )
        self._database.execute("DROP TABLE said")

    def _number(self, model: str) -> int:
        ask = "SELECT number FROM model WHERE signature = ?"
        found = self._database.execute(ask, [model]).fetchone()
        if not found:
            self._database.execute("INSERT OR IGNORE INTO model (signature) VALUES (?)", [model])
            found = self._database.execute(ask, [model]).fetchone()
        return int(found[0])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Turn what SQLite and the file system say into an error that tells what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot use the store {self.path}: {error}. {_CHECK}") from error
        except sqlite3.DatabaseError as error:
            raise StoreError(f"the store {self.path} is damaged: {error}. {_ADVICE}") from error
        except OSError as error:
            raise StoreError(f"cannot use the store {self.path}: {error.strerror}. {_CHECK}") from error


_ADVICE = "Move it away or delete it, and what it held is scored again."
_CHECK = "Check that its folder can be written to and has space, or name another in ACCEPTABILITY_HOME."
