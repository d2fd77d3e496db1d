"""The one file that keeps what models said: model × query → tokens and log-probabilities, or logits.

SQLite with a write-ahead log. The answers of a batch are one block and one transaction, so a
killed run loses at most the two batches in flight, and several processes may share the file.
Every block carries a checksum; one that does not match it is never a score: the file is then
moved aside, and what is whole in it goes on in a new one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from acceptability.home import home
from acceptability.store.block import read, written
from acceptability.store.formats import take_over
from acceptability.store.in_use import shared
from acceptability.store.rescue import identity, rescue, unfinished
from acceptability.store.tables import VERSION, create, models, put, transaction, version
from acceptability.store.trouble import Damaged, guarded
from acceptability.types import Said

_SECONDS_TO_WAIT = 60.0
_KEY = 16
_PAGE = 4096

Text = Callable[[int], str]
Held = tuple[int, bytes]
"""The number of a block, and the keys of the queries that it answers."""


class Store:
    """An open store. Use it in a ``with`` statement."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or home() / "scores.sqlite"
        try:
            self._open()
        except Damaged as error:
            self._rescue(error)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def known(self, model: str, keys: Sequence[bytes], text: Text) -> Iterator[tuple[int, Said]]:
        """Yield what the model has said already to any of the queries with these keys, with its place among them.

        Args:
            text: Gives the text of the query at a place.
        """
        is_found = np.zeros(len(keys), bool)
        try:
            yield from self._known(model, keys, text, is_found)
        except Damaged as error:
            self._rescue(error)
            yield from self._known(model, keys, text, is_found)

    def _known(
        self, model: str, keys: Sequence[bytes], text: Text, is_found: np.typing.NDArray[np.bool_]
    ) -> Iterator[tuple[int, Said]]:
        wanted = np.array(list(keys), dtype=f"S{_KEY}")
        order = np.argsort(wanted)
        in_order = wanted[order]
        for block, held in self._held(model):
            has = np.frombuffer(held, dtype=in_order.dtype)
            near = np.minimum(np.searchsorted(in_order, has), len(in_order) - 1)
            inside = np.flatnonzero(in_order[near] == has)
            places = order[near[inside]]
            # Two processes may have answered the same query; the first answer counts.
            new = ~is_found[places]
            if new.any():
                rows = zip(inside[new].tolist(), places[new].tolist(), strict=True)
                for place, said in self._answers(model, (block, held), list(rows), text):
                    is_found[place] = True
                    yield place, said

    def _held(self, model: str) -> list[Held]:
        """Return the blocks of a model; it is an error if there are fewer than were written."""
        with guarded(self.path), transaction(self._database, "DEFERRED"):
            found = models(self._database).get(model)
            if found is None:
                return []
            ask = "SELECT number, keys FROM block WHERE model = ?"
            blocks = self._database.execute(ask, [found.number]).fetchall()
        if len(blocks) < found.blocks or any(len(held) % _KEY for _, held in blocks):
            raise Damaged("a block is missing")
        return blocks

    def _answers(
        self, model: str, block: Held, rows: Sequence[tuple[int, int]], text: Text
    ) -> Iterator[tuple[int, Said]]:
        """Yield the answers of a block that stand at some of its rows, each with the place of its query."""
        number, keys = block
        with guarded(self.path):
            stored = self._database.execute("SELECT answers FROM block WHERE number = ?", [number]).fetchone()
        found = read(stored[0], keys, {row: text(place) for row, place in rows}, model) if stored else None
        if found is None:
            raise Damaged("a block does not match its checksum")
        for row, place in rows:
            yield place, found[row]

    def add(self, model: str, answers: Iterable[tuple[bytes, Said]]) -> None:
        """Keep what the model said to queries of some keys, all or nothing."""
        rows = list(answers)
        if not rows:
            return
        keys = b"".join([key for key, _ in rows])
        block = written([said for _, said in rows], keys, model)
        try:
            self._put(model, keys, block)
        except Damaged as error:
            self._rescue(error)
            self._put(model, keys, block)

    def _put(self, model: str, keys: bytes, block: bytes) -> None:
        with guarded(self.path), transaction(self._database):
            put(self._database, model, keys, block)

    def counts(self) -> dict[str, int]:
        """Return to how many different queries the answers of each model are kept."""
        with guarded(self.path):
            known = models(self._database)
        held = {signature: b"".join([keys for _, keys in self._held(signature)]) for signature in known}
        return {signature: len(np.unique(np.frombuffer(keys, f"S{_KEY}"))) for signature, keys in held.items()}

    def _open(self) -> None:
        with guarded(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = shared(self.path)
        self._identity = identity(self.path)
        try:
            if unfinished(self.path):
                raise Damaged("its rescue was broken off")
            if self._identity and 0 < self.path.stat().st_size < _PAGE:
                # SQLite would take it for an empty file, and write over it.
                raise Damaged("it is too short")
            with guarded(self.path):
                self._database = sqlite3.connect(self.path, timeout=_SECONDS_TO_WAIT, isolation_level=None)
                self._prepare()
        except BaseException:
            self._close()
            raise

    def _prepare(self) -> None:
        # Asked before anything is written: another program's file stays as it is.
        is_old = version(self._database, self.path) != VERSION
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        # The log is carried over into the file when it has grown to some 64 MB, not at every batch of a GPU.
        self._database.execute("PRAGMA wal_autocheckpoint = 16384")
        if is_old:
            with transaction(self._database):
                # Asked again, since another process may have been faster.
                before = version(self._database, self.path)
                if before == 0:
                    create(self._database)
                elif before < VERSION:
                    take_over(self._database, before)

    def _rescue(self, error: Damaged) -> None:
        """Mend the file that was found damaged, and open it again."""
        self._close()
        with guarded(self.path):
            rescue(self.path, self._identity, str(error))
        self._open()

    def _close(self) -> None:
        if database := self.__dict__.pop("_database", None):
            database.close()
        self._lock.close()
