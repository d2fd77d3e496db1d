"""The one file that keeps what models said: model × query → tokens and log-probabilities, or logits.

SQLite with a write-ahead log. A batch is one transaction, so a killed run loses at most
the batch in flight, and several processes may share the file. Every row carries a
checksum; a row that does not match it is an error, never a score.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import TracebackType

import numpy as np

from acceptability.errors import StoreError
from acceptability.home import home
from acceptability.types import LabelScores, Said, TokenScores

_VERSION = 2
_OLDER = (1,)
"""Formats that this one reads: all that they hold is in order here too."""
_SECONDS_TO_WAIT = 60.0
_KEYS_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS model (number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS said (
    model INTEGER NOT NULL REFERENCES model, query BLOB NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (model, query)
) WITHOUT ROWID;
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
        for start in range(0, len(keys) if found else 0, _KEYS_AT_ONCE):
            places = {key: start + place for place, key in enumerate(keys[start : start + _KEYS_AT_ONCE])}
            for key, answer in self._rows(found[0], list(places)):
                yield places[key], self._read(answer, text(places[key]))

    def _rows(self, number: int, keys: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        marks = ",".join("?" * len(keys))
        with self._guarded():
            return self._database.execute(
                f"SELECT query, answer FROM said WHERE model = ? AND query IN ({marks})", [number, *keys]
            ).fetchall()

    def add(self, model: str, answers: Iterable[tuple[bytes, Said]]) -> None:
        """Keep what the model said to queries of some keys, all or nothing."""
        rows = [(key, _written(said)) for key, said in answers]
        with self._guarded(), self._transaction():
            number = self._number(model)
            self._database.executemany("INSERT OR IGNORE INTO said VALUES (?, ?, ?)", [(number, *row) for row in rows])

    def counts(self) -> dict[str, int]:
        """Return how many answers of each model are kept."""
        with self._guarded():
            rows = self._database.execute(
                "SELECT signature, COUNT(query) FROM model LEFT JOIN said ON said.model = number GROUP BY number"
            )
            return dict(rows)

    def _prepare(self) -> None:
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, *_OLDER, _VERSION):
            raise StoreError(
                f"{self.path} was written by another version of acceptability (format {version}; this one reads "
                f"{_VERSION}). Name another folder in ACCEPTABILITY_HOME, or upgrade."
            )
        if version == 0:
            tables = self._database.execute("SELECT name FROM sqlite_master WHERE name NOT IN ('model', 'said')")
            if any(not name.startswith("sqlite_") for (name,) in tables):
                raise StoreError(f"{self.path} is another program's database. {_ADVICE}")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        if version != _VERSION:
            with self._transaction():
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def _number(self, model: str) -> int:
        ask = "SELECT number FROM model WHERE signature = ?"
        found = self._database.execute(ask, [model]).fetchone()
        if not found:
            self._database.execute("INSERT OR IGNORE INTO model (signature) VALUES (?)", [model])
            found = self._database.execute(ask, [model]).fetchone()
        return int(found[0])

    def _read(self, answer: bytes, text: str) -> Said:
        said = _read(answer, text)
        if said is None:
            raise StoreError(f"the store {self.path} is damaged: a row does not match its checksum. {_ADVICE}")
        return said

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


def _written(said: Said) -> bytes:
    """Return an answer as bytes: checksum, kind, then offsets, log-probabilities and tokens, or two logits."""
    if isinstance(said, LabelScores):
        body = b"L" + struct.pack("<dd", *said.logits)
    else:
        offsets = struct.pack(f"<{2 * len(said.offsets)}I", *chain.from_iterable(said.offsets))
        logprobs = said.logprobs.astype("<f4", copy=False).tobytes()
        kind, tokens = b"Z", "\0".join(said.tokens)
        if tokens.count("\0") >= len(said.tokens):  # a token has the separator in it
            kind, tokens = b"T", json.dumps(said.tokens, ensure_ascii=False, separators=(",", ":"))
        count = struct.pack("<I", len(said.tokens))
        body = b"".join((kind, count, offsets, logprobs, tokens.encode("utf-8", "surrogatepass")))
    return struct.pack("<I", zlib.crc32(body)) + body


def _read(answer: bytes, text: str) -> Said | None:
    """Return the answer that the bytes hold, or None if they are not whole."""
    checksum, body = answer[:4], answer[4:]
    if len(body) < 1 or struct.pack("<I", zlib.crc32(body)) != checksum:
        return None
    if body[:1] == b"L":
        bad, good = struct.unpack("<dd", body[1:])
        return LabelScores(text, (bad, good))
    (count,) = struct.unpack_from("<I", body, 1)
    ends = iter(struct.unpack_from(f"<{2 * count}I", body, 5))
    logprobs = np.frombuffer(body, dtype="<f4", count=count, offset=5 + 8 * count)
    tokens = body[5 + 12 * count :].decode("utf-8", "surrogatepass")
    spelled = json.loads(tokens) if body[:1] == b"T" else tokens.split("\0")
    return TokenScores(text, tuple(spelled), tuple(zip(ends, ends, strict=True)), logprobs)
