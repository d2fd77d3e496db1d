"""The store of model outputs: one SQLite file from (store key of the model, query key) to token scores or logits.

The store key is the signature of the model, with what changes its outputs although it is no part of the question: the
scoring version, and for half precision the class of device. ``list_stored_models`` and ``forget_outputs`` are what
``acceptability store`` calls.

``ScoreStore`` is the open store; the format of the file is in ``database.py``, and these two files are all that
opening, reading and writing takes. The outputs of a batch are one block and one transaction, so that a killed run loses
at most the two batches in flight, and several processes may share the file. A block that does not match its checksum is
never read as a score: the file is then checked under a lock, moved aside if it is damaged indeed, and its intact blocks
are copied into a new one (``recovery.py``).
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import AcceptabilityError, SpecError, StoreError
from acceptability.models import load_model
from acceptability.outputs import IndexedOutputs, TextView
from acceptability.paths import home_folder
from acceptability.specs import build_signature, parse_model_spec, parse_signature, to_current_kind, to_stored_kind
from acceptability.store.database import (
    KEY_BYTES,
    DamagedStore,
    ModelRecord,
    access_database,
    create_store,
    decode_rows,
    delete_blocks,
    encode_block,
    insert_block,
    lock_exclusive,
    lock_shared,
    open_database,
    read_models,
    report_lasting_damage,
    transaction,
    translate_store_errors,
)
from acceptability.store.recovery import INTERRUPTED, find_unfinished_recovery, recover_store
from acceptability.types import ModelOutput

_log = logging.getLogger(__name__)

SCORING_VERSION = 1
"""Raised by one with every change of the code that changes an output of a model beyond rounding.

Outputs that were stored under another number are not found, so that a stored score never answers for code that would
compute another. It is no part of the signatures of results, which name the version of the package.
"""

_HALF_PRECISION = re.compile(r"\bdtype='b?float16'")

TextLookup = Callable[[int], str]
"""A function from the index of a query to its text."""

BlockKeys = tuple[int, bytes]
"""The number of a block, and the keys of its queries, concatenated."""


@dataclass(frozen=True)
class StoreKey:
    """What the outputs of a model are stored under.

    Args:
        model: The signature of the model.
        device: The class of device that computes them, such as "cuda", if the model computes in half precision, where
            devices round differently; None in full precision.
        scoring: The scoring version.
    """

    model: str
    device: str | None
    scoring: int

    @property
    def text(self) -> str:
        """The key as the file holds it: of version 1 in full precision, the signature alone.

        >>> StoreKey("uniform(vocabulary=50000)", None, 1).text
        'uniform(vocabulary=50000)'
        >>> StoreKey("causal:gpt2@607a30d783df(dtype='float16')", "cuda", 2).text
        "causal:gpt2@607a30d783df(dtype='float16')|device:cuda|scoring:2"
        """
        fields = {"device": self.device} if self.device else {}
        fields |= {"scoring": str(self.scoring)} if self.scoring != 1 else {}
        stored = to_stored_kind(self.model)
        # A signature that looks as if it had these fields, which a name of a user's own can do, is told apart by one.
        if not fields and _parse_key_fields(stored):
            fields = {"scoring": "1"}
        return build_signature(stored, fields) if fields else stored

    @property
    def is_current(self) -> bool:
        """Whether its outputs can still be found: not of another version, nor in half precision from any device."""
        return self.scoring == SCORING_VERSION and (self.device is not None or not _HALF_PRECISION.search(self.model))


def parse_store_key(text: str) -> StoreKey:
    """Return the store key that the file holds as a text.

    >>> parse_store_key("uniform(vocabulary=50000)|scoring:2")
    StoreKey(model='uniform(vocabulary=50000)', device=None, scoring=2)
    """
    fields = _parse_key_fields(text)
    if not fields:
        return StoreKey(to_current_kind(text), None, 1)
    return StoreKey(to_current_kind(fields["measure"]), fields.get("device"), int(fields.get("scoring", "1")))


def _parse_key_fields(text: str) -> dict[str, str]:
    """Return the fields of a store key, with the signature as "measure"; empty if the text is a signature alone."""
    fields = parse_signature(text)
    is_key = fields.keys() - {"measure"} and fields.keys() <= {"measure", "device", "scoring"}
    return fields if is_key and fields.get("scoring", "1").isdecimal() else {}


@dataclass(frozen=True)
class StoredModel:
    """What the store holds under one key.

    Args:
        model: The signature of the model.
        scoring: The scoring version.
        device: The class of device, for half precision; None otherwise, and for outputs from before it was recorded.
        outputs: The number of distinct queries with an output.
        size: The size of the outputs and their keys, in bytes.
        oldest: The day, in UTC, on which the oldest was stored; None if that is unknown of any of them.
        newest: The day on which the newest was stored; None if that is unknown of all.
        is_current: Whether they are found by the present version.
    """

    model: str
    scoring: int
    device: str | None
    outputs: int
    size: int
    oldest: date | None
    newest: date | None
    is_current: bool

    def row(self) -> dict[str, object]:
        """Return it as one row, for JSON."""
        days = {"oldest": self.oldest, "newest": self.newest}
        return vars(self) | {name: day.isoformat() if day else None for name, day in days.items()}


@dataclass(frozen=True)
class StoreSelection:
    """Which outputs are meant: those that fulfil every condition that is given.

    Args:
        model: The signature of their model, all of it, without options, or without options and version.
        scoring: Their scoring version.
        older_than: A day, in UTC, before which they were stored; those without a date are not meant.
        undated: Whether those without a date are meant, besides those that ``older_than`` selects.
    """

    model: str | None = None
    scoring: int | None = None
    older_than: date | None = None
    undated: bool = False

    def includes_key(self, key: StoreKey) -> bool:
        """Return whether outputs under a key can be meant."""
        return self.scoring in (None, key.scoring) and (self.model is None or self.model in _list_model_names(key))

    def includes_date(self, stored_at: int | None) -> bool:
        """Return whether outputs that were stored at a time, in seconds since 1970, can be meant."""
        if self.older_than is None and not self.undated:
            return True
        day = _to_day(stored_at)
        return self.undated if day is None else self.older_than is not None and day < self.older_than


def _list_model_names(key: StoreKey) -> tuple[str, ...]:
    """Return the names by which a selection may mean a model.

    >>> _list_model_names(StoreKey("ngram:trigram@5732531b85a8(eos=False)", None, 1))[1:]
    ('ngram:trigram@5732531b85a8', 'ngram:trigram')
    """
    try:
        kind, location, _ = parse_model_spec(key.model)
    # A model of a user's own may have any text as its signature.
    except SpecError:
        return (key.model,)
    bare = f"{kind}:{location}" if location else kind
    return key.model, bare, bare.rpartition("@")[0] or bare


def _to_day(stored_at: int | None) -> date | None:
    """Return the day of a time; None if it is unknown, or damaged, since times have no checksum."""
    try:
        return None if stored_at is None else datetime.fromtimestamp(stored_at, UTC).date()
    except (OverflowError, ValueError, OSError, TypeError):
        return None


@dataclass(frozen=True)
class _BlockEntry:
    """A block without its outputs.

    Args:
        keys: The keys of its queries, concatenated.
        size: Its size in bytes.
        stored_at: When it was stored.
    """

    number: int
    keys: bytes
    size: int
    stored_at: int | None


def _describe_blocks(key: StoreKey, blocks: Sequence[_BlockEntry]) -> StoredModel:
    """Return what some blocks under a key hold."""
    outputs = _count_distinct(b"".join([block.keys for block in blocks]))
    days = [_to_day(block.stored_at) for block in blocks]
    known = [day for day in days if day]
    oldest = min(known) if len(known) == len(days) else None
    size = sum(block.size for block in blocks)
    newest = max(known, default=None)
    return StoredModel(key.model, key.scoring, key.device, outputs, size, oldest, newest, key.is_current)


def _count_distinct(keys: bytes) -> int:
    """Return the number of distinct queries among concatenated keys."""
    return len(np.unique(np.frombuffer(keys, f"S{KEY_BYTES}")))


class ScoreStore:
    """An open store. Use it in a ``with`` statement.

    Args:
        path: The file; by default ``scores.sqlite`` in the home folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home_folder() / "scores.sqlite"
        self._open_or_recover()

    def __enter__(self) -> ScoreStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _open_or_recover(self) -> None:
        """Open the file, after repairing it if it is damaged."""
        try:
            self._open()
        except DamagedStore:
            self._recover()

    def _open(self) -> None:
        """Lock the file, create it if there is none, and connect to it."""
        with translate_store_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Before anything is looked at: while this lock is held, no other process can move the file away.
            self._lock = lock_shared(self.path)
        try:
            if find_unfinished_recovery(self.path):
                raise DamagedStore(INTERRUPTED)
            with translate_store_errors(self.path):
                create_store(self.path)
            self._database = access_database(self.path, lambda: open_database(self.path))
        except BaseException:
            self._close()
            raise

    def iter_known(
        self, model: str, keys: Sequence[bytes], text: TextLookup, *, device: str | None = None
    ) -> Iterator[tuple[int, ModelOutput]]:
        """Yield the stored outputs of a model for queries, each with the index of its query.

        Args:
            model: The signature of the model.
            keys: The keys of the queries.
            text: Returns the text of the query at an index, which the store does not hold.
            device: The class of device that the model computes on, if it computes in half precision.
        """
        for outputs in self.iter_known_blocks(model, b"".join(keys), text, device=device):
            yield from outputs

    def iter_known_blocks(
        self, model: str, keys: bytes, text: TextLookup, *, device: str | None = None
    ) -> Iterator[IndexedOutputs]:
        """Yield the stored outputs of a model for queries, block by block, with the indices of their queries.

        Args:
            model: The signature of the model.
            keys: The keys of the queries, concatenated.
            text: Returns the text of the query at an index, which the store does not hold.
            device: The class of device that the model computes on, if it computes in half precision.
        """
        model = StoreKey(model, device, SCORING_VERSION).text
        is_found = np.zeros(len(keys) // KEY_BYTES, bool)
        try:
            yield from self._iter_known(model, keys, text, is_found)
        except DamagedStore:
            self._recover()
            # From the beginning of the file. What was yielded already is marked, and not yielded twice.
            with report_lasting_damage(self.path):
                yield from self._iter_known(model, keys, text, is_found)

    def _iter_known(
        self, model: str, keys: bytes, text: TextLookup, is_found: NDArray[np.bool_]
    ) -> Iterator[IndexedOutputs]:
        """Yield the outputs that are stored under a key, and mark their queries as found."""
        # Keys are compared in sorted arrays and not by SQL: a request has up to millions of them, and the keys of a
        # block are one value in the database.
        requested_keys = np.frombuffer(keys, dtype=f"S{KEY_BYTES}")
        order = np.argsort(requested_keys)
        sorted_keys = requested_keys[order]
        for block, block_keys in self._list_blocks(model):
            stored_keys = np.frombuffer(block_keys, dtype=sorted_keys.dtype)
            nearest = np.minimum(np.searchsorted(sorted_keys, stored_keys), len(sorted_keys) - 1)
            matching_rows = np.flatnonzero(sorted_keys[nearest] == stored_keys)
            query_indices = order[nearest[matching_rows]]
            # Two processes may have scored the same query; the first output counts.
            is_new = ~is_found[query_indices]
            if is_new.any():
                indices = query_indices[is_new]
                texts = TextView(text, indices)
                outputs = self._read_outputs(model, (block, block_keys), matching_rows[is_new], texts)
                is_found[indices] = True
                yield IndexedOutputs(indices, outputs)

    def _list_blocks(self, model: str) -> list[BlockKeys]:
        """Return the blocks under a key; raise DamagedStore if there are fewer than were written."""

        def read() -> list[BlockKeys]:
            # One transaction for all queries: another process could add a block between them, or not have added it to
            # the count yet.
            with transaction(self._database, "DEFERRED"):
                record = read_models(self._database).get(model)
                if record is None:
                    return []
                query = "SELECT number, keys FROM block WHERE model = ?"
                blocks: list[BlockKeys] = self._database.execute(query, [record.number]).fetchall()
            if len(blocks) < record.blocks or any(len(block_keys) % KEY_BYTES for _, block_keys in blocks):
                raise DamagedStore("a block is missing")
            return blocks

        return access_database(self.path, read)

    def _read_outputs(
        self, model: str, block: BlockKeys, rows: NDArray[np.int64], texts: Sequence[str]
    ) -> Sequence[ModelOutput]:
        """Return outputs of one block.

        Args:
            rows: The rows of the block that are wanted.
            texts: The texts of their queries.
        """
        number, keys = block
        query = "SELECT answers FROM block WHERE number = ?"
        stored = access_database(self.path, lambda: self._database.execute(query, [number]).fetchone())
        outputs = decode_rows(stored[0], keys, rows, texts, model) if stored else None
        if outputs is None:
            raise DamagedStore("a block does not match its checksum")
        return outputs

    def add(self, model: str, answers: Iterable[tuple[bytes, ModelOutput]], *, device: str | None = None) -> None:
        """Store the outputs of a model, all or none of them.

        Args:
            model: The signature of the model.
            answers: The outputs, each with the key of its query.
            device: The class of device that computed them, if the model computes in half precision.
        """
        # Consumed before the transaction begins: an error of the caller's iterator then leaves nothing half written,
        # and the write lock is not held while a model computes.
        rows = list(answers)
        self.add_block(model, b"".join([key for key, _ in rows]), [output for _, output in rows], device=device)

    def add_block(self, model: str, keys: bytes, outputs: Sequence[ModelOutput], *, device: str | None = None) -> None:
        """Store the outputs of a model, all or none of them.

        Args:
            model: The signature of the model.
            keys: The keys of the queries, concatenated.
            outputs: The output of each query.
            device: The class of device that computed them, if the model computes in half precision.
        """
        model = StoreKey(model, device, SCORING_VERSION).text
        if not outputs:
            return
        block = encode_block(outputs, keys, model)
        try:
            self._insert(model, keys, block)
        except DamagedStore:
            self._recover()
            with report_lasting_damage(self.path):
                self._insert(model, keys, block)

    def _insert(self, model: str, keys: bytes, block: bytes) -> None:
        """Add a block in a transaction of its own."""

        def insert() -> None:
            with transaction(self._database):
                insert_block(self._database, model, keys, block, int(time.time()))

        access_database(self.path, insert)

    def list_keys(self) -> list[StoreKey]:
        """Return the keys under which outputs are stored, in the order in which the models were added."""

        def read() -> dict[str, ModelRecord]:
            # In a transaction: a model that is added between two queries would seem to be missing.
            with transaction(self._database, "DEFERRED"):
                return read_models(self._database)

        return [parse_store_key(text) for text in access_database(self.path, read)]

    def count_answers(self) -> dict[str, int]:
        """Return the number of distinct queries with a stored output, by the signature of the model.

        Where it is not enough to find the outputs, the device and the scoring version follow, as in store keys.
        """
        keys_by_model = {
            to_current_kind(key.text): b"".join([keys for _, keys in self._list_blocks(key.text)])
            for key in self.list_keys()
        }
        return {model: _count_distinct(keys) for model, keys in keys_by_model.items()}

    def list_models(self) -> list[StoredModel]:
        """Return what is stored, model by model, in the order in which the models were added; all of it is read."""
        return [_describe_blocks(key, blocks) for key, blocks in self._list_all()]

    def _list_all(self) -> list[tuple[StoreKey, list[_BlockEntry]]]:
        """Return all keys with their blocks, after repairing the store if it is damaged."""

        def read() -> list[tuple[StoreKey, list[_BlockEntry]]]:
            # In a transaction: a model that is added between two queries would seem to be missing.
            with transaction(self._database, "DEFERRED"):
                return _read_entries(self._database)

        try:
            return access_database(self.path, read)
        except DamagedStore:
            self._recover()
            with report_lasting_damage(self.path):
                return access_database(self.path, read)

    def forget(self, selection: StoreSelection, *, dry_run: bool = False) -> list[StoredModel]:
        """Delete outputs, and return what was deleted, model by model.

        Args:
            selection: Which outputs.
            dry_run: Return what would be deleted, and delete nothing.
        """
        if dry_run:
            return [_describe_blocks(key, blocks) for key, blocks in _select_blocks(self._list_all(), selection)]
        # Without the lock of a reader: other readers list blocks, and take one that vanishes before they read it for
        # damage. So nobody else may use the store, this object included.
        self._close()
        try:
            return self._forget_alone(selection)
        except DamagedStore:
            with translate_store_errors(self.path):
                recover_store(self.path)
            with report_lasting_damage(self.path):
                return self._forget_alone(selection)
        finally:
            self._open_or_recover()

    def _forget_alone(self, selection: StoreSelection) -> list[StoredModel]:
        """Delete outputs under the lock that excludes all others, and return what was deleted."""
        with translate_store_errors(self.path):
            lock = lock_exclusive(self.path, "is to be shortened", "the outputs are forgotten")
        with lock, translate_store_errors(self.path):
            # A file that is not there, or is being recovered, is left to those who create and repair it.
            if find_unfinished_recovery(self.path):
                raise DamagedStore(INTERRUPTED)
            create_store(self.path)
            database = open_database(self.path)
            try:
                with transaction(database):
                    chosen = _select_blocks(_read_entries(database), selection)
                    delete_blocks(database, {key.text: [block.number for block in blocks] for key, blocks in chosen})
                if chosen:
                    self._shrink(database)
            finally:
                database.close()
        return [_describe_blocks(key, blocks) for key, blocks in chosen]

    def _shrink(self, database: sqlite3.Connection) -> None:
        """Give the space of deleted outputs back to the file system."""
        try:
            database.execute("VACUUM")
        except sqlite3.OperationalError as error:
            # It writes the file anew, for which a disk that is nearly full has no room. What was deleted is deleted.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
                raise
            _log.warning("%s keeps its size, since there is no space to write it anew; new outputs fill it", self.path)

    def _recover(self) -> None:
        """Check the file that seems damaged, repair it if it is, and open it again."""
        # Closed first, since recovery needs the lock that excludes everybody, this process included.
        self._close()
        with translate_store_errors(self.path):
            recover_store(self.path)
        with report_lasting_damage(self.path):
            self._open()

    def _close(self) -> None:
        """Close the connection, if there is one, and release the lock."""
        if database := self.__dict__.pop("_database", None):
            database.close()
        # Last: while the connection is open, the file must not be moved.
        self._lock.close()


def _read_entries(database: sqlite3.Connection) -> list[tuple[StoreKey, list[_BlockEntry]]]:
    """Return all keys with their blocks; raise DamagedStore if a model or a block is missing.

    The caller is in a transaction.
    """
    records = read_models(database)
    entries: dict[int, list[_BlockEntry]] = {record.number: [] for record in records.values()}
    query = "SELECT model, number, keys, LENGTH(keys) + LENGTH(answers), stored_at FROM block"
    for model, number, keys, size, stored_at in database.execute(query):
        entries.setdefault(model, []).append(_BlockEntry(number, keys, size, stored_at))
    if any(_is_short(record, entries[record.number]) for record in records.values()):
        raise DamagedStore("a block is missing")
    ordered: list[ModelRecord] = sorted(records.values(), key=lambda record: record.number)
    return [(parse_store_key(record.signature), entries[record.number]) for record in ordered]


def _is_short(record: ModelRecord, blocks: Sequence[_BlockEntry]) -> bool:
    """Return whether a model has fewer blocks than were written, or one whose keys were cut."""
    # The types too: a damaged row may hold anything.
    return len(blocks) < record.blocks or any(
        not isinstance(block.keys, bytes) or len(block.keys) % KEY_BYTES or not isinstance(block.size, int)
        for block in blocks
    )


def _select_blocks(
    entries: Iterable[tuple[StoreKey, list[_BlockEntry]]], selection: StoreSelection
) -> list[tuple[StoreKey, list[_BlockEntry]]]:
    """Return the keys and blocks that a selection means, without keys of which it means no block."""
    chosen = [
        (key, [block for block in blocks if selection.includes_date(block.stored_at)])
        for key, blocks in entries
        if selection.includes_key(key)
    ]
    return [(key, blocks) for key, blocks in chosen if blocks]


def list_stored_models() -> list[StoredModel]:
    """Return what the store holds, model by model: the number of outputs, their size and dates.

    >>> from acceptability import judge
    >>> _ = judge("Cats sleep.", model="uniform(vocabulary=7)")
    >>> [stored.outputs for stored in list_stored_models() if stored.model == "uniform(vocabulary=7)"]
    [1]
    """
    with ScoreStore() as store:
        return store.list_models()


def forget_outputs(
    model: str | None = None,
    *,
    scoring: int | None = None,
    older_than: date | str | None = None,
    undated: bool = False,
    dry_run: bool = False,
) -> list[StoredModel]:
    """Delete outputs from the store, and return what was deleted, model by model; they are computed again when needed.

    Outputs are deleted that fulfil all of the conditions, of which at least one has to be given.

    Args:
        model: The model: its signature, with or without options and version, or the spec by which it is opened.
        scoring: The scoring version.
        older_than: A day, in UTC, such as "2026-01-31": what was stored before. Outputs without a date, stored before
            dates were kept, stay.
        undated: Delete outputs without a date, alone or besides those that are older.
        dry_run: Delete nothing, and return what would be deleted.
    """
    if model is None and scoring is None and older_than is None and not undated:
        raise SpecError("nothing says what to forget: give a model, a scoring version, a date, or undated")
    selection = StoreSelection(model, scoring, _read_day(older_than), undated)
    with ScoreStore() as store:
        keys = store.list_keys()
        if model is not None and not any(model in _list_model_names(key) for key in keys):
            selection = StoreSelection(_find_signature(model, keys), scoring, selection.older_than, undated)
        return store.forget(selection, dry_run=dry_run)


def _read_day(day: date | str | None) -> date | None:
    if not isinstance(day, str):
        return day
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise SpecError(f"{day!r} is no date; write YEAR-MONTH-DAY, such as 2026-01-31") from None


def _find_signature(model: str, keys: Iterable[StoreKey]) -> str:
    """Return the signature of a model that is given by its spec, if there are outputs of it."""
    problem = f"nothing is stored of the model {model}; `acceptability store` lists the models"
    try:
        _, location, _ = parse_model_spec(model)
        # Only what is on this machine: an id on the Hub would be downloaded to be forgotten.
        if location and not Path(location).expanduser().exists():
            raise StoreError(problem)
        signature = load_model(model).signature
    # The name of a model whose outputs are not stored, or that is no longer there to be opened by its spec.
    except AcceptabilityError as error:
        raise StoreError(problem) from error
    if not any(key.model == signature for key in keys):
        raise StoreError(problem)
    return signature
