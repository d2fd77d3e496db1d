"""The store of model outputs: one SQLite file from (model signature, query key) to token scores or logits.

``ScoreStore`` is the open store; the format of the file is in ``database.py``, and these two files are all that
opening, reading and writing takes. The outputs of a batch are one block and one transaction, so that a killed run loses
at most the two batches in flight, and several processes may share the file. A block that does not match its checksum is
never read as a score: the file is then checked under a lock, moved aside if it is damaged indeed, and its intact blocks
are copied into a new one (``recovery.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from acceptability.paths import home_folder
from acceptability.specs import to_current_kind, to_stored_kind
from acceptability.store.database import (
    KEY_BYTES,
    DamagedStore,
    ModelRecord,
    access_database,
    create_store,
    decode_block,
    encode_block,
    insert_block,
    lock_shared,
    open_database,
    read_models,
    report_lasting_damage,
    transaction,
    translate_store_errors,
)
from acceptability.store.recovery import INTERRUPTED, find_unfinished_recovery, recover_store
from acceptability.types import ModelOutput

TextLookup = Callable[[int], str]
"""A function from the index of a query to its text."""

BlockKeys = tuple[int, bytes]
"""The number of a block, and the keys of its queries, concatenated."""


class ScoreStore:
    """An open store. Use it in a ``with`` statement.

    Args:
        path: The file; by default ``scores.sqlite`` in the home folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home_folder() / "scores.sqlite"
        try:
            self._open()
        except DamagedStore:
            self._recover()

    def __enter__(self) -> ScoreStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

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

    def iter_known(self, model: str, keys: Sequence[bytes], text: TextLookup) -> Iterator[tuple[int, ModelOutput]]:
        """Yield the stored outputs of a model for queries, each with the index of its query.

        Args:
            model: The signature of the model.
            keys: The keys of the queries.
            text: Returns the text of the query at an index, which the store does not hold.
        """
        model = to_stored_kind(model)
        is_found = np.zeros(len(keys), bool)
        try:
            yield from self._iter_known(model, keys, text, is_found)
        except DamagedStore:
            self._recover()
            # From the beginning of the file. What was yielded already is marked, and not yielded twice.
            with report_lasting_damage(self.path):
                yield from self._iter_known(model, keys, text, is_found)

    def _iter_known(
        self, model: str, keys: Sequence[bytes], text: TextLookup, is_found: np.typing.NDArray[np.bool_]
    ) -> Iterator[tuple[int, ModelOutput]]:
        """Yield the stored outputs, and mark their queries as found."""
        # Keys are compared in sorted arrays and not by SQL: a request has up to millions of them, and the keys of a
        # block are one value in the database.
        requested_keys = np.array(list(keys), dtype=f"S{KEY_BYTES}")
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
                rows = zip(matching_rows[is_new].tolist(), query_indices[is_new].tolist(), strict=True)
                for query_index, output in self._read_outputs(model, (block, block_keys), list(rows), text):
                    is_found[query_index] = True
                    yield query_index, output

    def _list_blocks(self, model: str) -> list[BlockKeys]:
        """Return the blocks of a model; raise DamagedStore if there are fewer than were written."""

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
        self, model: str, block: BlockKeys, rows: Sequence[tuple[int, int]], text: TextLookup
    ) -> Iterator[tuple[int, ModelOutput]]:
        """Yield outputs of one block, each with the index of its query.

        Args:
            rows: The rows of the block that are wanted, each with the index of its query.
        """
        number, keys = block
        query = "SELECT answers FROM block WHERE number = ?"
        stored = access_database(self.path, lambda: self._database.execute(query, [number]).fetchone())
        outputs = (
            decode_block(stored[0], keys, {row: text(query_index) for row, query_index in rows}, model)
            if stored
            else None
        )
        if outputs is None:
            raise DamagedStore("a block does not match its checksum")
        for row, query_index in rows:
            yield query_index, outputs[row]

    def add(self, model: str, answers: Iterable[tuple[bytes, ModelOutput]]) -> None:
        """Store the outputs of a model, all or none of them.

        Args:
            model: The signature of the model.
            answers: The outputs, each with the key of its query.
        """
        # Consumed before the transaction begins: an error of the caller's iterator then leaves nothing half written,
        # and the write lock is not held while a model computes.
        model = to_stored_kind(model)
        rows = list(answers)
        if not rows:
            return
        keys = b"".join([key for key, _ in rows])
        block = encode_block([output for _, output in rows], keys, model)
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
                insert_block(self._database, model, keys, block)

        access_database(self.path, insert)

    def count_answers(self) -> dict[str, int]:
        """Return the number of distinct queries with a stored output, by model signature."""

        def read() -> dict[str, ModelRecord]:
            # In a transaction: a model that is added between two queries would seem to be missing.
            with transaction(self._database, "DEFERRED"):
                return read_models(self._database)

        records = access_database(self.path, read)
        keys_by_model = {
            signature: b"".join([keys for _, keys in self._list_blocks(signature)]) for signature in records
        }
        return {
            to_current_kind(signature): len(np.unique(np.frombuffer(keys, f"S{KEY_BYTES}")))
            for signature, keys in keys_by_model.items()
        }

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
