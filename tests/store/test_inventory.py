"""What is stored can be listed and forgotten; a file of version 3 is upgraded and loses nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import program
from acceptability import judge
from acceptability.cli import app
from acceptability.errors import SpecError, StoreError
from acceptability.store.database import KEY_BYTES, ModelRecord, encode_block
from acceptability.store.scores import ScoreStore, forget_outputs, list_stored_models
from acceptability.types import Query, TokenScores

OUTPUT = TokenScores("a b", ("a", "Ġb"), ((0, 1), (1, 3)), np.array([-1.25, -3.5], dtype=np.float32))
TODAY = datetime.now(UTC).date

# What version 3 wrote, word by word.
SCHEMA_3 = """
CREATE TABLE model (
    number INTEGER PRIMARY KEY, signature TEXT NOT NULL, blocks INTEGER NOT NULL, seal INTEGER NOT NULL
);
CREATE TABLE block (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL REFERENCES model, keys BLOB NOT NULL, answers BLOB NOT NULL
);
CREATE INDEX block_of_model ON block (model);
PRAGMA application_id = 1633878019;
PRAGMA user_version = 3;
PRAGMA journal_mode = WAL;
"""


def make_version_3(path: Path, texts: dict[str, list[str]]) -> Path:
    """Write a store as version 3 did, with a block for each text of each model."""
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(SCHEMA_3)
    for number, (model, blocks) in enumerate(texts.items(), start=1):
        for text in blocks:
            key = Query(text).key
            row = (number, key, encode_block([OUTPUT], key, model))
            database.execute("INSERT INTO block (model, keys, answers) VALUES (?, ?, ?)", row)
        record = ModelRecord(number, model, len(blocks))
        database.execute("INSERT INTO model VALUES (?, ?, ?, ?)", (number, model, len(blocks), record.checksum))
    database.close()
    return path


def find_known(model: str, *texts: str) -> list[str]:
    with ScoreStore() as store:
        known = store.iter_known(model, [Query(text).key for text in texts], lambda _: "a b")
        return sorted(texts[index] for index, _ in known)


def add(model: str, *texts: str, days_ago: int | None = 0) -> None:
    """Store an output for each text, as if it had been done some days ago; None for an unknown date."""
    with ScoreStore() as store:
        for text in texts:
            store.add(model, [(Query(text).key, OUTPUT)])
        path = store.path
    if days_ago != 0:
        shift = "NULL" if days_ago is None else f"stored_at - {days_ago} * 86400"
        edit(
            path, f"UPDATE block SET stored_at = {shift} WHERE number > (SELECT MAX(number) FROM block) - {len(texts)}"
        )


def edit(path: Path, script: str) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(script)
    database.close()


def read(path: Path, query: str) -> list[tuple]:
    database = sqlite3.connect(path)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


# --- version 3 ---


def test_a_store_of_version_3_is_read_as_it_is(own_home: Path) -> None:
    path = make_version_3(own_home / "scores.sqlite", {"m": ["a", "b"], "n": ["c"]})
    before = read(path, "SELECT number, model, keys, answers FROM block")
    assert find_known("m", "a", "b", "c") == ["a", "b"]
    assert find_known("n", "c") == ["c"]
    assert read(path, "SELECT number, model, keys, answers FROM block") == before
    assert read(path, "PRAGMA user_version") == [(4,)]
    assert read(path, "PRAGMA application_id") == [(0x61630000 + 4,)]
    assert [(stored.model, stored.outputs, stored.oldest, stored.newest) for stored in list_stored_models()] == [
        ("m", 2, None, None),
        ("n", 1, None, None),
    ]
    add("m", "d")
    assert (
        list_stored_models()[0].row() | {"outputs": 3, "oldest": None, "newest": str(TODAY())}
        == list_stored_models()[0].row()
    )
    assert not list(own_home.glob("*.broken-*"))


def test_a_file_of_version_3_scores_nothing_again(own_home: Path) -> None:
    judge(["Cats sleep.", "Cats sleeps."], model="uniform")
    ((number, keys, answers),) = read(own_home / "scores.sqlite", "SELECT model, keys, answers FROM block")
    models = read(own_home / "scores.sqlite", "SELECT * FROM model")
    (own_home / "scores.sqlite").unlink()
    make_version_3(own_home / "scores.sqlite", {})
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        database.execute("INSERT INTO block (model, keys, answers) VALUES (?, ?, ?)", (number, keys, answers))
        database.execute("INSERT INTO model VALUES (?, ?, ?, ?)", models[0])
    database.close()
    done = []
    judge(
        ["Cats sleep.", "Cats sleeps."],
        model="uniform",
        progress=lambda _, finished, total: done.append((finished, total)),
    )
    assert done == [(2, 2)]


UPGRADER = """
import sys
from pathlib import Path
import numpy as np
from acceptability.store.scores import ScoreStore
from acceptability.types import Query, TokenScores
output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1.25, -3.5], dtype=np.float32))
print("ready", flush=True)
sys.stdin.readline()
with ScoreStore(Path(sys.argv[1])) as store:
    for number in range(10):
        store.add("m", [(Query(f"s {sys.argv[2]} {number}").key, output)])
"""


def test_many_processes_upgrade_one_file(own_home: Path) -> None:
    for _ in range(3):
        path = make_version_3(own_home / "scores.sqlite", {"m": [f"old {number}" for number in range(20)]})
        command = [sys.executable, "-c", UPGRADER, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        workers = [subprocess.Popen([*command, str(number)], **pipes) for number in range(6)]
        assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 6
        # At the same moment, since starting takes longer than upgrading.
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
        assert [worker.communicate()[1] for worker in workers] == [""] * 6
        (stored,) = list_stored_models()
        assert stored.outputs == 20 + 60
        assert not list(own_home.glob("*.broken-*"))
        path.unlink()


def test_another_process_upgrades_at_the_last_moment(own_home: Path, monkeypatch) -> None:
    """Between the check of the version and the write lock."""
    path, connect, done = make_version_3(own_home / "scores.sqlite", {"m": ["a"]}), sqlite3.connect, []

    class Late(sqlite3.Connection):
        def execute(self, statement: str, *values) -> sqlite3.Cursor:
            if statement == "BEGIN IMMEDIATE" and not done:
                done.append(statement)
                monkeypatch.setattr(sqlite3, "connect", connect)
                assert find_known("m", "a") == ["a"]
                assert read(path, "PRAGMA user_version") == [(4,)]
            return super().execute(statement, *values)

    def recover(_: Path) -> None:
        raise AssertionError("a healthy store is taken for a damaged one")

    monkeypatch.setattr("acceptability.store.scores.recover_store", recover)
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Late, **options))
    assert find_known("m", "a") == ["a"]
    assert done
    assert not list(own_home.glob("*.broken-*"))


def test_a_store_of_version_3_without_a_readable_version_is_recovered(own_home: Path) -> None:
    """It cannot be upgraded first, and has no column of dates."""
    path = make_version_3(own_home / "scores.sqlite", {"m": ["a", "b"]})
    edit(path, "PRAGMA user_version = 7")
    assert find_known("m", "a", "b") == ["a", "b"]
    assert len(list(own_home.glob("scores.sqlite.broken-*"))) == 1


@pytest.mark.parametrize("moment", ["ALTER TABLE", "PRAGMA application_id =", "PRAGMA user_version =", "COMMIT"])
def test_an_interrupted_upgrade_leaves_version_3(own_home: Path, moment: str, monkeypatch) -> None:
    path = make_version_3(own_home / "scores.sqlite", {"m": ["a"]})

    class Interrupted(sqlite3.Connection):
        is_upgrading = False

        def execute(self, statement: str, *values) -> sqlite3.Cursor:
            self.is_upgrading |= statement.startswith("ALTER TABLE")
            if self.is_upgrading and statement.startswith(moment):
                raise KeyboardInterrupt
            return super().execute(statement, *values)

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Interrupted, **options))
        with pytest.raises(KeyboardInterrupt):
            ScoreStore()
    assert read(path, "PRAGMA user_version") == [(3,)]
    assert find_known("m", "a") == ["a"]


def test_a_process_of_the_version_before_can_go_on(own_home: Path) -> None:
    path = make_version_3(own_home / "scores.sqlite", {"m": ["a"]})
    old = sqlite3.connect(path, isolation_level=None)
    assert find_known("m", "a") == ["a"]
    key = Query("b").key
    old.execute("BEGIN IMMEDIATE")
    old.execute("INSERT INTO block (model, keys, answers) VALUES (1, ?, ?)", (key, encode_block([OUTPUT], key, "m")))
    old.execute("INSERT OR REPLACE INTO model VALUES (1, 'm', 2, ?)", [ModelRecord(1, "m", 2).checksum])
    old.execute("COMMIT")
    old.close()
    assert find_known("m", "a", "b") == ["a", "b"]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("is_header_damaged", [False, True])
def test_intact_blocks_of_either_version_are_recovered_with_their_dates(
    own_home: Path, version: int, is_header_damaged: bool, caplog
) -> None:
    if version == 3:
        path = make_version_3(own_home / "scores.sqlite", {"m": ["a", "b", "c"]})
    else:
        add("m", "a", "b", "c", days_ago=3)
        path = own_home / "scores.sqlite"
    edit(path, "UPDATE block SET answers = zeroblob(20) WHERE number = 2")
    if is_header_damaged:
        edit(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        content = bytearray(path.read_bytes())
        content[100:2000] = b"\xff" * 1900
        path.write_bytes(content)
    assert find_known("m", "a", "b", "c") == ["a", "c"]
    assert "its 2 intact blocks" in caplog.text
    (stored,) = list_stored_models()
    assert stored.newest == (None if version == 3 else date.fromordinal(TODAY().toordinal() - 3))


# --- listing ---


def test_models_are_listed_with_counts_sizes_and_dates(own_home: Path) -> None:
    add("m", "a", "b", days_ago=40)
    add("m", "b", "c")
    add("n", "a")
    add("old", "a", days_ago=None)
    with ScoreStore() as store:
        store.add("causal:x(dtype='float16')", [(Query("a").key, OUTPUT)], device="cuda")
    listed = {stored.model: stored for stored in list_stored_models()}
    assert list(listed) == ["m", "n", "old", "causal:x(dtype='float16')"]
    # The text "b" is stored twice.
    assert listed["m"].outputs == 3
    assert (listed["m"].oldest, listed["m"].newest) == (date.fromordinal(TODAY().toordinal() - 40), TODAY())
    assert (listed["old"].oldest, listed["old"].newest) == (None, None)
    assert listed["causal:x(dtype='float16')"].device == "cuda"
    assert listed["m"].size == 4 * (KEY_BYTES + len(encode_block([OUTPUT], Query("a").key, "m")))
    assert json.loads(json.dumps(listed["m"].row()))["newest"] == TODAY().isoformat()


@pytest.mark.parametrize("stored_at", ["'x'", "1e300", "-99999999999999999", "99999999999999999"])
def test_a_damaged_date_is_unknown_and_damages_nothing_else(own_home: Path, stored_at: str) -> None:
    add("m", "a")
    edit(own_home / "scores.sqlite", f"UPDATE block SET stored_at = {stored_at}")
    (stored,) = list_stored_models()
    assert (stored.oldest, stored.newest) == (None, None)
    assert find_known("m", "a") == ["a"]


# --- forgetting ---


def test_a_model_is_forgotten_and_the_others_are_not(own_home: Path) -> None:
    for model in ("causal:a@1(bos=None)", "causal:a@2(bos=None)", "causal:b@1(bos=None)", "causal:c@1()"):
        add(model, "x", "y")
    forgotten = forget_outputs("causal:a@2")
    assert [(stored.model, stored.outputs) for stored in forgotten] == [("causal:a@2(bos=None)", 2)]
    assert [stored.model for stored in list_stored_models()] == [
        "causal:a@1(bos=None)",
        "causal:b@1(bos=None)",
        "causal:c@1()",
    ]
    # Numbered without gaps, and every block is found under its model.
    assert read(own_home / "scores.sqlite", "SELECT number FROM model ORDER BY number") == [(1,), (2,), (3,)]
    for model in ("causal:a@1(bos=None)", "causal:b@1(bos=None)", "causal:c@1()"):
        assert find_known(model, "x", "y") == ["x", "y"]
    assert find_known("causal:a@2(bos=None)", "x") == []
    add("causal:a@2(bos=None)", "z")
    assert find_known("causal:a@2(bos=None)", "x", "z") == ["z"]
    assert not list(own_home.glob("*.broken-*"))


@pytest.mark.parametrize("name", ["causal:a@1(bos=None)", "causal:a@1", "causal:a"])
def test_a_model_is_named_with_or_without_options_and_version(own_home: Path, name: str) -> None:
    add("causal:a@1(bos=None)", "x")
    add("causal:ab@1(bos=None)", "x")
    assert [stored.model for stored in forget_outputs(name)] == ["causal:a@1(bos=None)"]


def test_a_model_is_named_by_its_spec(own_home: Path) -> None:
    judge(["Cats sleep."], model="trigram")
    judge(["Cats sleep."], model="uniform")
    assert [stored.outputs for stored in forget_outputs("trigram")] == [1]
    for name in ("trigram", "uniform(vocabulary=7)", "causal:nowhere", "(", "no-such-model"):
        with pytest.raises(StoreError, match="nothing is stored of the model .*`acceptability store` lists the models"):
            forget_outputs(name)
    assert [stored.model for stored in list_stored_models()] == ["uniform(vocabulary=50000)"]


def test_what_is_older_than_a_day_is_forgotten(own_home: Path) -> None:
    """Outputs without a date stay, unless they are asked for: nobody knows whether they are older."""
    today = TODAY()
    add("m", "old", days_ago=10)
    add("m", "new")
    add("m", "undated", days_ago=None)
    add("n", "old", days_ago=10)
    assert forget_outputs(older_than=date.fromordinal(today.toordinal() - 10)) == []
    forgotten = forget_outputs(older_than=date.fromordinal(today.toordinal() - 9).isoformat())
    assert [(stored.model, stored.outputs) for stored in forgotten] == [("m", 1), ("n", 1)]
    assert find_known("m", "old", "new", "undated") == ["new", "undated"]
    assert [(stored.model, stored.outputs) for stored in forget_outputs(undated=True)] == [("m", 1)]
    assert find_known("m", "old", "new", "undated") == ["new"]


def test_conditions_hold_together(own_home: Path) -> None:
    for model in ("m", "n"):
        add(model, "old", days_ago=10)
        add(model, "new")
        add(model, "undated", days_ago=None)
    assert [stored.model for stored in forget_outputs("n", older_than=TODAY(), undated=True)] == ["n"]
    assert find_known("n", "old", "new", "undated") == ["new"]
    assert find_known("m", "old", "new", "undated") == ["new", "old", "undated"]
    assert forget_outputs("m", scoring=7) == []
    assert [stored.outputs for stored in forget_outputs("m", scoring=1)] == [3]


def test_a_scoring_version_is_forgotten(own_home: Path, monkeypatch) -> None:
    add("m", "a")
    monkeypatch.setattr("acceptability.store.scores.SCORING_VERSION", 2)
    add("m", "a", "b")
    assert [(stored.model, stored.scoring, stored.outputs) for stored in forget_outputs(scoring=1)] == [("m", 1, 1)]
    assert find_known("m", "a", "b") == ["a", "b"]


@pytest.mark.parametrize("options", [{}, {"model": None, "undated": False}])
def test_everything_is_not_forgotten_by_accident(own_home: Path, options) -> None:
    add("m", "a")
    with pytest.raises(SpecError, match="nothing says what to forget"):
        forget_outputs(**options)
    with pytest.raises(SpecError, match="'yesterday' is no date; write YEAR-MONTH-DAY"):
        forget_outputs(older_than="yesterday")
    assert find_known("m", "a") == ["a"]


def test_a_dry_run_changes_nothing(own_home: Path) -> None:
    add("m", "a")
    before = (own_home / "scores.sqlite").read_bytes()
    assert [stored.outputs for stored in forget_outputs("m", dry_run=True)] == [1]
    assert (own_home / "scores.sqlite").read_bytes() == before


def test_space_is_given_back(own_home: Path) -> None:
    with ScoreStore() as store:
        for model in ("large", "small"):
            count = 20_000 if model == "large" else 1
            store.add(model, [(Query(f"s {number}").key, OUTPUT) for number in range(count)])
    before = (own_home / "scores.sqlite").stat().st_size
    forget_outputs("large")
    assert (own_home / "scores.sqlite").stat().st_size < before / 10


def test_the_first_page_is_where_recovery_expects_it_after_the_file_was_shortened(own_home: Path, caplog) -> None:
    for model in ("m", "n"):
        add(model, "a", "b")
    forget_outputs("m")
    path = own_home / "scores.sqlite"
    content = bytearray(path.read_bytes())
    content[100:2000] = b"\xff" * 1900
    path.write_bytes(content)
    assert find_known("n", "a", "b") == ["a", "b"]
    assert "its 2 intact blocks" in caplog.text


def test_a_lost_block_is_still_noticed_after_forgetting(own_home: Path, caplog) -> None:
    """Counted anew, the blocks of a model would hide that one of them was lost before."""
    add("m", "a", "b", "c")
    edit(own_home / "scores.sqlite", "DELETE FROM block WHERE number = 2")
    forget_outputs("m", older_than="2000-01-01")
    assert "a block is missing" in caplog.text
    assert find_known("m", "a", "b", "c") == ["a", "c"]


def test_a_block_that_is_lost_after_forgetting_is_noticed(own_home: Path, caplog) -> None:
    add("m", "a", "b", "c")
    add("n", "a")
    forget_outputs("n")
    assert [stored.outputs for stored in forget_outputs("m", older_than="2000-01-01")] == []
    assert not caplog.messages
    edit(own_home / "scores.sqlite", "DELETE FROM block WHERE number = 2")
    assert find_known("m", "a", "b", "c") == ["a", "c"]
    assert "a block is missing" in caplog.text


def test_a_store_in_use_is_not_shortened(own_home: Path, monkeypatch) -> None:
    """A reader lists blocks, and takes one that vanishes before it reads it for damage."""
    monkeypatch.setattr("acceptability.store.database._LOCK_TIMEOUT_S", 0.1)
    add("m", "a")
    with ScoreStore(), pytest.raises(StoreError, match="another process uses it. Nothing was changed: .* forgotten"):
        forget_outputs("m")
    assert find_known("m", "a") == ["a"]
    forget_outputs("m")
    assert find_known("m", "a") == []


@pytest.mark.parametrize("statement", ["DELETE FROM block", "DELETE FROM model", "UPDATE block", "INSERT", "COMMIT"])
def test_interrupted_forgetting_forgets_nothing(own_home: Path, statement: str, monkeypatch) -> None:
    for model in ("m", "n"):
        add(model, "a", "b")

    class Interrupted(sqlite3.Connection):
        is_deleting = False

        def execute(self, executed: str, *values) -> sqlite3.Cursor:
            self.is_deleting |= executed.startswith("DELETE")
            if executed.startswith(statement) and (self.is_deleting or statement != "COMMIT"):
                raise KeyboardInterrupt
            return super().execute(executed, *values)

        def executemany(self, executed: str, *values) -> sqlite3.Cursor:
            if executed.startswith(statement):
                raise KeyboardInterrupt
            return super().executemany(executed, *values)

    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Interrupted, **options))
        with pytest.raises(KeyboardInterrupt):
            forget_outputs("m")
    assert find_known("m", "a", "b") == find_known("n", "a", "b") == ["a", "b"]
    assert not list(own_home.glob("*.broken-*"))


# --- the command ---


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["store", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_the_command_lists_and_forgets(own_home: Path) -> None:
    assert "nothing is stored yet" in run()
    add("causal:a@1(bos=None)", "x", days_ago=None)
    add("causal:b@1(bos=None)", "x", "y")
    assert "unknown" in run()
    assert [row["outputs"] for row in json.loads(run("--json"))] == [1, 2]
    assert "would forget 2 outputs of 1 model, 0.0 MB; nothing was changed" in run(
        "forget", "-m", "causal:b", "--dry-run"
    )
    assert [row["model"] for row in json.loads(run("forget", "--undated", "--json"))] == ["causal:a@1(bos=None)"]
    output = run("forget", "-m", "causal:b@1")
    assert "causal:b@1(bos=None)" in output
    assert "forgot 2 outputs of 1 model, 0.0 MB" in output
    assert "forgot 0 outputs of 0 models" in run("forget", "--older-than", "2026-01-31")
    assert json.loads(run("--json")) == []


def test_errors_of_the_command_are_one_line(own_home: Path, tmp_path: Path) -> None:
    for problem, arguments in {
        "nothing says what to forget": ["forget"],
        "is no date": ["forget", "--older-than", "tomorrow"],
        "write --json after the command": ["--json", "forget", "--undated"],
        "nothing is stored of the model causal:nowhere": ["forget", "-m", "causal:nowhere"],
    }.items():
        done = program.typed(["store", *arguments], tmp_path, {**os.environ, "ACCEPTABILITY_HOME": str(own_home)})
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert problem in done.stderr
        assert done.stderr.count("\n") == 1


def test_numbers_and_dates_are_whole_in_80_columns(own_home: Path, monkeypatch, capsys) -> None:
    from acceptability.cli.store import list_models

    add("prompted:causal:someone/a-model-with-a-long-name@0123456789ab(bos='<|endoftext|>', eos=False)(chat=True)", "x")
    with ScoreStore() as store:
        name = "causal:someone/model@0123456789ab(dtype='bfloat16')"
        store.add(name, [(Query(f"{number}").key, OUTPUT) for number in range(1234)], device="cuda")
        store.add(name, [(Query("x").key, OUTPUT)], device="cuda")
    edit(own_home / "scores.sqlite", "UPDATE block SET stored_at = 1700000000 WHERE number = 2")
    monkeypatch.setattr("acceptability.cli.console._WIDTH_WITHOUT_TERMINAL", 80)
    list_models(SimpleNamespace(invoked_subcommand=None))
    output = capsys.readouterr().out
    assert max(map(len, output.splitlines())) <= 80
    for whole in ("1,235", "cuda", "2023-11-14", TODAY().isoformat()):
        assert whole in output
    assert "…" not in output
