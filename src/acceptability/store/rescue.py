"""A damaged store is moved aside, never deleted, and what is whole in it goes on in a new one.

An empty ``scores.sqlite.recovering-DATE`` is made first, then the damaged file becomes
``scores.sqlite.broken-DATE``, then its whole blocks are written into the former, in one transaction,
which at last takes the place of the store. Whoever finds it there after a kill does the same once more.
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

from acceptability.store.formats import Block, whole_block, whole_rows
from acceptability.store.in_use import alone
from acceptability.store.tables import create, put, transaction

_log = logging.getLogger(__name__)
_RECOVERING, _BROKEN = ".recovering-", ".broken-"
_MOST_MISSED = 1000
_PAGE = 4096

Identity = tuple[int, int] | None


def identity(path: Path) -> Identity:
    """Return what tells a file from another that takes its name later; None where there is none."""
    try:
        about = path.stat()
    except FileNotFoundError:
        return None
    return about.st_dev, about.st_ino


def unfinished(path: Path) -> Path | None:
    """Return the new store of a rescue that was broken off, if there was one."""
    drafts = path.parent.glob(f"{path.name}{_RECOVERING}*")
    return min((each for each in drafts if not each.name.endswith("-journal")), default=None)


def rescue(path: Path, seen: Identity, why: str) -> None:
    """Move a damaged store aside and keep what is whole in it, unless another process has done so meanwhile.

    Args:
        seen: The identity of the file that was found damaged.
        why: In what way it is damaged, for the message.
    """
    with alone(path):
        draft = unfinished(path)
        if draft is None and identity(path) != seen:
            return
        draft = draft or _begun(path)
        broken = path.with_name(draft.name.replace(_RECOVERING, _BROKEN))
        if not broken.exists():
            for ending in ("-shm", "-wal", ""):
                with suppress(FileNotFoundError):
                    Path(f"{path}{ending}").rename(f"{broken}{ending}")
        whole = _recovered(broken, draft)
        draft.replace(path)
    _log.warning(
        "the store %s was damaged (%s). It is kept as %s; %s blocks of answers were whole and are in a new store, "
        "and what is missing is scored again",
        *(path, why, broken.name, f"{whole:,}"),
    )


def _begun(path: Path) -> Path:
    """Return the new, empty file of a rescue that begins."""
    date, count = f"{datetime.now(UTC):%Y%m%d-%H%M%S}", 1
    while any(Path(f"{path}{kind}{date}-{count}").exists() for kind in (_RECOVERING, _BROKEN)):
        count += 1
    draft = Path(f"{path}{_RECOVERING}{date}-{count}")
    draft.touch(exist_ok=False)
    return draft


def _recovered(broken: Path, draft: Path) -> int:
    """Write what is whole into a new store, and return how many blocks that are."""
    with closing(sqlite3.connect(draft, isolation_level=None)) as new, transaction(new, "EXCLUSIVE"):
        # A rescue that was killed before its renaming had written all, and writes it again.
        for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            new.execute(f"DROP TABLE {name}")
        create(new)
        if whole := _carried(broken, new):
            return whole
        with TemporaryDirectory(dir=broken.parent, prefix=".recovering-") as folder:
            return _carried(_with_new_beginning(broken, Path(folder)), new)


def _carried(broken: Path, new: sqlite3.Connection) -> int:
    whole = 0
    for found in filter(None, _blocks(broken)):
        put(new, *found)
        whole += 1
    return whole


def _with_new_beginning(broken: Path, folder: Path) -> Path:
    """Return a copy whose first page, which says what stands where, is that of every store that was never moved."""
    copy = folder / "copy"
    shutil.copyfile(broken, copy)
    if Path(f"{broken}-wal").exists():
        shutil.copyfile(f"{broken}-wal", f"{copy}-wal")
    with closing(sqlite3.connect(":memory:")) as fresh:
        create(fresh)
        page = bytearray(fresh.serialize()[:_PAGE])
    page[18:20] = b"\2\2"  # with a write-ahead log
    page[28:32] = (copy.stat().st_size // _PAGE).to_bytes(4, "big")
    with copy.open("r+b") as out:
        out.write(page)
    return copy


def _blocks(broken: Path) -> Iterator[Block | None]:
    """Yield every block of a damaged file, None for one that is not whole."""
    with suppress(sqlite3.Error), closing(_opened(broken)) as old:
        signatures = {
            model: name.decode("utf-8", "replace")
            for model, name in _rows(old, "model", "number, signature")
            if isinstance(name, bytes)
        }
        for _, model, keys, block in _rows(old, "block", "number, model, keys, answers"):
            yield whole_block(signatures.get(model), keys, block)
        with suppress(sqlite3.Error):
            for model, key, answer in old.execute("SELECT model, query, answer FROM said"):
                yield whole_rows(signatures[model], [(key, answer)]) if model in signatures else None


def _opened(broken: Path) -> sqlite3.Connection:
    """Open a file for reading alone, also where it is shorter than it says."""
    # A file without a log is then read without making one.
    is_alone = "" if Path(f"{broken}-wal").exists() else "&immutable=1"
    old = sqlite3.connect(f"file:{quote(str(broken.absolute()))}?mode=ro{is_alone}", uri=True, isolation_level=None)
    old.text_factory = bytes
    old.execute("PRAGMA writable_schema = ON")
    return old


def _rows(old: sqlite3.Connection, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table that can be read: from its beginning, from its end, and one by one between them."""
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
        yield from _between(old, f"SELECT {columns} FROM {table} NOT INDEXED WHERE number = ?", *ends)  # nosec B608


def _between(old: sqlite3.Connection, ask: str, first: int, last: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows after the first number that can be read one by one, up to the last, or to many that are not there.

    Args:
        last: 0 if nothing could be read from the end.
    """
    missed, number = 0, first + 1
    while missed < _MOST_MISSED and (number < last or not last):
        missed += 1
        with suppress(sqlite3.Error):
            for row in old.execute(ask, [number]):
                missed = 0
                yield row
        number += 1
