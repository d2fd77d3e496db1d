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
from acceptability.store.said import Store, _read, _written
from acceptability.types import LabelScores, Query, TokenScores

SAID = TokenScores("a b", ("a", "Ġb"), ((0, 1), (1, 3)), np.array([-1.25, -3.5], dtype=np.float32))


@given(st.lists(st.tuples(st.text(), st.integers(0, 9), st.floats(-99, 0, width=32)), min_size=1, max_size=6))
def test_answers_read_back_bit_for_bit(rows) -> None:
    tokens, starts, logprobs = zip(*rows, strict=True)
    said = TokenScores("x", tokens, tuple((a, a + 1) for a in starts), np.array(logprobs, dtype=np.float32))
    again = _read(_written(said), "x")
    assert (again.tokens, again.offsets) == (said.tokens, said.offsets)
    assert again.logprobs.tobytes() == said.logprobs.tobytes()


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_logits_read_back(bad: float, good: float) -> None:
    assert _read(_written(LabelScores("x", (bad, good))), "x").logits == (bad, good)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_always_found(place: int, change: int) -> None:
    answer = bytearray(_written(SAID))
    answer[place % len(answer)] ^= change
    assert _read(bytes(answer), "a b") is None


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
    with Store() as store:
        store.add("m", [(Query("c").key, SAID)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        row = (Query("a b").key, struct.pack("<I", zlib.crc32(body)) + body)
        database.execute("INSERT INTO said VALUES (1, ?, ?)", row)
        database.execute("PRAGMA user_version = 1")
    database.close()
    with Store() as store:
        ((_, said),) = store.known("m", [Query("a b").key], lambda _: "a b")
        assert (said.tokens, said.offsets) == (("a", "b"), ((0, 1), (2, 3)))
        assert said.logprobs.tolist() == [-1.25, -3.5]
        assert known(store, "m", [Query("a b"), Query("c")]) == [0, 1]


def test_tokens_with_the_separator_in_them_read_back() -> None:
    odd = TokenScores("a b", ("a\0", "b"), ((0, 1), (2, 3)), np.array([-1.0, -2.0], np.float32))
    assert _read(_written(odd), "a b").tokens == ("a\0", "b")


def test_a_batch_is_kept_whole_or_not_at_all() -> None:
    def broken():
        yield Query("a b").key, SAID
        raise RuntimeError("killed")

    with Store() as store:
        with pytest.raises(RuntimeError):
            store.add("m", broken())
        assert store.counts().get("m", 0) == 0


@pytest.mark.parametrize(
    "content", [b"this is not a database, it is a poem about one" * 100, b"SQLite format 3\x00" + b"\xff" * 4000]
)
def test_a_damaged_file_is_an_error_that_says_what_to_do(own_home: Path, content: bytes) -> None:
    (own_home / "scores.sqlite").write_bytes(content)
    with pytest.raises(StoreError, match="Move it away or delete it|another version"), Store() as store:
        known(store, "m", [Query("a b")])


def test_a_damaged_row_is_an_error(own_home: Path) -> None:
    with Store() as store:
        store.add("m", [(Query("a b").key, SAID)])
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.execute("UPDATE said SET answer = zeroblob(20)")
    database.close()
    with Store() as store, pytest.raises(StoreError, match="does not match its checksum"):
        known(store, "m", [Query("a b")])


def test_another_format_and_another_program_are_refused(own_home: Path, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "newer.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreError, match="another version"):
        Store(tmp_path / "newer.sqlite")
    with sqlite3.connect(tmp_path / "other.sqlite") as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    with pytest.raises(StoreError, match="another program"):
        Store(tmp_path / "other.sqlite")


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
