"""The file format of the store: its tables, its blocks of outputs, its version, its lock and its errors.

A store is an SQLite file with two tables. ``model`` has a row for each model, with its store key (its signature, for
most) and the number of its blocks; ``block`` has a row for each batch of outputs, with the time at which it was stored.
Damage is always noticed: a block carries a checksum over its outputs, their query keys and the key of the model; a row
of ``model`` has a checksum of its own (its seal); and the number of blocks shows when one is missing. The version
stands in the file twice, so that a flipped bit does not pass for a newer version. Only the times are without a
checksum: no score depends on them.

``scores.py`` uses the functions below. Those come in this order: version and tables, transactions, rows, the encoding
of blocks, errors and retries, creating and opening the file, and the lock.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import StoreError
from acceptability.outputs import SPELLED, UNSAID, TokenColumns, make_columns
from acceptability.types import LabelScores, ModelOutput, TokenPredictions, TokenScores

VERSION = 4
"""The version of the file format. Version 3, which is the same without the times, is upgraded when it is opened."""

_UPGRADABLE_VERSION = 3

PAGE_BYTES = 4096
"""The size of a page in SQLite files, which is SQLite's default."""

KEY_BYTES = 16
"""The length of a query key."""

_APPLICATION_ID = 0x61630000
"""The application id in the file's header, to which the version is added."""

_SCHEMA = """
CREATE TABLE model (
    number INTEGER PRIMARY KEY, signature TEXT NOT NULL, blocks INTEGER NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE block (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL REFERENCES model, keys BLOB NOT NULL, answers BLOB NOT NULL,
    stored_at INTEGER
);
CREATE INDEX block_of_model ON block (model)
"""


@dataclass(frozen=True)
class ModelRecord:
    """A row of the table ``model``.

    Args:
        number: Its primary key; models are numbered from 1 without gaps.
        signature: The store key of the model, which is its signature for most models.
        blocks: The number of blocks that hold its outputs.
    """

    number: int
    signature: str
    blocks: int

    @property
    def checksum(self) -> int:
        """The checksum of all fields, which is stored as the seal."""
        return zlib.crc32(f"{self.number} {self.blocks} {self.signature}".encode("utf-8", "surrogatepass"))


def read_version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of a store, 0 for an empty file; raise StoreError for any that this program cannot read.

    The caller is in a transaction: a process that creates the tables between two of the statements would otherwise make
    a new store look like another program's.
    """
    number, mark = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("user_version", "application_id")
    )
    # A file without an application id is empty, of a version before the ids, or another program's. Those with a version
    # are refused and not moved aside: they may hold weeks of scoring, or another program's data.
    if mark == 0 and 0 < number < _UPGRADABLE_VERSION:
        raise StoreError(
            f"{path} has the old format {number}, and this version of acceptability reads only {_UPGRADABLE_VERSION} "
            f"and {VERSION}. Nothing was changed: rename the file and its sentences are scored again, or name another "
            "folder in ACCEPTABILITY_HOME."
        )
    if number == mark == 0:
        if database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise DamagedStore("it is another program's")
        return 0
    if mark != _APPLICATION_ID + number:
        raise DamagedStore("it does not say which format it has")
    if number > VERSION:
        raise StoreError(
            f"{path} was written by a newer version of acceptability (format {number}; this one reads {VERSION}). "
            "Upgrade, or name another folder in ACCEPTABILITY_HOME."
        )
    return number


def create_tables(database: sqlite3.Connection) -> None:
    """Create the tables and write the version. The caller is in a transaction."""
    # Statement by statement: executescript would commit the transaction first.
    for statement in _SCHEMA.split(";"):
        database.execute(statement)
    _write_version(database)


def _upgrade_tables(database: sqlite3.Connection) -> None:
    """Turn a store of version 3 into one of the present version. The caller is in a transaction.

    When its blocks were stored is unknown. A process of the version before that has it open can continue: it writes
    blocks without a time.
    """
    database.execute("ALTER TABLE block ADD COLUMN stored_at INTEGER")
    _write_version(database)


def _write_version(database: sqlite3.Connection) -> None:
    """Write the version to both of its places."""
    database.execute(f"PRAGMA application_id = {_APPLICATION_ID + VERSION}")
    database.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def transaction(database: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """Execute the statements of a ``with`` block all or not at all.

    Args:
        kind: "IMMEDIATE" takes the write lock at once, and waits for it; a "DEFERRED" transaction that starts with
            reading fails when it later needs the lock and another process has written meanwhile.
    """
    database.execute(f"BEGIN {kind}")
    try:
        yield
        database.execute("COMMIT")
    finally:
        # Not if SQLite has rolled back by itself, as it does when the disk is full: a second rollback is an error that
        # would hide the first.
        if database.in_transaction:
            database.execute("ROLLBACK")


def read_models(database: sqlite3.Connection) -> dict[str, ModelRecord]:
    """Return the records of all models by their signatures; raise DamagedStore if one is missing or changed."""
    rows = database.execute("SELECT number, signature, blocks, seal FROM model").fetchall()
    records = {signature: ModelRecord(number, signature, blocks) for number, signature, blocks, _ in rows}
    (last,) = database.execute("SELECT MAX(model) FROM block").fetchone()
    # Models are numbered without gaps. A gap, two equal signatures, or a block of a higher number mean a lost row.
    if len(records) != max([number for number, *_ in rows] + [last or 0]):
        raise DamagedStore("a model is missing")
    if any(records[signature].checksum != seal for _, signature, _, seal in rows):
        raise DamagedStore("a model does not match its checksum")
    return records


def insert_block(
    database: sqlite3.Connection, model: str, keys: bytes, block: bytes, stored_at: int | None = None
) -> None:
    """Add a block to a model, which is added too if it is new. The caller is in a transaction.

    Args:
        model: The store key of the model.
        keys: The keys of the queries, concatenated.
        block: Their outputs, from ``encode_block``.
        stored_at: When they were stored, in seconds since 1970; None if that is unknown.
    """
    # Read anew for each block: another process may have added models or blocks since the last one.
    records = read_models(database)
    before = records.get(model, ModelRecord(len(records) + 1, model, 0))
    after = ModelRecord(before.number, model, before.blocks + 1)
    database.execute(
        "INSERT INTO block (model, keys, answers, stored_at) VALUES (?, ?, ?, ?)",
        (after.number, keys, block, stored_at),
    )
    _write_model(database, after)


def _write_model(database: sqlite3.Connection, record: ModelRecord) -> None:
    """Write a row of the table ``model``, in place of the one that has its number, if there is one."""
    database.execute(
        "INSERT OR REPLACE INTO model (number, signature, blocks, seal) VALUES (?, ?, ?, ?)",
        (record.number, record.signature, record.blocks, record.checksum),
    )


def delete_blocks(database: sqlite3.Connection, numbers_by_model: Mapping[str, Sequence[int]]) -> None:
    """Delete blocks, and the models that have no other. The caller is in a transaction, and alone in the store.

    Args:
        numbers_by_model: The numbers of the blocks, by the store key of their model.
    """
    # Subtracted from the number of blocks that were written, and not counted anew: a lost block stays noticeable.
    kept = [
        ModelRecord(record.number, key, record.blocks - len(numbers_by_model.get(key, ())))
        for key, record in read_models(database).items()
    ]
    for numbers in numbers_by_model.values():
        database.executemany("DELETE FROM block WHERE number = ?", [(number,) for number in numbers])
    database.execute("DELETE FROM model")
    # Without gaps again, since a gap means a lost row. Upwards, so that each number is free before it is given.
    remaining = sorted((record for record in kept if record.blocks > 0), key=lambda record: record.number)
    for number, record in enumerate(remaining, start=1):
        if number != record.number:
            database.execute("UPDATE block SET model = ? WHERE model = ?", (number, record.number))
        _write_model(database, ModelRecord(number, record.signature, record.blocks))


# A block is: the checksum (CRC-32) of the query keys and of all that follows, a letter for its kind, the number of
# outputs, the length of the model's signature and the signature, and then, by kind,
#
# - l: two logits for each output;
# - z: the number of tokens of each output, then for all outputs together the spans of the tokens, their
#   log-probabilities, and the tokens themselves, separated by zero bytes;
# - j: as z, but with the tokens as JSON, for tokens that contain a zero byte;
# - y, k: as z and j, with a byte for each token between log-probabilities and tokens: 0 if the model knows it, 1 if it
#   is unknown, 2 if the model does not say, 3 if it is unknown and has a log-probability of its spelling (the flags of
#   ``TokenColumns``); and those log-probabilities, as float32;
# - p: the body of one of these four, after its letter and its length; then, for all tokens together, what the model
#   predicted (the fields of ``TokenPredictions``), with the number of alternatives before and their texts behind them.
#
# Columns over the whole batch and not one record for each output: NumPy then packs and unpacks a thousand outputs in
# about the time of one.
_HEADER = struct.Struct("<IcI")
_LENGTH = struct.Struct("<I")
_KINDS = b"lzjykp"
_KINDS_WITH_UNKNOWN = {b"z": b"y", b"j": b"k"}


def encode_block(outputs: Sequence[ModelOutput], keys: bytes, model: str) -> bytes:
    """Return outputs as a block.

    Args:
        outputs: Outputs of one kind, logits or tokens.
        keys: The keys of their queries, concatenated. They are not part of the block, but of its checksum.
        model: The signature of the model.
    """
    if isinstance(outputs, TokenColumns):
        kind, body = _encode_tokens(outputs)
    elif all(isinstance(output, TokenPredictions) for output in outputs):
        kind, body = b"p", _encode_predictions([one for one in outputs if isinstance(one, TokenPredictions)])
    elif all(isinstance(output, LabelScores) for output in outputs):
        logits = [output.logits for output in outputs if isinstance(output, LabelScores)]
        kind, body = b"l", np.array(logits, "<f8").tobytes()
    else:
        kind, body = _encode_tokens(make_columns([output for output in outputs if isinstance(output, TokenScores)]))
    # Signatures may hold file names with half a surrogate pair, which is how Python shows bytes that are not UTF-8.
    owner = model.encode("utf-8", "surrogatepass")
    tail = struct.pack("<cI", kind, len(outputs)) + _LENGTH.pack(len(owner)) + owner + body
    return struct.pack("<I", zlib.crc32(tail, zlib.crc32(keys))) + tail


def _encode_tokens(columns: TokenColumns) -> tuple[bytes, bytes]:
    """Return the kind and the body of a block of token scores."""
    kind, joined_tokens = b"z", "\0".join(columns.tokens)
    # One separator fewer than tokens; more zeros are part of a token, at which the text would be split too.
    if joined_tokens.count("\0") >= len(columns.tokens):
        kind, joined_tokens = b"j", json.dumps(list(columns.tokens), ensure_ascii=False, separators=(",", ":"))
    flags = b""
    if columns.flags is not None and (columns.flags != UNSAID).any():
        spellings = b"" if columns.spellings is None else columns.spellings.astype("<f4", copy=False).tobytes()
        flags = columns.flags.tobytes() + spellings
        kind = _KINDS_WITH_UNKNOWN[kind]
    parts = (
        columns.counts.astype("<u4").tobytes(),
        columns.spans.astype("<u4", copy=False).tobytes(),
        columns.logprobs.astype("<f4", copy=False).tobytes(),
        flags,
        joined_tokens.encode("utf-8", "surrogatepass"),
    )
    return kind, b"".join(parts)


_PREDICTIONS_HEAD = struct.Struct("<cII")
"""The letter and the length of the token scores within a block of predictions, and the number of alternatives."""


def _encode_predictions(outputs: Sequence[TokenPredictions]) -> bytes:
    """Return the body of a block of predictions."""
    inner_kind, inner = _encode_tokens(make_columns(outputs))
    # Tokens are few and their occurrences many: each text is written once.
    texts = list(dict.fromkeys(text for output in outputs for row in output.top_tokens for text in row))
    code_of = {text: code for code, text in enumerate(texts)}
    widths = {output.top_logprobs.shape[1] for output in outputs}
    width = max(widths)
    # Outputs of one model have as many alternatives each; a server may give fewer for some.
    tops = [np.pad(one.top_logprobs, ((0, 0), (0, width - one.top_logprobs.shape[1])), constant_values=-np.inf)
            for one in outputs]  # fmt: skip
    codes = np.zeros((sum(len(output.tokens) for output in outputs), width), "<u4")
    for row, alternatives in enumerate(chain.from_iterable(output.top_tokens for output in outputs)):
        codes[row, : len(alternatives)] = [code_of[text] for text in alternatives]
    columns = (
        np.concatenate([output.entropies for output in outputs]).astype("<f4"),
        np.concatenate([output.entropies_after for output in outputs]).astype("<f4"),
        np.concatenate([output.ranks for output in outputs]).astype("<u4"),
        np.concatenate([output.cumulative for output in outputs]).astype("<f4"),
        np.concatenate(tops).astype("<f4"),
        codes,
    )
    joined = json.dumps(texts, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    head = _PREDICTIONS_HEAD.pack(inner_kind, len(inner), width)
    return b"".join([head, inner, *(column.tobytes() for column in columns), joined])


def _decode_predictions(
    block: bytes, start: int, count: int, rows: NDArray[np.int64], texts: Sequence[str]
) -> list[TokenPredictions]:
    """Return some of the predictions in the body of a block, which begins at ``start``."""
    kind, size, width = _PREDICTIONS_HEAD.unpack_from(block, start)
    start += _PREDICTIONS_HEAD.size
    scores = _decode_tokens(block[start : start + size], kind, count, 0)
    position, total = start + size, len(scores.tokens)
    parts: list[NDArray[Any]] = []
    for dtype, columns in (("<f4", 1), ("<f4", 1), ("<u4", 1), ("<f4", 1), ("<f4", width), ("<u4", width)):
        parts.append(np.frombuffer(block, dtype, total * columns, position))
        position += 4 * total * columns
    entropies, after, ranks, cumulative, top_logprobs, codes = parts
    tops, codes = top_logprobs.reshape(total, width), codes.reshape(total, width)
    names: list[str] = json.loads(block[position:].decode("utf-8", "surrogatepass"))
    found = []
    for row, text in zip(rows.tolist(), texts, strict=True):
        own, one = slice(int(scores.starts[row]), int(scores.ends[row])), scores[row]
        kept = np.isfinite(tops[own])
        found.append(
            TokenPredictions(
                text,
                one.tokens,
                one.offsets,
                one.logprobs,
                one.unknown,
                one.spelling_logprobs,
                entropies[own],
                after[own],
                ranks[own].astype(np.int64),
                cumulative[own],
                tuple(
                    tuple(names[code] for code in codes_row[:filled])
                    for codes_row, filled in zip(codes[own].tolist(), kept.sum(1).tolist(), strict=True)
                ),
                tops[own],
            )
        )
    return found


def decode_block(block: bytes, keys: bytes, texts: Mapping[int, str], model: str) -> dict[int, ModelOutput] | None:
    """Return outputs of a block by their row numbers; None if the block is damaged or another model's.

    Args:
        keys: The keys of all queries of the block.
        texts: The texts of the queries at the wanted rows, which are not stored.
        model: The signature of the model that the block should belong to.
    """
    outputs = decode_rows(block, keys, np.array(list(texts), np.int64), list(texts.values()), model)
    return None if outputs is None else dict(zip(texts, outputs, strict=True))


def decode_rows(
    block: bytes, keys: bytes, rows: NDArray[np.int64], texts: Sequence[str], model: str
) -> Sequence[ModelOutput] | None:
    """Return outputs of a block; None if the block is damaged or another model's.

    Args:
        keys: The keys of all queries of the block.
        rows: The row numbers of the wanted outputs.
        texts: The texts of their queries, which are not stored.
        model: The signature of the model that the block should belong to.
    """
    if not is_intact(block, keys) or read_owner(block) != model:
        return None
    _, kind, count = _HEADER.unpack_from(block)
    start = _HEADER.size + _LENGTH.size + _read_owner_length(block)
    if kind == b"l":
        logits = np.frombuffer(block, "<f8", 2 * count, start).reshape(-1, 2).tolist()
        return [LabelScores(text, tuple(logits[row])) for row, text in zip(rows.tolist(), texts, strict=True)]
    if kind == b"p":
        return _decode_predictions(block, start, count, rows, texts)
    # Without texts, since those of the rows that are not wanted are unknown.
    return replace(_decode_tokens(block, kind, count, start).take(rows), texts=texts)


def _decode_tokens(block: bytes, kind: bytes, count: int, start: int) -> TokenColumns:
    """Return the token scores of a block, without texts, from where its body begins."""
    counts = np.frombuffer(block, "<u4", count, start).astype(np.int64)
    total, position = int(counts.sum()), start + 4 * count
    spans = np.frombuffer(block, "<u4", 2 * total, position).reshape(-1, 2)
    logprobs = np.frombuffer(block, "<f4", total, position + 8 * total)
    position += 12 * total
    flags = spellings = None
    if kind in _KINDS_WITH_UNKNOWN.values():
        flags = np.frombuffer(block, np.uint8, total, position)
        position += total
        spellings = np.frombuffer(block, "<f4", int(np.count_nonzero(flags == SPELLED)), position)
        position += 4 * len(spellings)
    joined_tokens = block[position:].decode("utf-8", "surrogatepass")
    tokens = json.loads(joined_tokens) if kind in (b"j", b"k") else joined_tokens.split("\0")
    return TokenColumns([""] * count, counts, tokens, spans, logprobs, flags, spellings)


def is_intact(block: bytes, keys: bytes) -> bool:
    """Return whether a block and the keys of its queries match its checksum."""
    if len(block) < _HEADER.size:
        return False
    return zlib.crc32(block[4:], zlib.crc32(keys)) == int.from_bytes(block[:4], "little")


def read_owner(block: bytes) -> str | None:
    """Return the signature of the model of an intact block, or None for a block of an older format."""
    if block[4:5] not in _KINDS:
        return None
    start = _HEADER.size + _LENGTH.size
    return block[start : start + _read_owner_length(block)].decode("utf-8", "surrogatepass")


def _read_owner_length(block: bytes) -> int:
    """Return the length of the signature in a block, in bytes."""
    return int(_LENGTH.unpack_from(block, _HEADER.size)[0])


# The error codes of SQLite that say that the content of the file is wrong. The others are about locks, permissions and
# space, and a new store would not help against those.
_DAMAGE_CODES = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_INTERNAL,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOTADB,
}
_CHECK_HINT = "Check that its folder can be written to and has space, or name another in ACCEPTABILITY_HOME."


# Another process is writing a batch, copying a large log into the file, or opening or closing it.
_LOCKED_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_LOCKED_TIMEOUT_S = 60.0
# SQLite waits this long by itself where it can: less than above, so that both together do not take twice as long.
_SQLITE_TIMEOUT_S = 5.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.25

Value = TypeVar("Value")


class DamagedStore(StoreError):
    """The content of the file seems damaged, which recovery checks and repairs. The message says in a few words how."""


@contextmanager
def translate_store_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into ``DamagedStore`` or ``StoreError``."""
    try:
        yield
    except sqlite3.Error as error:
        if _is_damage(error, path):
            raise DamagedStore(str(error)) from error
        raise StoreError(f"cannot use the store {path}: {error}. {_CHECK_HINT}") from error
    except OSError as error:
        raise StoreError(f"cannot use the store {path}: {error.strerror}. {_CHECK_HINT}") from error


@contextmanager
def report_lasting_damage(path: Path) -> Iterator[None]:
    """Turn damage that is noticed again, after the store was checked and repaired, into an error that says so."""
    try:
        yield
    except DamagedStore as error:
        raise StoreError(
            f"the store {path} seems damaged ({error}) again, after it was checked and repaired: its disk may be "
            "failing. Name a folder on another disk in ACCEPTABILITY_HOME."
        ) from error


def access_database(path: Path, action: Callable[[], Value]) -> Value:
    """Return what an action on a store returns. It is tried again while another process has locked the file.

    Args:
        path: The store, for the errors, which are translated.
        action: Does all of its work or none of it.
    """
    # SQLite's own time-out is not enough: it reports some locks at once, such as those of a process that turns the
    # write-ahead log on, or deletes it as the last one that closes the file.
    deadline, pause = time.monotonic() + _LOCKED_TIMEOUT_S, _FIRST_PAUSE_S
    with translate_store_errors(path):
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED_CODES:
                    raise
                if time.monotonic() + pause > deadline:
                    raise StoreError(
                        f"the store {path} has been locked by another process for {_LOCKED_TIMEOUT_S:.0f} seconds. "
                        "Give the command again when that process has ended; what was stored is kept."
                    ) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _is_damage(error: sqlite3.Error, path: Path) -> bool:
    """Return whether an error means that the content of the file is damaged."""
    # Errors of Python's own module have no code: a text column that is not UTF-8, for one.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code == sqlite3.SQLITE_READONLY:
        # A flipped bit in the header can declare the file read-only although the file system lets us write.
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    # The low byte is the primary code; the others refine it.
    return code & 0xFF in _DAMAGE_CODES


def create_store(path: Path) -> None:
    """Create an empty store, unless there is a file already."""
    if path.exists():
        return
    # Complete before it gets its name: nobody sees a store without its tables, or one that is changing to a write-ahead
    # log, which several processes cannot do at once.
    with TemporaryDirectory(dir=path.parent, prefix=".creating-", ignore_cleanup_errors=True) as folder:
        draft = Path(folder) / "draft"
        with closing(sqlite3.connect(draft, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            with transaction(database):
                create_tables(database)
        # A link and not a renaming, which would replace the store of a process that was faster, and perhaps has outputs
        # by now. That store is used then. Where a file system has no links, opening creates the tables.
        with suppress(OSError):
            os.link(draft, path)


def open_database(path: Path) -> sqlite3.Connection:
    """Return a connection to a store, whose version was checked; an empty file gets its tables."""
    # SQLite takes a file that is shorter than a page for an empty one, and would write over it.
    if path.exists() and 0 < path.stat().st_size < PAGE_BYTES:
        raise DamagedStore("it is too short")
    # No isolation level: transactions are explicit, where Python's module would open them by itself.
    database = sqlite3.connect(path, timeout=_SQLITE_TIMEOUT_S, isolation_level=None)
    try:
        _prepare(database, path)
    except BaseException:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    """Check the version, set the pragmas, create the tables in an empty file, and upgrade those of version 3."""
    # Before the pragmas, which write to the file: a file of another program or version must stay as it is.
    with transaction(database, "DEFERRED"):
        version = read_version(database, path)
    # With a write-ahead log, readers and a writer do not block each other, and a batch is one append.
    database.execute("PRAGMA journal_mode = WAL")
    # Not forced to disk at every commit. A loss of power may cost the last batches, which are scored again, but cannot
    # damage the file.
    database.execute("PRAGMA synchronous = NORMAL")
    # The log is copied into the file once it has 16,384 pages, or 64 MB. At SQLite's default of 1,000 pages, that would
    # happen at nearly every batch of a GPU.
    database.execute("PRAGMA wal_autocheckpoint = 16384")
    if version < VERSION:
        with transaction(database):
            # Checked again under the write lock: another process may have created or upgraded the tables meanwhile.
            version = read_version(database, path)
            if version == 0:
                create_tables(database)
            elif version < VERSION:
                _upgrade_tables(database)


_LOCK_TIMEOUT_S = 10.0


def lock_shared(path: Path) -> BinaryIO:
    """Return the lock of a process that uses a store; others may hold it too, and closing it releases it."""
    return _lock(path, exclusive=False)


def lock_exclusive(path: Path, found: str, advice: str) -> BinaryIO:
    """Return the lock of the process that repairs a store, or deletes from it; closing it releases it.

    Args:
        found: What makes it necessary, for the error if another process uses the store.
        advice: What the user gains when he gives the command again.
    """
    # Not waited for indefinitely: a command in another terminal may use the store for days.
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            return _lock(path, exclusive=True)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreError(
                    f"the store {path} {found}, and another process uses it. Nothing was changed: "
                    f"give the command again when that has ended, and {advice}."
                ) from None
        time.sleep(0.05)


def _lock(path: Path, *, exclusive: bool) -> BinaryIO:
    """Return an open file beside the store that holds a lock on it."""
    # A lock of the operating system, which ends with the process, however that ends; a lock file whose existence is the
    # lock would stay behind after a kill. On a file of its own, since recovery renames the store itself.
    lock_file = path.with_name(f"{path.name}.lock").open("ab")
    try:
        # Windows refuses by itself to rename a file that another process has open.
        if os.name == "posix":
            import fcntl

            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
    except BaseException:
        lock_file.close()
        raise
    return lock_file
