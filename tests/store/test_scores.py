"""The store: blocks read back bit for bit, damage is noticed, and intact blocks survive it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import StoreError
from acceptability.store.database import decode_block, encode_block
from acceptability.store.scores import ScoreStore
from acceptability.types import LabelScores, Query, TokenScores

OUTPUT = TokenScores("a b", ("a", "Ġb"), ((0, 1), (1, 3)), np.array([-1.25, -3.5], dtype=np.float32))
KEYS = Query("a b").key + Query("c d").key


@given(
    st.lists(
        st.lists(st.tuples(st.text(), st.integers(0, 9), st.floats(-99, 0, width=32)), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_token_scores_read_back_bit_for_bit(answers) -> None:
    outputs = []
    for rows in answers:
        tokens, starts, logprobs = zip(*rows, strict=True)
        spans = tuple((start, start + 1) for start in starts)
        outputs.append(TokenScores("x", tokens, spans, np.array(logprobs, dtype=np.float32)))
    block = encode_block(outputs, b"keys", "m")
    decoded = decode_block(block, b"keys", dict.fromkeys(range(len(outputs)), "x"), "m")
    for row, output in enumerate(outputs):
        assert (decoded[row].tokens, decoded[row].offsets) == (output.tokens, output.offsets)
        assert decoded[row].logprobs.tobytes() == output.logprobs.tobytes()
    last = len(outputs) - 1
    assert decode_block(block, b"keys", {last: "x"}, "m")[last].tokens == outputs[-1].tokens


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_logits_read_back(bad: float, good: float) -> None:
    block = encode_block([LabelScores("x", (bad, good)), LabelScores("y", (0.0, 1.0))], b"", "m")
    assert [output.logits for output in decode_block(block, b"", {0: "x", 1: "y"}, "m").values()] == [
        (bad, good),
        (0.0, 1.0),
    ]


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_always_noticed(index: int, change: int) -> None:
    block = encode_block([OUTPUT, OUTPUT], KEYS, "m")
    both = bytearray(block + KEYS)
    both[index % len(both)] ^= change
    assert decode_block(bytes(both[: len(block)]), bytes(both[len(block) :]), {0: "a b"}, "m") is None


@given(st.integers(0, 200))
def test_a_truncated_block_is_noticed(end: int) -> None:
    block = encode_block([OUTPUT, OUTPUT], KEYS, "m")
    assert decode_block(block[: min(end, len(block) - 1)], KEYS, {0: "a b"}, "m") is None


def known(store: ScoreStore, model: str, queries: list[Query]) -> list[int]:
    """Return the indices of the queries with a stored output."""
    return [index for index, _ in store.iter_known(model, [query.key for query in queries], lambda _: "a b")]


def test_outputs_are_stored_under_their_model_only() -> None:
    with ScoreStore() as store:
        store.add("m1", [(Query("a b").key, OUTPUT)])
        assert known(store, "m1", [Query("c"), Query("a b")]) == [1]
        assert not known(store, "m2", [Query("a b")])
        assert not known(store, "m1", [Query("a b", target=(0, 1))])
        assert store.count_answers() == {"m1": 1}


def test_many_queries_are_looked_up_at_once() -> None:
    queries = [Query(f"s {number}") for number in range(1300)]
    with ScoreStore() as store:
        store.add("m", [(query.key, OUTPUT) for query in queries])
        assert sorted(known(store, "m", queries)) == list(range(1300))


@pytest.mark.parametrize(
    ("outputs", "keys", "block"),
    [
        (
            [OUTPUT, OUTPUT],
            KEYS,
            "0b2221867a02000000010000006d0200000002000000000000000100000001000000030000000000000001000000010000000300"
            "00000000a0bf000060c00000a0bf000060c06100c4a062006100c4a062",
        ),
        (
            [LabelScores("x", (1.5, -2.0))],
            Query("c").key,
            "472f49316c01000000010000006d000000000000f83f00000000000000c0",
        ),
    ],
)
def test_blocks_of_format_3_stay_readable(outputs, keys: bytes, block: str) -> None:
    """The bytes are those that release 0.1.0 wrote: stores in people's homes must not be scored again."""
    assert encode_block(outputs, keys, "m").hex() == block
    decoded = decode_block(bytes.fromhex(block), keys, dict.fromkeys(range(len(outputs)), "a b"), "m")
    assert [type(output) for output in decoded.values()] == [type(output) for output in outputs]


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_format_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    path = tmp_path / "older.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(f"CREATE TABLE model (number INTEGER); PRAGMA user_version = {version};")
    database.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=f"old format {version}, .* reads only 3 and 4. Nothing was changed: rename the file"
    ):
        ScoreStore(path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.broken-*"))


def test_tokens_with_the_separator_in_them_read_back() -> None:
    odd = TokenScores("a b", ("a\0", "b"), ((0, 1), (2, 3)), np.array([-1.0, -2.0], np.float32))
    assert decode_block(encode_block([odd], b"", "m"), b"", {0: "a b"}, "m")[0].tokens == ("a\0", "b")


def test_a_batch_is_stored_whole_or_not_at_all() -> None:
    def broken():
        yield Query("a b").key, OUTPUT
        raise RuntimeError("killed")

    with ScoreStore() as store:
        with pytest.raises(RuntimeError):
            store.add("m", broken())
        assert store.count_answers().get("m", 0) == 0


def test_a_block_of_another_model_is_never_read() -> None:
    block = encode_block([OUTPUT, OUTPUT], KEYS, "m")
    assert decode_block(block, KEYS, {0: "a b"}, "m") is not None
    assert decode_block(block, KEYS, {0: "a b"}, "n") is None


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a poem about one" * 100, b"SQLite format 3\x00" + b"\xff" * 4000, b"x"]
)
def test_a_file_that_is_no_store_is_moved_aside(own_home: Path, content: bytes, caplog) -> None:
    (own_home / "scores.sqlite").write_bytes(content)
    with ScoreStore() as store:
        assert not known(store, "m", [Query("a b")])
        store.add("m", [(Query("a b").key, OUTPUT)])
    (aside,) = own_home.glob("scores.sqlite.broken-*")
    assert aside.read_bytes() == content
    (message,) = caplog.messages
    assert f"is kept as {aside.name}" in message
    with ScoreStore() as store:
        assert known(store, "m", [Query("a b")]) == [0]


def test_a_damaged_block_is_moved_aside_and_the_rest_recovered(own_home: Path, caplog) -> None:
    with ScoreStore() as store:
        for text in ("a", "b", "c"):
            store.add("m", [(Query(text).key, OUTPUT)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.execute("UPDATE block SET answers = zeroblob(20) WHERE number = 2")
    database.close()
    with ScoreStore() as store:
        assert known(store, "m", [Query("a"), Query("b"), Query("c")]) == [0, 2]
        assert store.count_answers() == {"m": 2}
    assert "its 2 intact blocks of scores are in a new store" in caplog.text
    (aside,) = own_home.glob("scores.sqlite.broken-*")
    with sqlite3.connect(aside) as database:
        assert database.execute("SELECT COUNT(*) FROM block").fetchone() == (3,)
    database.close()


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ("DELETE FROM block WHERE number = 1", [1]),
        ("UPDATE block SET model = 2 WHERE number = 1", [0, 1]),
        ("UPDATE model SET signature = 'k' WHERE number = 1", [0, 1]),
        ("UPDATE model SET blocks = 1 WHERE number = 1", [0, 1]),
        ("DELETE FROM model WHERE number = 1", [0, 1]),
        ("DELETE FROM model", [0, 1]),
        ("DROP TABLE model", [0, 1]),
        ("DROP INDEX block_of_model; UPDATE block SET keys = X'00' WHERE number = 2", [0]),
        ("PRAGMA user_version = 2", [0, 1]),
        ("PRAGMA user_version = 7", [0, 1]),
        ("PRAGMA user_version = 0", [0, 1]),
    ],
)
def test_every_change_of_the_file_is_noticed(own_home: Path, change: str, kept: list[int]) -> None:
    """A missing block or one of another model, a missing or changed model, a wrong version of the format."""
    with ScoreStore() as store:
        for text in ("a", "b"):
            store.add("m", [(Query(text).key, OUTPUT)])
        store.add("n", [(Query("a").key, OUTPUT)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.executescript(change)
    database.close()
    with ScoreStore() as store:
        assert known(store, "m", [Query("a"), Query("b")]) == kept
        assert known(store, "n", [Query("a"), Query("b")]) == [0]
    assert len(list(own_home.glob("scores.sqlite.broken-*"))) == 1


def test_damage_that_is_noticed_late_loses_no_output(own_home: Path) -> None:
    """The last block is damaged: outputs that came before it are not repeated, and later additions are stored."""
    with ScoreStore() as store:
        for text in ("a", "b", "c"):
            store.add("m", [(Query(text).key, OUTPUT)])
    with ScoreStore() as store:
        with sqlite3.connect(own_home / "scores.sqlite") as database:
            database.execute("UPDATE block SET answers = zeroblob(20) WHERE number = 3")
        database.close()
        assert sorted(known(store, "m", [Query("c"), Query("b"), Query("a")])) == [1, 2]
        store.add("m", [(Query("c").key, OUTPUT)])
    with ScoreStore() as store:
        assert store.count_answers() == {"m": 3}


@pytest.mark.parametrize("moment", ["touch", "rename", "copy", "replace"])
def test_an_interrupted_recovery_is_finished_by_the_next(own_home: Path, moment: str, monkeypatch) -> None:
    with ScoreStore() as store:
        for text in ("a", "b"):
            store.add("m", [(Query(text).key, OUTPUT)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.execute("UPDATE block SET answers = zeroblob(20) WHERE number = 1")
    database.close()

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    changed = ("acceptability.store.recovery._copy_blocks",) if moment == "copy" else (Path, moment)
    with monkeypatch.context() as patch, ScoreStore() as store:
        patch.setattr(*changed, interrupt)
        with pytest.raises(KeyboardInterrupt):
            known(store, "m", [Query("a"), Query("b")])
    with ScoreStore() as store:
        assert known(store, "m", [Query("a"), Query("b")]) == [1]
    assert len(list(own_home.glob("scores.sqlite.broken-*[0-9]"))) == 1
    assert not list(own_home.glob("scores.sqlite.recovering-*"))


def test_a_store_that_another_process_uses_is_not_moved(own_home: Path, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.store.database._LOCK_TIMEOUT_S", 0.1)
    with ScoreStore() as store:
        store.add("m", [(Query("a").key, OUTPUT)])
        with sqlite3.connect(own_home / "scores.sqlite") as database:
            database.execute("UPDATE block SET answers = zeroblob(20)")
        database.close()
        with ScoreStore() as other, pytest.raises(StoreError, match="another process uses it. Nothing was changed"):
            known(other, "m", [Query("a")])
    assert not list(own_home.glob("scores.sqlite.broken-*"))


def test_a_newer_format_is_refused_and_left_alone(own_home: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "newer.sqlite") as database:
        database.executescript(f"PRAGMA user_version = 99; PRAGMA application_id = {0x61630000 + 99}")
    database.close()
    before = (tmp_path / "newer.sqlite").read_bytes()
    with pytest.raises(StoreError, match="newer version of acceptability .* Upgrade, or name another folder"):
        ScoreStore(tmp_path / "newer.sqlite")
    assert (tmp_path / "newer.sqlite").read_bytes() == before


def test_another_programs_database_is_moved_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    before = (tmp_path / "other.sqlite").read_bytes()
    with ScoreStore(tmp_path / "other.sqlite") as store:
        assert store.count_answers() == {}
    (aside,) = tmp_path.glob("other.sqlite.broken-*")
    assert aside.read_bytes() == before


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot use the store"):
        ScoreStore(tmp_path / "file" / "scores.sqlite")


WRITER = """
import sys
from pathlib import Path
import numpy as np
from acceptability.store.scores import ScoreStore
from acceptability.types import Query, TokenScores
output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1.25, -3.5], dtype=np.float32))
start = int(sys.argv[2])
with ScoreStore(Path(sys.argv[1])) as store:
    for number in range(start, start + 60):
        store.add("m", [(Query(f"s {number}").key, output), (Query("shared").key, output)])
"""


def test_processes_share_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shared.sqlite"
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(60 * number)], stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, errors
    with ScoreStore(path) as store:
        assert store.count_answers() == {"m": 241}


def before_statements(action: Callable[[int, str], None]) -> partial[sqlite3.Connection]:
    """Return a ``sqlite3.connect`` whose connections call an action before each statement, with its number."""
    number = 0

    class Watched(sqlite3.Connection):
        def execute(self, statement: str, *values) -> sqlite3.Cursor:
            nonlocal number
            number += 1
            action(number, statement)
            return super().execute(statement, *values)

    return partial(sqlite3.connect, factory=Watched)


@pytest.mark.parametrize("moment", range(1, 10))
@pytest.mark.parametrize("start", ["nothing", "an empty file"])
def test_another_process_creates_the_store_at_any_moment(
    tmp_path: Path, start: str, moment: int, monkeypatch, caplog
) -> None:
    """A healthy store was moved aside when its tables appeared between two statements of the check of its version."""
    path, writers = tmp_path / "scores.sqlite", []
    if start == "an empty file":
        path.touch()

    def write(number: int, _: str) -> None:
        if number == moment:
            writers.append(subprocess.Popen([sys.executable, "-c", WRITER, str(path), "0"]))
            # It may have to wait for this process, and then writes later.
            with suppress(subprocess.TimeoutExpired):
                writers[0].wait(0.5)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", before_statements(write))
        store = ScoreStore(path)
    with store:
        store.add("n", [(Query("a b").key, OUTPUT)])
        assert [writer.wait() for writer in writers] == [0]
        assert store.count_answers() == {"m": 61, "n": 1}
    assert not list(tmp_path.glob("*.broken-*"))
    assert not caplog.messages


def test_the_store_of_a_faster_process_is_used(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "scores.sqlite"
    link = os.link

    def link_late(*names: Path) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, "link", link)
            with ScoreStore(path) as faster:
                faster.add("m", [(Query("a b").key, OUTPUT)])
        link(*names)

    monkeypatch.setattr(os, "link", link_late)
    with ScoreStore(path) as store:
        assert known(store, "m", [Query("a b")]) == [0]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["scores.sqlite", "scores.sqlite.lock"]


@pytest.mark.parametrize("obstacle", ["no links", "an empty file"])
def test_a_store_that_cannot_be_linked_is_created_in_place(tmp_path: Path, obstacle: str, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if obstacle == "no links":
        monkeypatch.setattr(os, "link", refuse)
    else:
        (tmp_path / "scores.sqlite").touch()
    for _ in range(2):
        with ScoreStore(tmp_path / "scores.sqlite") as store:
            store.add("m", [(Query("a b").key, OUTPUT)])
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        assert known(store, "m", [Query("a b")]) == [0]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["scores.sqlite", "scores.sqlite.lock"]


@pytest.mark.parametrize("statement", ["PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE", "BEGIN DEFERRED", "COMMIT"])
@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_PROTOCOL])
def test_a_lock_that_sqlite_does_not_wait_for_is_tried_again(
    own_home: Path, statement: str, code: int, monkeypatch
) -> None:
    """Opening a store failed with "database is locked" while another process turned its write-ahead log on."""
    with ScoreStore() as store:
        store.add("m", [(Query("a b").key, OUTPUT)])
    left = [statement] * 3

    def fail(_: int, executed: str) -> None:
        if executed in left:
            left.remove(executed)
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = code
            raise error

    monkeypatch.setattr(sqlite3, "connect", before_statements(fail))
    with ScoreStore() as store:
        store.add("m", [(Query("c d").key, OUTPUT)])
        assert known(store, "m", [Query("a b"), Query("c d")]) == [0, 1]
    assert not left
    assert not list(own_home.glob("*.broken-*"))


def test_a_store_that_stays_locked_is_an_error_that_says_what_to_do(own_home: Path, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.store.database._LOCKED_TIMEOUT_S", 0.2)
    monkeypatch.setattr("acceptability.store.database._SQLITE_TIMEOUT_S", 0.05)
    with ScoreStore() as store:
        other = sqlite3.connect(own_home / "scores.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process .* Give the command again when") as error:
            store.add("m", [(Query("a b").key, OUTPUT)])
        assert "\n" not in str(error.value)
        other.close()
        store.add("m", [(Query("a b").key, OUTPUT)])
    assert not list(own_home.glob("*.broken-*"))


@pytest.mark.parametrize("moment", ["open", "read", "add"])
def test_a_healthy_store_is_not_moved_aside(own_home: Path, moment: str, monkeypatch, caplog) -> None:
    """What a reader takes for damage is looked for again under the lock that excludes all others."""
    with ScoreStore() as store:
        store.add("m", [(Query("a b").key, OUTPUT)])
    before = (own_home / "scores.sqlite").stat().st_ino
    statement = {"open": "PRAGMA user_version", "read": "BEGIN DEFERRED", "add": "BEGIN IMMEDIATE"}[moment]
    left = [statement]

    def fail(_: int, executed: str) -> None:
        if executed in left:
            left.remove(executed)
            raise sqlite3.DatabaseError("database disk image is malformed")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", before_statements(fail))
        with ScoreStore() as store:
            store.add("m", [(Query("c d").key, OUTPUT)])
            assert known(store, "m", [Query("a b"), Query("c d")]) == [0, 1]
    assert not left
    assert (own_home / "scores.sqlite").stat().st_ino == before
    assert not list(own_home.glob("*.broken-*"))
    assert not caplog.messages


def test_damage_that_comes_again_is_an_error(own_home: Path, monkeypatch) -> None:
    """A disk that returns other bytes at each reading: neither moved aside for ever, nor tried for ever."""
    with ScoreStore() as store:
        store.add("m", [(Query("a b").key, OUTPUT)])
        monkeypatch.setattr("acceptability.store.scores.decode_rows", lambda *_: None)
        with pytest.raises(StoreError, match="does not match its checksum.* again, after it was checked and repaired"):
            known(store, "m", [Query("a b")])
    assert not list(own_home.glob("*.broken-*"))


def test_a_model_that_is_added_while_models_are_counted_is_no_damage(own_home: Path, monkeypatch) -> None:
    def add(_: int, statement: str) -> None:
        if statement.startswith("SELECT MAX(model)") and not added:
            added.append(statement)
            with ScoreStore() as other:
                other.add("n", [(Query("a b").key, OUTPUT)])

    added = ["not while this is opened"]
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", before_statements(add))
        store = ScoreStore()
    with store:
        store.add("m", [(Query("a b").key, OUTPUT)])
        added.clear()
        assert store.count_answers() == {"m": 1}
        assert store.count_answers() == {"m": 1, "n": 1}
