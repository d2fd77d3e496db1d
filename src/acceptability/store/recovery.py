"""Recovery of a damaged store: the file is moved aside, never deleted, and its intact blocks are copied to a new one.

Many processes may use a store, and what one of them takes for damage may be the work of another. So ``recover_store``
gets the lock that excludes all others, and reads the whole file again; if it is intact, nothing happens. Otherwise
three steps follow, each of which may be interrupted by a kill:

1. An empty ``scores.sqlite.recovering-DATE`` is created; its existence marks a recovery in progress.
2. The damaged file is renamed to ``scores.sqlite.broken-DATE``.
3. Its intact blocks are written into the new file in one transaction, which then takes the place of the store.

Whoever opens the store after an interruption finds the file of step 1, and takes the remaining steps again.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from acceptability.store.database import (
    KEY_BYTES,
    PAGE_BYTES,
    DamagedStore,
    access_database,
    create_tables,
    insert_block,
    is_intact,
    lock_exclusive,
    open_database,
    read_models,
    read_owner,
    transaction,
)

_log = logging.getLogger(__name__)
INTERRUPTED = "its recovery was interrupted"
"""The damage of a store whose recovery was killed."""

_RECOVERING, _BROKEN = ".recovering-", ".broken-"
# Row numbers are tried one by one where a table cannot be scanned. After so many misses in a row, it has ended.
_MAX_MISSING = 1000

StoredBlock = tuple[str, bytes, bytes, int | None]
"""The store key of a model, the keys of its queries, the block of their outputs, and when it was stored."""


def find_unfinished_recovery(path: Path) -> Path | None:
    """Return the new store of an interrupted recovery, or None."""
    drafts = path.parent.glob(f"{path.name}{_RECOVERING}*")
    return min((draft for draft in drafts if not draft.name.endswith("-journal")), default=None)


def recover_store(path: Path) -> None:
    """Move a store aside and copy its intact blocks, if it is damaged when nobody else uses it."""
    with lock_exclusive(path, "seems damaged", "the store is checked and repaired"):
        draft = find_unfinished_recovery(path)
        damage = INTERRUPTED if draft else find_damage(path)
        # Several processes may notice the damage. The first to get the lock repairs it, and the others find a new file.
        if damage is None:
            return
        draft = draft or _create_draft(path)
        broken = path.with_name(draft.name.replace(_RECOVERING, _BROKEN))
        if not broken.exists():
            # The main file last: an interrupted renaming is taken up again only as long as it has not been moved, and
            # a database without its log would lose the latest blocks.
            for ending in ("-shm", "-wal", ""):
                with suppress(FileNotFoundError):
                    Path(f"{path}{ending}").rename(f"{broken}{ending}")
        recovered = _recover_blocks(broken, draft)
        draft.replace(path)
    _log.warning(
        "the store %s was damaged (%s). It is kept as %s; its %s intact blocks of scores are in a new store, "
        "and what is missing is scored again",
        *(path, damage, broken.name, f"{recovered:,}"),
    )


def find_damage(path: Path) -> str | None:
    """Return in a few words how a store is damaged, None if it is intact. The caller holds the exclusive lock."""
    try:
        access_database(path, lambda: _check_all(path))
    except DamagedStore as damage:
        return str(damage)
    return None


def _check_all(path: Path) -> None:
    """Read all that is in a store; raise DamagedStore if anything is wrong."""
    # In a transaction that could write: a flipped bit may have declared the file read-only.
    with closing(open_database(path)) as database, transaction(database):
        # SQLite's own check, of one error at most, covers what a look at the rows does not: the index and unused pages.
        (verdict,) = database.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise DamagedStore(str(verdict).strip().splitlines()[-1])
        missing = {(record.number, record.signature): record.blocks for record in read_models(database).values()}
        for number, keys, block in database.execute("SELECT model, keys, answers FROM block"):
            if not (isinstance(keys, bytes) and isinstance(block, bytes) and is_intact(block, keys)):
                raise DamagedStore("a block does not match its checksum")
            if len(keys) % KEY_BYTES or (number, read_owner(block)) not in missing:
                raise DamagedStore("a block does not belong to its model")
            missing[number, str(read_owner(block))] -= 1
        if any(blocks > 0 for blocks in missing.values()):
            raise DamagedStore("a block is missing")


def _create_draft(path: Path) -> Path:
    """Create the empty file that marks the beginning of a recovery, and return its path."""
    date, count = f"{datetime.now(UTC):%Y%m%d-%H%M%S}", 1
    # Counted up, since two recoveries may fall into one second.
    while any(Path(f"{path}{kind}{date}-{count}").exists() for kind in (_RECOVERING, _BROKEN)):
        count += 1
    draft = Path(f"{path}{_RECOVERING}{date}-{count}")
    draft.touch(exist_ok=False)
    return draft


def _recover_blocks(broken: Path, draft: Path) -> int:
    """Write the intact blocks of a damaged file into a new store, and return their number."""
    with closing(sqlite3.connect(draft, isolation_level=None)) as new, transaction(new, "EXCLUSIVE"):
        # A recovery that was killed between this transaction and the renaming has left its tables.
        for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            new.execute(f"DROP TABLE {name}")
        create_tables(new)
        if copied := _copy_blocks(broken, new):
            return copied
        # Nothing could be read. Perhaps only the first page is damaged, on which all others depend. Or the file is of
        # version 3, and was not upgraded because its version is damaged: then the new schema adds the column of times.
        with TemporaryDirectory(dir=broken.parent, prefix=".recovering-") as folder:
            return _copy_blocks(_copy_with_new_header(broken, Path(folder)), new)


def _copy_blocks(broken: Path, new: sqlite3.Connection) -> int:
    """Copy the intact blocks of a damaged file, and return their number."""
    copied = 0
    for block in _iter_blocks(broken):
        insert_block(new, *block)
        copied += 1
    return copied


def _copy_with_new_header(broken: Path, folder: Path) -> Path:
    """Return a copy of a damaged file with the first page of a new store.

    The first page holds the file header and the schema, with the root page of each table. Every store creates the same
    tables first, so that they have the same root pages.
    """
    copy = folder / "copy"
    shutil.copyfile(broken, copy)
    if Path(f"{broken}-wal").exists():
        shutil.copyfile(f"{broken}-wal", f"{copy}-wal")
    with closing(sqlite3.connect(":memory:")) as fresh:
        create_tables(fresh)
        page = bytearray(fresh.serialize()[:PAGE_BYTES])
        # The header fields that differ: the versions for a write-ahead log, and the size of the file in pages.
        page[18:20] = b"\2\2"
    page[28:32] = (copy.stat().st_size // PAGE_BYTES).to_bytes(4, "big")
    with copy.open("r+b") as out:
        out.write(page)
    return copy


def _iter_blocks(broken: Path) -> Iterator[StoredBlock]:
    """Yield the intact blocks of a damaged file."""
    with suppress(sqlite3.Error), closing(_open_damaged(broken)) as old:
        for _, keys, block, stored_at in _iter_readable_rows(old, "block", "number, keys, answers, stored_at"):
            # Types are checked too: SQLite returns whatever the damaged row claims to hold. The table of models is not
            # needed, since an intact block names its model.
            if isinstance(keys, bytes) and isinstance(block, bytes) and is_intact(block, keys):
                owner = read_owner(block)
                if owner is not None:
                    yield owner, keys, block, stored_at if isinstance(stored_at, int) else None


def _open_damaged(broken: Path) -> sqlite3.Connection:
    """Return a read-only connection to a damaged file."""
    # As immutable if it has no log, since SQLite would otherwise create one beside it, even to read.
    is_alone = "" if Path(f"{broken}-wal").exists() else "&immutable=1"
    old = sqlite3.connect(f"file:{quote(str(broken.absolute()))}?mode=ro{is_alone}", uri=True, isolation_level=None)
    # Damaged text may not be UTF-8, and must not end the scan.
    old.text_factory = bytes
    # Lets SQLite open a file whose schema it cannot parse completely.
    old.execute("PRAGMA writable_schema = ON")
    return old


def _iter_readable_rows(old: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows of a table.

    A damaged page ends a scan. So the table is scanned forwards, then backwards, and what lies between the two points
    at which the scans ended is read row by row. NOT INDEXED, since an index may be damaged where the table is not.
    """
    seen: set[int] = set()
    ends = [0, 0]
    for end, order in enumerate(("ASC", "DESC")):
        with suppress(sqlite3.Error):
            for row in old.execute(f"SELECT {columns} FROM {table} NOT INDEXED ORDER BY number {order}"):  # nosec B608
                if row[0] in seen:
                    return
                seen.add(row[0])
                ends[end] = row[0]
                yield row
    if seen:
        yield from _iter_rows_between(old, f"SELECT {columns} FROM {table} NOT INDEXED WHERE number = ?", *ends)  # nosec B608


def _iter_rows_between(old: sqlite3.Connection, query: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Yield the readable rows between two numbers, looked up one by one.

    Args:
        query: Selects a row by its number.
        first: The last row that was read from the beginning.
        last: The first row that was read from the end; 0 for none, and then the search ends after many misses.
    """
    missed, number = 0, first + 1
    while missed < _MAX_MISSING and (number < last or not last):
        missed += 1
        with suppress(sqlite3.Error):
            for row in old.execute(query, [number]):
                missed = 0
                yield row
        number += 1
