from __future__ import annotations

import json
import sqlite3
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import StoreError
from acceptability.store.block import read, written
from acceptability.store.said import Store
from acceptability.types import LabelScores, Query, TokenScores

SAID = TokenScores("a b", ("a", "Ġb"), ((0, 1), (1, 3)), np.array([-1.25, -3.5], dtype=np.float32))


KEYS = Query("a b").key + Query("c d").key


@given(
    st.lists(
        st.lists(st.tuples(st.text(), st.integers(0, 9), st.floats(-99, 0, width=32)), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_answers_read_back_bit_for_bit(answers) -> None:
    made = []
    for rows in answers:
        tokens, starts, logprobs = zip(*rows, strict=True)
        spans = tuple((a, a + 1) for a in starts)
        made.append(TokenScores("x", tokens, spans, np.array(logprobs, dtype=np.float32)))
    found = read(written(made, b"keys", "m"), b"keys", dict.fromkeys(range(len(made)), "x"), "m")
    for place, said in enumerate(made):
        assert (found[place].tokens, found[place].offsets) == (said.tokens, said.offsets)
        assert found[place].logprobs.tobytes() == said.logprobs.tobytes()
    last = len(made) - 1
    assert read(written(made, b"keys", "m"), b"keys", {last: "x"}, "m")[last].tokens == made[-1].tokens


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_logits_read_back(bad: float, good: float) -> None:
    block = written([LabelScores("x", (bad, good)), LabelScores("y", (0.0, 1.0))], b"", "m")
    assert [each.logits for each in read(block, b"", {0: "x", 1: "y"}, "m").values()] == [(bad, good), (0.0, 1.0)]


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_always_found(place: int, change: int) -> None:
    block = written([SAID, SAID], KEYS, "m")
    both = bytearray(block + KEYS)
    both[place % len(both)] ^= change
    assert read(bytes(both[: len(block)]), bytes(both[len(block) :]), {0: "a b"}, "m") is None


@given(st.integers(0, 200))
def test_a_block_cut_short_is_found(end: int) -> None:
    block = written([SAID, SAID], KEYS, "m")
    assert read(block[: min(end, len(block) - 1)], KEYS, {0: "a b"}, "m") is None


def known(store: Store, model: str, queries: list[Query]) -> list[int]:
    return [place for place, _ in store.known(model, [query.key for query in queries], lambda place: "a b")]


def test_what_is_added_is_known_to_that_model_alone() -> None:
    with Store() as store:
        store.add("m1", [(Query("a b").key, SAID)])
        assert known(store, "m1", [Query("c"), Query("a b")]) == [1]
        assert not known(store, "m2", [Query("a b")])
        assert not known(store, "m1", [Query("a b", target=(0, 1))])
        assert store.counts() == {"m1": 1}


def test_many_queries_are_found_at_once() -> None:
    queries = [Query(f"s {number}") for number in range(1300)]
    with Store() as store:
        store.add("m", [(query.key, SAID) for query in queries])
        assert sorted(known(store, "m", queries)) == list(range(1300))


def test_a_store_of_the_first_format_is_read_and_goes_on(own_home: Path) -> None:
    tokens = json.dumps(["a", "b"]).encode()
    body = b"T" + struct.pack("<IIIII", 2, 0, 1, 2, 3) + np.array([-1.25, -3.5], "<f4").tobytes() + tokens
    answers = [(Query("a b").key, body), (Query("c").key, b"L" + struct.pack("<dd", 1.5, -2.0))]
    own_home.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.executescript(
            "CREATE TABLE model (number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE);"
            "CREATE TABLE said (model INTEGER NOT NULL, query BLOB NOT NULL, answer BLOB NOT NULL,"
            " PRIMARY KEY (model, query)) WITHOUT ROWID;"
            "INSERT INTO model VALUES (1, 'm'), (2, 'l'); PRAGMA user_version = 1;"
        )
        for number, (key, answer) in enumerate(answers, start=1):
            row = (number, key, struct.pack("<I", zlib.crc32(answer)) + answer)
            database.execute("INSERT INTO said VALUES (?, ?, ?)", row)
    database.close()
    with Store() as store:
        ((_, label),) = store.known("l", [Query("c").key], lambda _: "c")
        assert (label.text, label.logits) == ("c", (1.5, -2.0))
    with Store() as store:
        store.add("m", [(Query("c").key, SAID)])
        ((_, said),) = store.known("m", [Query("a b").key], lambda _: "a b")
        assert (said.tokens, said.offsets) == (("a", "b"), ((0, 1), (2, 3)))
        assert said.logprobs.tolist() == [-1.25, -3.5]
        assert known(store, "m", [Query("a b"), Query("c")]) == [0, 1]


def test_tokens_with_the_separator_in_them_read_back() -> None:
    odd = TokenScores("a b", ("a\0", "b"), ((0, 1), (2, 3)), np.array([-1.0, -2.0], np.float32))
    assert read(written([odd], b"", "m"), b"", {0: "a b"}, "m")[0].tokens == ("a\0", "b")


def test_a_batch_is_kept_whole_or_not_at_all() -> None:
    def broken():
        yield Query("a b").key, SAID
        raise RuntimeError("killed")

    with Store() as store:
        with pytest.raises(RuntimeError):
            store.add("m", broken())
        assert store.counts().get("m", 0) == 0


def test_anothers_block_is_never_read() -> None:
    block = written([SAID, SAID], KEYS, "m")
    assert read(block, KEYS, {0: "a b"}, "m") is not None
    assert read(block, KEYS, {0: "a b"}, "n") is None


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a poem about one" * 100, b"SQLite format 3\x00" + b"\xff" * 4000, b"x"]
)
def test_a_file_that_is_no_store_is_moved_aside(own_home: Path, content: bytes, caplog) -> None:
    (own_home / "scores.sqlite").write_bytes(content)
    with Store() as store:
        assert not known(store, "m", [Query("a b")])
        store.add("m", [(Query("a b").key, SAID)])
    (aside,) = own_home.glob("scores.sqlite.broken-*")
    assert aside.read_bytes() == content
    (said,) = caplog.messages
    assert f"is kept as {aside.name}" in said
    with Store() as store:
        assert known(store, "m", [Query("a b")]) == [0]


def test_a_damaged_block_is_moved_aside_and_the_rest_goes_on(own_home: Path, caplog) -> None:
    with Store() as store:
        for text in ("a", "b", "c"):
            store.add("m", [(Query(text).key, SAID)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.execute("UPDATE block SET answers = zeroblob(20) WHERE number = 2")
    database.close()
    with Store() as store:
        assert known(store, "m", [Query("a"), Query("b"), Query("c")]) == [0, 2]
        assert store.counts() == {"m": 2}
    assert "2 blocks of answers were whole" in caplog.text
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
def test_whatever_is_changed_is_seen(own_home: Path, change: str, kept: list[int]) -> None:
    """A block that is gone or another model's, a model that is gone or changed, a format that is not the file's."""
    with Store() as store:
        for text in ("a", "b"):
            store.add("m", [(Query(text).key, SAID)])
        store.add("n", [(Query("a").key, SAID)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.executescript(change)
    database.close()
    with Store() as store:
        assert known(store, "m", [Query("a"), Query("b")]) == kept
        assert known(store, "n", [Query("a"), Query("b")]) == [0]
    assert len(list(own_home.glob("scores.sqlite.broken-*"))) == 1


def test_damage_that_is_found_late_costs_no_answer(own_home: Path) -> None:
    """The last block is damaged: what was given before it is not given again, what is added is kept."""
    with Store() as store:
        for text in ("a", "b", "c"):
            store.add("m", [(Query(text).key, SAID)])
    with Store() as store:
        with sqlite3.connect(own_home / "scores.sqlite") as database:
            database.execute("UPDATE block SET answers = zeroblob(20) WHERE number = 3")
        database.close()
        assert sorted(known(store, "m", [Query("c"), Query("b"), Query("a")])) == [1, 2]
        store.add("m", [(Query("c").key, SAID)])
    with Store() as store:
        assert store.counts() == {"m": 3}


@pytest.mark.parametrize("moment", ["touch", "rename", "connect", "replace"])
def test_a_rescue_that_breaks_off_is_finished_by_the_next(own_home: Path, moment: str, monkeypatch) -> None:
    with Store() as store:
        for text in ("a", "b"):
            store.add("m", [(Query(text).key, SAID)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.execute("UPDATE block SET answers = zeroblob(20) WHERE number = 1")
    database.close()

    def break_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    changed = ("acceptability.store.rescue.sqlite3.connect",) if moment == "connect" else (Path, moment)
    with monkeypatch.context() as patch, Store() as store:
        patch.setattr(*changed, break_off)
        with pytest.raises(KeyboardInterrupt):
            known(store, "m", [Query("a"), Query("b")])
    with Store() as store:
        assert known(store, "m", [Query("a"), Query("b")]) == [1]
    assert len(list(own_home.glob("scores.sqlite.broken-*[0-9]"))) == 1
    assert not list(own_home.glob("scores.sqlite.recovering-*"))


def test_a_store_that_another_process_uses_is_not_moved(own_home: Path, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.store.in_use._SECONDS_TO_WAIT", 0.1)
    with Store() as store:
        store.add("m", [(Query("a").key, SAID)])
        with sqlite3.connect(own_home / "scores.sqlite") as database:
            database.execute("UPDATE block SET answers = zeroblob(20)")
        database.close()
        with Store() as other, pytest.raises(StoreError, match="another process uses it. Nothing was changed"):
            known(other, "m", [Query("a")])
    assert not list(own_home.glob("scores.sqlite.broken-*"))


def test_a_newer_format_is_refused_and_left_alone(own_home: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "newer.sqlite") as database:
        database.executescript(f"PRAGMA user_version = 99; PRAGMA application_id = {0x61630000 + 99}")
    database.close()
    before = (tmp_path / "newer.sqlite").read_bytes()
    with pytest.raises(StoreError, match="newer version of acceptability .* Upgrade, or name another folder"):
        Store(tmp_path / "newer.sqlite")
    assert (tmp_path / "newer.sqlite").read_bytes() == before


def test_another_programs_database_is_moved_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    before = (tmp_path / "other.sqlite").read_bytes()
    with Store(tmp_path / "other.sqlite") as store:
        assert store.counts() == {}
    (aside,) = tmp_path.glob("other.sqlite.broken-*")
    assert aside.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot use the store"):
        Store(tmp_path / "file" / "scores.sqlite")


WRITER = """
import sys
from pathlib import Path
import numpy as np
from acceptability.store.said import Store
from acceptability.types import Query, TokenScores
said = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1.25, -3.5], dtype=np.float32))
start = int(sys.argv[2])
with Store(Path(sys.argv[1])) as store:
    for number in range(start, start + 60):
        store.add("m", [(Query(f"s {number}").key, said), (Query("shared").key, said)])
"""


def test_processes_share_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shared.sqlite"
    workers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(60 * number)], stderr=subprocess.PIPE, text=True)
        for number in range(4)
    ]
    errors = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, errors
    with Store(path) as store:
        assert store.counts() == {"m": 241}
