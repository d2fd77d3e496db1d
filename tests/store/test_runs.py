from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

from acceptability.api.evaluation import evaluate
from acceptability.errors import ReportError, StoreError
from acceptability.report.report_data import load_report_data
from acceptability.store.run_tables import read_run_table, sign_run_table
from acceptability.store.runs import list_saved_runs, save_run
from acceptability.store.scores import SCORING_VERSION
from acceptability.store.unit_rows import UnitRows, collect_unit_rows, read_unit_rows, write_unit_csv
from acceptability.types import Units


def test_a_run_is_saved_as_json_and_csv_and_listed(own_home: Path) -> None:
    results = evaluate("starter", ["uniform"], measure=["PairAccuracy"], by="phenomenon")
    rows = [result.row() for result in results]
    run = save_run(
        "evaluate", "starter -m uniform", rows, collect_unit_rows(results), [result.signature for result in results]
    )
    assert list_saved_runs() == ([run], [])
    assert json.loads((run.folder / "results.json").read_text()) == rows
    with (run.folder / "results.csv").open(newline="") as opened:
        assert len(list(csv.DictReader(opened))) == len(rows)
    units = json.loads((run.folder / "units.json").read_text())
    assert len(units) == results[0].n
    assert {"tag/phenomenon", "tag/item", "gap", "correct"} <= set(units[0])
    assert sum(unit["correct"] for unit in units) / len(units) == pytest.approx(results[0].value)
    assert results[0].signature in json.loads((run.folder / "run.json").read_text())["signatures"]


def test_rows_with_different_tags_and_awkward_texts_are_saved_in_both_files(own_home: Path) -> None:
    tags = ({"item": '1, "a"', "mark": "*"}, {"item": "2\n%s"}, {"item": "3"}, {"mark": "%", "item": "ä"})
    units = Units(("a%d", 'b"', "c", "d"), {"gap": np.array([0.1, -2.0, 1e-300, 5])}, tags)
    parts = [(units, {"suite": "50 %", "model": "m"}), (units.take(np.array([2])), {"suite": "other"})]
    run = save_run("evaluate", "", [], UnitRows(parts), [])
    expected = [
        {**about, "unit": name, "gap": float(gap), **{f"tag/{tag}": value for tag, value in own.items()}}
        for part, about in parts
        for name, gap, own in zip(part.ids, part["gap"], part.tags, strict=True)
    ]
    assert list(UnitRows(parts)) == expected
    assert json.loads((run.folder / "units.json").read_text()) == expected
    with (run.folder / "units.csv").open(newline="", encoding="utf-8") as opened:
        read = list(csv.DictReader(opened))
    assert list(read[0]) == ["suite", "model", "unit", "gap", "tag/item", "tag/mark"]
    assert [{name: cell for name, cell in row.items() if cell} for row in read] == [
        {name: str(cell) for name, cell in row.items()} for row in expected
    ]
    with pytest.raises(ValueError, match="not finite"):
        save_run("evaluate", "", [], UnitRows([(Units(("a",), {"gap": np.array([np.nan])}, ({},)), {})]), [])


def test_a_run_records_what_computed_its_results(own_home: Path, monkeypatch) -> None:
    run = save_run("score", "", [], [], [])
    recorded = json.loads((run.folder / "run.json").read_text())["environment"]
    assert recorded["scoring"] == SCORING_VERSION
    assert recorded["packages"] == {name: version(name) for name in ("torch", "transformers", "tokenizers")}
    monkeypatch.setitem(sys.modules, "torch", None)
    assert save_run("score", "", [], [], []).environment["device"] is None
    assert list_saved_runs()[0][0] == run


def test_recording_a_run_imports_no_network_library(own_home: Path) -> None:
    code = (
        "import sys; from acceptability.store.runs import save_run; run = save_run('score', '', [], [], []); "
        "print({'torch', 'transformers', 'tokenizers'} & set(sys.modules) or 'none', run.environment['device'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["none", "None"]


def test_the_device_of_networks_is_recorded(own_home: Path) -> None:
    pytest.importorskip("torch")
    assert save_run("score", "", [], [], []).environment["device"] in ("cpu", "cuda", "mps")


def test_packages_that_are_not_installed_are_not_recorded(own_home: Path, monkeypatch) -> None:
    def refuse(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", refuse)
    assert save_run("score", "", [], [], []).environment["packages"] == {}


def test_a_run_of_the_version_before_is_read(own_home: Path) -> None:
    run = save_run("score", "", [], [], [])
    fields = json.loads((run.folder / "run.json").read_text())
    del fields["environment"]
    (run.folder / "run.json").write_text(json.dumps(fields))
    ((read,), problems) = list_saved_runs()
    assert (read.id, read.environment, problems) == (run.id, {}, [])


def test_a_damaged_run_is_named_and_hides_no_other(own_home: Path) -> None:
    damaged, whole = save_run("score", "", [], [], []), save_run("score", "", [], [], [])
    (damaged.folder / "run.json").write_text("{")
    runs, problems = list_saved_runs()
    assert runs == [whole]
    assert len(problems) == 1
    assert damaged.id in problems[0]


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot save the run"):
        save_run("score", "", [], [], [])


def test_rows_are_written_as_if_each_were_encoded_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acceptability.store.unit_rows._ROWS_AT_ONCE", 2)
    tags = [{"item": "1"}, {"item": 'ü\ud800, "x"'}, {"item": "3"}, {"item": "4", "100%": "50 %"}, {"100%": "y"}]
    ids = ("a > b", "a\nb", "%s", "d,e", "f")
    columns = {"correct": np.array([1.0, 0.0, 1.0, 0.5, 1e-300]), "gap": np.array([1 / 3, -2.5, 0.1, 1e22, 3.0])}
    about = {"suite": "s", "model": "100 %(x)s", "measure": "PairAccuracy()", "reduction": None}
    rows = UnitRows([(Units(ids, columns, tuple(tags)), about), (Units((), {}, ()), about)])
    mixed = [{"value": 1, "note": None}, {"value": True, "note": [1, 2]}, {"value": 1.0, "note": "x"}, {"other": "y"}]
    run = save_run("evaluate", "", mixed, rows, [])
    for name, expected in (("results", mixed), ("units", list(rows))):
        plain = "[" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in expected) + "]\n"
        assert (run.folder / f"{name}.json").read_bytes() == plain.encode("utf-8", "backslashreplace")
        table = io.StringIO()
        writer = csv.DictWriter(table, list(dict.fromkeys(key for row in expected for key in row)), restval="")
        writer.writeheader()
        writer.writerows(expected)
        assert (run.folder / f"{name}.csv").read_bytes() == table.getvalue().encode("utf-8", "backslashreplace")


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused(wrong: float) -> None:
    units = UnitRows([(Units(("a",), {"gap": np.array([wrong])}, ({},)), {"suite": "s"})])
    with pytest.raises(ValueError, match="not finite"):
        save_run("evaluate", "", [], units, [])


def save_columns(monkeypatch: pytest.MonkeyPatch, rows: UnitRows) -> Path:
    monkeypatch.setattr("acceptability.store.unit_rows.MAX_PLAIN_ROWS", 3)
    return save_run("evaluate", "", [], rows, []).folder


def make_awkward_rows() -> UnitRows:
    tags = ({"item": "1", "a/b": "x"}, {"item": 'ü\ud800, "x"'}, {}, {"a/b": "nul\0", "100 %": "50 %"})
    columns = {"correct": np.array([1.0, 0.0, 1e-300, 0.5]), "gap/": np.array([1 / 3, -2.5, 0.1, 1e22])}
    units = Units(("a > b", "a\nb", "%s", "d,\0e"), columns, tags)
    about = {"suite": "s", "model": "ü %(x)s", "measure": "PairAccuracy()", "reduction": None}
    parts = [(units, about), (Units((), {}, ()), about)]
    # The same rows by another model, of which only the numbers are written.
    second = Units(tuple(units.ids), {"correct": np.zeros(4)}, tuple(map(dict, tags)))
    untagged = Units(("x", "y"), {"gap": np.array([3.0, 4.0])}, ({}, {}))
    return UnitRows([*parts, (second, {**about, "model": "second"}), (untagged, {"suite": "t"})])


def test_many_rows_are_saved_once_and_as_columns(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = make_awkward_rows()
    folder = save_columns(monkeypatch, rows)
    assert {path.name for path in folder.iterdir()} == {"run.json", "results.json", "results.csv", "units.npz"}
    read = read_unit_rows(folder)
    assert len(read) == len(rows) == 10
    assert list(read) == list(rows)
    with np.load(folder / "units.npz") as arrays:
        assert {name.partition("/")[0] for name in arrays if "/unit/" in name} == {"0", "1", "3"}
    # The CSV is the one that fewer rows have.
    monkeypatch.setattr("acceptability.store.unit_rows.MAX_PLAIN_ROWS", 99)
    plain = save_run("evaluate", "", [], rows, []).folder
    assert list(read_unit_rows(plain)) == list(rows)
    for source in (folder, plain):
        assert write_unit_csv(source, tmp_path / "rows.csv") == 10
        assert (tmp_path / "rows.csv").read_bytes() == (plain / "units.csv").read_bytes()


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_columns_hold_finite_numbers_only(own_home: Path, monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    units = Units(tuple("abcd"), {"gap": np.array([0, 0, 0, wrong])}, ({},) * 4)
    with pytest.raises(ValueError, match="not finite"):
        save_columns(monkeypatch, UnitRows([(units, {"suite": "s"})]))


@pytest.mark.parametrize(
    ("name", "array", "problem"),
    [
        ("parts", np.frombuffer(b"{", np.uint8), "Expecting"),
        ("parts", np.frombuffer(b'[{"about": {}, "columns": [3], "tags": [], "same": null}]', np.uint8), "no text"),
        ("0/column/0", np.zeros(3), "another length"),
        ("0/column/0", np.full(4, np.nan), "not finite"),
        ("0/column/0", np.array(["a", "b", "c", "d"]), "could not convert"),
        ("0/column/0", np.array([None] * 4, dtype=object), "allow_pickle"),
        ("0/unit/ends", np.array([0, 6, 9, 3, 17]), "do not end"),
        ("0/unit/ends", np.array([0, 6, 10, 14, 200]), "do not end"),
        ("0/tag/0/codes", np.array([0, 1, -1]), "no value for each"),
        ("0/tag/0/codes", np.array([0, 1, -2, -1]), "no value for each"),
        ("0/tag/0/codes", np.array([0, 1, 9, -1]), "out of range"),
    ],
)
def test_damaged_columns_are_one_error(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, array: np.ndarray, problem: str
) -> None:
    folder = save_columns(monkeypatch, make_awkward_rows())
    with np.load(folder / "units.npz") as arrays:
        kept = dict(arrays)
    np.savez(folder / "units.npz", **kept | {name: array})
    with pytest.raises(StoreError, match=f"cannot read .*units.npz: .*{problem}"):
        read_unit_rows(folder)


def test_columns_that_are_cut_off_or_compressed_are_refused(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_columns(monkeypatch, make_awkward_rows()) / "units.npz"
    with np.load(path) as arrays:
        kept = dict(arrays)
    np.savez_compressed(path, **kept)
    with pytest.raises(StoreError, match="it is compressed"):
        read_unit_rows(path.parent)
    np.savez(path, **kept)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(StoreError, match="cannot read"):
        read_unit_rows(path.parent)


def test_whoever_reads_rows_finds_the_same_in_columns(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = evaluate("starter", ["uniform", "uniform(vocabulary=9)"], measure=["PairAccuracy"], resamples=0)
    rows, signatures = [result.row() for result in results], [result.signature for result in results]
    folders = []
    for most in (10**6, 0):
        monkeypatch.setattr("acceptability.store.unit_rows.MAX_PLAIN_ROWS", most)
        run = save_run("evaluate", "starter", rows, collect_unit_rows(results), signatures)
        folders.append(str(run.folder))
    plain, columns = map(load_report_data, ([folder] for folder in folders))
    assert len(plain.units) == sum(result.n for result in results)
    assert columns.units == plain.units
    assert read_run_table(folders[1]) == read_run_table(folders[0])
    assert sign_run_table(folders[1]).startswith(f"run {Path(folders[1]).name}@")


@pytest.mark.parametrize(
    ("column", "about", "problem"),
    [
        ([1.0, 1e200], {}, "gap is 1e"),
        ([1.0, 2.0], {"model": 3}, "model is 3; expected a text"),
    ],
)
def test_columns_of_a_stranger_are_checked_like_rows(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, column: list[float], about: dict[str, object], problem: str
) -> None:
    units = Units(("a", "b"), {"gap": np.array(column)}, ({}, {}))
    rows = UnitRows([(units, {"suite": "s", "measure": "PairAccuracy()", "model": "m"} | about)])
    monkeypatch.setattr("acceptability.store.unit_rows.MAX_PLAIN_ROWS", 0)
    run = save_run("evaluate", "", [{"measure": "m", "model": "m", "suite": "s", "value": 1, "n": 1}], rows, [])
    with pytest.raises(ReportError, match=f"is damaged: {problem}"):
        load_report_data([run.id])
