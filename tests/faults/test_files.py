"""A store that is damaged, truncated, of another program, older or newer; a clock that is set back."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acceptability.store.database import VERSION
from faults.harness import Answers, Done, Driver, Row, Tally, differing, many_pairs, stored

Rounds = Callable[[int, int], int]


class Calm:
    """An undisturbed run, and a second of the same whose store is damaged first."""

    def __init__(self, driver: Driver, folder: Path, arpa: Path) -> None:
        suite = many_pairs(folder / "many.tsv", 250)
        self.driver, self.folder, self.count = driver, folder, 0
        self.line = ["evaluate", str(suite), "-m", f"ngram:{arpa}", "-m", "uniform", "--json", "--resamples", "40"]
        self.done = driver.run(folder / "calm", self.line)
        assert self.done.code == 0, self.done.err
        self.store = (folder / "calm" / "scores.sqlite").read_bytes()
        self.held: Answers = stored(folder / "calm")

    def again(self, store: bytes, row: Row) -> tuple[Done, Path]:
        """Run with this file as the store: the output must be right, and what is moved aside must be the file."""
        home = self.folder / f"home-{self.count}"
        self.count += 1
        home.mkdir()
        (home / "scores.sqlite").write_bytes(store)
        done = self.driver.run(home, self.line)
        assert done.code == 0, done.err
        held = stored(home)
        row.injected += 1
        row.wrong += (json.loads(done.out) != json.loads(self.done.out)) + differing(held, self.held)
        row.lost += len(self.held.keys() - held.keys())
        aside = [path.read_bytes() for path in home.glob("*.broken-*[0-9]")]
        assert all(moved == store for moved in aside), "the file was changed before it was moved aside"
        assert bool(aside) == ("is kept as scores.sqlite.broken-" in done.err)
        row.note("moved aside", len(aside))
        row.note("answers scored again", len(done.noted) // 16)
        return done, home


@pytest.fixture
def calm(driver: Driver, tmp_path: Path, arpa: Path) -> Calm:
    return Calm(driver, tmp_path, arpa)


def test_flipped_bits(calm: Calm, rounds: Rounds, tally: Tally) -> None:
    rng, row = random.Random(11), tally.row("a bit of the store flipped")
    for number in range(rounds(4, 100)):
        damaged = bytearray(calm.store)
        # Every third on the first pages, which say what stands where.
        offset = rng.randrange(len(damaged) if number % 3 else 3 * 4096)
        damaged[offset] ^= 1 << rng.randrange(8)
        _, home = calm.again(bytes(damaged), row)
        shutil.rmtree(home)
    assert (row.lost, row.wrong) == (0, 0)


def test_a_store_cut_short(calm: Calm, rounds: Rounds, tally: Tally) -> None:
    rng, row = random.Random(12), tally.row("a store cut short")
    for _ in range(rounds(2, 30)):
        calm.again(calm.store[: rng.randrange(len(calm.store))], row)
    assert (row.lost, row.wrong) == (0, 0)


def test_a_stretch_of_zeros(calm: Calm, rounds: Rounds, tally: Tally) -> None:
    rng, row = random.Random(13), tally.row("a page of the store lost to zeros")
    for _ in range(rounds(2, 30)):
        offset = 4096 * rng.randrange(len(calm.store) // 4096)
        calm.again(calm.store[:offset] + bytes(4096) + calm.store[offset + 4096 :], row)
    assert (row.lost, row.wrong) == (0, 0)


def foreign(folder: Path) -> Iterator[bytes]:
    yield b"good,bad\nCats sleep.,Cats sleeps.\n"
    yield b"\0"
    yield b"SQLite format 3\0" + b"\xff" * 9000
    yield random.Random(14).randbytes(20_000)
    with closing(sqlite3.connect(folder / "other.sqlite")) as other:
        other.executescript("CREATE TABLE model (name TEXT); INSERT INTO model VALUES ('gpt')")
    yield (folder / "other.sqlite").read_bytes()


def test_a_foreign_file(calm: Calm, tmp_path: Path, tally: Tally) -> None:
    row = tally.row("another file in the store's place")
    for content in foreign(tmp_path):
        calm.again(content, row)
    assert (row.lost, row.wrong) == (0, 0)
    assert row.notes["moved aside"] % row.injected == 0


def test_an_older_store_is_refused_and_left_alone(calm: Calm, tmp_path: Path, tally: Tally) -> None:
    row, home = tally.row("a store of an older format: refused, not touched"), tmp_path / "older"
    home.mkdir()
    (home / "scores.sqlite").write_bytes(calm.store)
    with closing(sqlite3.connect(home / "scores.sqlite")) as database:
        database.executescript("PRAGMA journal_mode = DELETE; PRAGMA user_version = 2; PRAGMA application_id = 0")
    before = (home / "scores.sqlite").read_bytes()
    done = calm.driver.run(home, calm.line)
    row.injected += 1
    row.lost += (home / "scores.sqlite").read_bytes() != before
    assert (done.code, row.lost) == (1, 0)
    assert done.err.count("\n") == 1
    assert "has the old format 2" in done.err
    assert "rename the file" in done.err


def test_a_newer_store_is_refused_and_left_alone(calm: Calm, tmp_path: Path, tally: Tally) -> None:
    row, home = tally.row("a store of a newer format: refused, not touched"), tmp_path / "newer"
    home.mkdir()
    (home / "scores.sqlite").write_bytes(calm.store)
    with closing(sqlite3.connect(home / "scores.sqlite")) as database:
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        database.executescript(
            f"PRAGMA journal_mode = DELETE; PRAGMA user_version = {VERSION + 1}; PRAGMA application_id = {mark + 1}"
        )
    before = (home / "scores.sqlite").read_bytes()
    done = calm.driver.run(home, calm.line)
    row.injected += 1
    row.lost += (home / "scores.sqlite").read_bytes() != before
    assert (done.code, row.lost) == (1, 0)
    assert done.err.count("\n") == 1
    assert "written by a newer version of acceptability" in done.err
    assert "Upgrade" in done.err


def test_a_clock_that_goes_back(calm: Calm, tmp_path: Path, rounds: Rounds, tally: Tally) -> None:
    """Runs that seem to be years older than those before them; some of their stores are damaged as well."""
    row, home = tally.row("a clock that jumps back"), tmp_path / "clock"
    count = rounds(3, 20)
    for number in range(count):
        if number % 3 == 2:
            (home / "scores.sqlite").write_bytes(b"rubbish" * 1000)
        done = calm.driver.run(home, calm.line, clock=number + 1)
        assert done.code == 0, done.err
        row.injected += 1
        row.wrong += json.loads(done.out) != json.loads(calm.done.out)
        row.lost += len(calm.held.keys() - stored(home).keys())
    runs = list((home / "runs").glob("[!.]*/run.json"))
    row.lost += count - len(runs)
    assert (row.lost, row.wrong) == (0, 0)
