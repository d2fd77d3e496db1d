"""Answers of every format that a store ever had, as blocks of this one.

The first had a row for each answer; the second had blocks that did not say whose they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from acceptability.store.block import is_whole, owned, owner, read_row, written
from acceptability.store.tables import create, put
from acceptability.store.trouble import Damaged

_ROWS_AT_ONCE = 10_000

Block = tuple[str, bytes, bytes]
"""The signature of a model, the keys of queries, and a block of its answers to them."""


def take_over(database: sqlite3.Connection, version: int) -> None:
    """Bring a store of an older format into this one. The caller keeps a transaction."""
    database.execute("ALTER TABLE model RENAME TO old_model")
    signatures = dict(database.execute("SELECT number, signature FROM old_model"))
    if version == 2:
        database.execute("DROP INDEX IF EXISTS block_of_model")
        database.execute("ALTER TABLE block RENAME TO old_block")
    create(database)
    old = _from_rows(database, signatures) if version == 1 else _from_blocks(database, signatures)
    for found in old:
        if found is None:
            raise Damaged("an answer does not match its checksum")
        put(database, *found)
    database.execute("DROP TABLE old_model")
    database.execute(f"DROP TABLE {'said' if version == 1 else 'old_block'}")


def _from_blocks(database: sqlite3.Connection, signatures: dict[int, str]) -> Iterator[Block | None]:
    for model, keys, block in database.execute("SELECT model, keys, answers FROM old_block"):
        yield whole_block(signatures.get(model), keys, block)


def _from_rows(database: sqlite3.Connection, signatures: dict[int, str]) -> Iterator[Block | None]:
    for model, signature in signatures.items():
        rows = database.execute("SELECT query, answer FROM said WHERE model = ?", [model])
        while some := rows.fetchmany(_ROWS_AT_ONCE):
            yield whole_rows(signature, some)


def whole_block(model: str | None, keys: object, block: object) -> Block | None:
    """Return a block, brought into this format if it is older, or None if it is not whole or nobody's."""
    if not isinstance(keys, bytes) or not isinstance(block, bytes) or not is_whole(block, keys):
        return None
    if own := owner(block):
        return own, keys, block
    return (model, keys, owned(block, keys, model)) if model is not None else None


def whole_rows(model: str, rows: list[tuple[bytes, bytes]]) -> Block | None:
    """Return answers of the first format as a block, or None if one of them is not whole."""
    answers = [read_row(answer) for _, answer in rows]
    if any(each is None for each in answers):
        return None
    keys = b"".join([key for key, _ in rows])
    return model, keys, written([each for each in answers if each], keys, model)
