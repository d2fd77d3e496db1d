"""What goes into a paper: tables in LaTeX and Markdown, CSV files, BibTeX."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from acceptability import evaluate
from acceptability.measures.pairs import PairAccuracy
from acceptability.report import page
from acceptability.report.export import write_csv_files
from acceptability.report.page import find_citation_keys, format_bibtex, read_references
from acceptability.report.report_data import ReportData, attach_suites, load_report_data
from acceptability.report.result_tables import (
    MARKS_NOTE,
    ReportTable,
    TableCell,
    build_tables,
    compare_with_best,
    compute_marks,
    format_latex,
    format_mark,
    format_markdown,
)
from acceptability.report.result_tables import escape_latex as in_latex
from acceptability.stats.permutation import holm, permutation_test
from acceptability.suites import load_catalog
from acceptability.text.io import escape_formulas, format_csv, write_spreadsheet
from acceptability.types import Units
from report.report_rows import ATTACK, FORMULA, everything, suite


@pytest.fixture
def material(tmp_path: Path) -> ReportData:
    return attach_suites(load_report_data(everything(tmp_path / "runs")), [suite()])


def test_latex_is_a_booktabs_table_with_the_best_in_bold() -> None:
    row = (
        TableCell("a_b"),
        TableCell("0.900", "[0.8, 1.0]", is_best=True, is_number=True),
        TableCell("-0.1", mark="**", is_number=True),
    )
    text = format_latex([ReportTable("g", "T & t", ("model", "x", "y"), (row,), ("A note.",))])
    assert r"\begin{tabular}{@{}lrr@{}}" in text
    assert r"a\_b & \textbf{0.900} {\scriptsize [0.8, 1.0]} & $-$0.1\textsuperscript{**} \\" in text
    assert r"\caption{T \& t. A note.}" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))


def test_latex_commands_in_cells_are_escaped() -> None:
    text = in_latex(r"\input{/etc/passwd} $x$ 100% #1 ~ ^ _ & {}")
    assert "\\input" not in text
    assert re.sub(r"\\(textbackslash|textasciitilde|textasciicircum)\{\}|\\[{}$&#%_]", "", text).isprintable()
    assert not re.search(r"(?<!\\)[$&#%_]", text)


def test_attacks_are_text_in_every_table(material: ReportData) -> None:
    tables = build_tables(material)
    assert ATTACK in {entry.text for grid in tables for row in grid.rows for entry in row}
    assert "<script" not in format_latex(tables)
    assert "<script" not in format_markdown(tables)
    assert r"\textless{}script\textgreater{}" in format_latex(tables)
    assert "&lt;script&gt;" in format_markdown(tables)


def test_no_cell_of_a_csv_is_a_formula(material: ReportData, tmp_path: Path) -> None:
    for path in write_csv_files(tmp_path / "csv", material, []):
        with path.open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "\t"))]
        assert not [cell for cell in cells if cell.startswith("-") and not re.fullmatch(r"-[\d.e-]+", cell)]
    assert f"'{FORMULA}" in (tmp_path / "csv" / "cells.csv").read_text()
    assert format_csv([{"=a": "-x", "n": -1}]) == '"\'=a","n"\n"\'-x","-1"\n'
    write_spreadsheet(tmp_path / "s.tsv", [{"a": FORMULA}])
    assert (tmp_path / "s.tsv").read_text() == f'"a"\n"\'{FORMULA}"\n'
    write_spreadsheet(tmp_path / "s.jsonl", [{"a": FORMULA}])
    assert (tmp_path / "s.jsonl").read_text() == '{"a": "=cmd()"}\n'


@pytest.mark.parametrize("text", ["a;=1+1", "a;=1+1;b", 'say "x";=1+1;', "a;  @SUM(1)", "a\n=1+1;b", "a\t-x", ";＝1+1"])
def test_formulas_after_semicolons_are_escaped(text: str, tmp_path: Path) -> None:
    rows = [{"first": text, "second": text, "third": "x"}]
    write_spreadsheet(tmp_path / "s.csv", rows)
    for written in ((tmp_path / "s.csv").read_text(encoding="utf-8"), format_csv(rows)):
        assert written.splitlines()[0] == '"first","second","third"'
        cells = [cell for row in csv.reader(written.splitlines(), delimiter=";") for cell in row]
        assert not [cell for cell in cells if cell.strip().startswith(("=", "+", "-", "@", "＝"))]


def test_ordinary_lists_are_not_escaped() -> None:
    for text in ("a;b", "a\r\nb", "a - b", "a;\n\nb", "a,=b", "-1.5"):
        assert escape_formulas(text) == text


def test_markdown_in_cells_is_escaped() -> None:
    about = {"measure": "PBC()", "reduction": "lp()", "suite": "s|`s`", "low": None, "high": None, "n": 4, "notes": ""}
    model = "m|x\n| forged | 1 |\n`code` <script>alert(1)</script>"
    rows = [{**about, "model": model, "value": 0.5, "group": group} for group in (None, f"tag={model}")]
    text = format_markdown(build_tables(ReportData(results=tuple(rows))))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}
    assert "\n| forged" not in text
    assert "<script" not in text
    assert not re.search(r"(?<!\\)`", text)
    assert r"m\|x \| forged \| 1 \| \`code\` &lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_marks_are_those_of_permutation_tests_against_the_best() -> None:
    right = {"good": np.ones(60), "poor": np.array([1.0, 0.0] * 30), "near": np.array([1.0] * 59 + [0.0])}
    rows = [
        {"suite": "s", "measure": "PairAccuracy(ties=0.0)", "model": model, "reduction": "lp()", "unit": str(index)}
        | {"gap": value - 0.5, "correct": value}
        for model, values in right.items()
        for index, value in enumerate(values.tolist())
    ]
    found = compute_marks(ReportData(units=tuple(rows)))
    units = {name: Units(tuple(map(str, range(60))), {"correct": values}, ({},) * 60) for name, values in right.items()}
    ps = [permutation_test(PairAccuracy(), units["good"], units[name], draws=2000).p for name in ("poor", "near")]
    assert found == {
        ("s", "PairAccuracy(ties=0.0)", name): format_mark(p)
        for name, p in zip(("poor", "near"), holm(ps), strict=True)
    }
    assert found["s", "PairAccuracy(ties=0.0)", "poor"] == "***"
    assert found["s", "PairAccuracy(ties=0.0)", "near"] == ""


def test_every_suite_has_a_reference_and_every_reference_exists() -> None:
    lists = page._read_reference_lists()
    for entry in load_catalog():
        assert any(f"{entry.id}/".startswith(f"{name}/") for name in lists["suites"]), entry.id
    named = [key for part in lists.values() if isinstance(part, dict) for found in part.values() for key in found]
    assert set(named) <= set(read_references())
    for key, entry in read_references().items():
        assert entry.count("{") == entry.count("}"), key
        assert entry.endswith(",\n}")
        assert "author = {" in entry


def test_bibtex_names_suites_models_and_methods(material: ReportData) -> None:
    found = find_citation_keys(material)
    assert {"warstadt-etal-2020-blimp", "vazquez-martinez-2021", "niu-penn-2020", "radford-etal-2019"} <= set(found)
    assert {"holm-1979", "efron-tibshirani-1993", "park-etal-2021"} <= set(found)
    text = format_bibtex(material)
    assert "% mine: a suite of your own" in text
    assert text.count("@") == len(found) == len(set(found))


@pytest.mark.parametrize(
    ("measure", "is_tested"), [("Accuracy(threshold=0.0)", True), ("Accuracy(threshold='cv')", False)]
)
def test_decisions_by_a_fitted_threshold_have_no_marks(measure: str, is_tested: bool) -> None:
    rows = [
        {"suite": "s", "measure": measure, "model": model, "reduction": "", "unit": f"{row}", "correct": correct}
        for model, correct in (("good", 1.0), ("poor", 0.0))
        for row in range(30)
    ]
    marks = compute_marks(ReportData(units=tuple(rows)))
    assert [*marks.values()] == (["***"] if is_tested else [])


def make_area_rows(n: int, measure: str = "AUC()") -> tuple[dict[str, object], ...]:
    generator, labels = np.random.default_rng(1), np.tile([0.0, 1.0], n // 2)
    return tuple(
        {
            "suite": "s",
            "measure": measure,
            "model": model,
            "reduction": "",
            "unit": f"{row}",
            "score": score,
            "label": label,
        }
        for model, skill in (("good", 3.0), ("poor", 0.0), ("near", 2.9))
        for row, (score, label) in enumerate(zip(skill * labels + generator.normal(size=n), labels, strict=True))
    )


def make_results(measure: str) -> tuple[dict[str, object], ...]:
    about = {"suite": "s", "measure": measure, "reduction": "", "group": None, "low": None, "high": None, "n": 60}
    values = {"good": 0.98, "poor": 0.5, "near": 0.97}
    return tuple(about | {"model": model, "value": value} for model, value in values.items())


def test_measures_that_are_no_means_are_marked_too() -> None:
    marks = compute_marks(ReportData(units=make_area_rows(60)))
    assert marks == {("s", "AUC()", "poor"): "***", ("s", "AUC()", "near"): ""}


def test_what_is_not_tested_is_named_below_the_table() -> None:
    for measure, reason in (
        ("MCC(threshold='cv')", "its thresholds are fitted to all rows"),
        ("AUC()", ""),
    ):
        data = ReportData(results=make_results(measure), units=make_area_rows(60, measure))
        (table,) = build_tables(data)
        untested = [note for note in table.notes if note.startswith("Not tested")]
        assert [reason in note for note in untested] == [True] * bool(reason)
        assert (MARKS_NOTE in table.notes) == (not reason)
    # Enough rows that evaluating the area for each swap would take minutes.
    big = compare_with_best(ReportData(units=make_area_rows(10_002)))
    assert "too many rows" in big.untested["s", "AUC()"]
    (table,) = build_tables(ReportData(results=make_results("AUC()")))
    assert "Not tested: AUC, since the rows of its results were not saved." in table.notes


def test_models_with_other_rows_are_named_as_untested() -> None:
    rows = [row for row in make_area_rows(60) if not (row["model"] == "poor" and row["unit"] in "01")]
    tests = compare_with_best(ReportData(units=tuple(rows)))
    assert tests.untested["s", "AUC()"] == "not all models have the same rows"
    assert [key for *_, key in tests.marks] == ["near"]


def test_tables_have_peoples_names_and_say_the_code() -> None:
    results = evaluate("starter", ["uniform", "trigram"], measure=["PairAccuracy", "AUC"], by="phenomenon")
    tables = build_tables(ReportData(results=tuple(result.row() for result in results)))
    assert tables[0].header == ("model", "Pair accuracy", "AUC")
    assert tables[0].notes[0] == "Pair accuracy: n = 383; AUC: n = 838."
    names = {row[0].text: row[0].code for row in tables[1].rows}
    assert names["Subject–verb agreement"] == "phenomenon=subject_verb_agreement"
    assert names["Mean over phenomena"] == "macro(phenomenon)"
    assert tables[1].title == "starter: Pair accuracy by group"
    note = "In code: Pair accuracy is PairAccuracy(ties=0.0)."
    assert note in format_markdown(tables[:1]).replace("\\", "")
    assert note in format_latex(tables[:1])
    # The name is that of the code already.
    assert "In code" not in format_markdown(tables[2:])
