"""Figures: each from its rows, drawn only where there are some."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from report.report_rows import everything, suite

pytest.importorskip("altair", reason="figures need the extra plots")
pytest.importorskip("vl_convert", reason="figures need the extra plots")

from acceptability.report.export import make_paper_spec, write_figures
from acceptability.report.figures import FIGURE_KINDS, VegaFigure, draw_figures, result_plots
from acceptability.report.report_data import ReportData, attach_suites, load_report_data


@pytest.fixture
def figures(tmp_path: Path) -> dict[str, VegaFigure]:
    material = attach_suites(load_report_data(everything(tmp_path / "runs")), [suite()])
    return {each.name: each for each in draw_figures(material)}


def test_every_kind_of_figure_is_drawn_from_its_rows(figures: dict[str, VegaFigure]) -> None:
    import vl_convert

    kinds = {name.rstrip("-0123456789") for name in figures}
    assert kinds == {figure.name for figure in FIGURE_KINDS}
    for each in figures.values():
        assert each.rows
        assert each.caption
        assert len(each.alt) > 20
        assert vl_convert.vegalite_to_svg(make_paper_spec(each)).startswith("<svg")


def test_nothing_is_drawn_without_rows() -> None:
    assert draw_figures(ReportData()) == []


def test_layers_and_facets_have_no_data_of_their_own(figures: dict[str, VegaFigure]) -> None:
    """A part with data of its own would show the rows of every model, whichever its heading names."""

    def inside(spec: object) -> list[object]:
        if isinstance(spec, list):
            return [found for each in spec for found in inside(each)]
        if not isinstance(spec, dict):
            return []
        return [*(["data"] if "data" in spec else []), *(found for each in spec.values() for found in inside(each))]

    for each in figures.values():
        assert inside(each.spec) == ["data"]
    marks = _points(figures["delta-scatter"])
    assert len(marks) == len(figures["delta-scatter"].rows)


NO_CHARACTER = "\0\x08\x0c\x1b\ufffe\uffff\ud800"
"""What XML, and so an SVG file, cannot hold: what reads it stops the whole program."""


@pytest.mark.parametrize("hostile", [NO_CHARACTER, "x" * 50_000], ids=["no character", "endless"])
def test_a_name_with_characters_that_svg_forbids_is_drawn(figures: dict[str, VegaFigure], hostile: str) -> None:
    import vl_convert

    for each in figures.values():
        rows = [{k: f"{v}{hostile}" if isinstance(v, str) else v for k, v in row.items()} for row in each.rows]
        titled = {**each.spec, "title": hostile}
        spec = make_paper_spec(replace(each, rows=tuple(rows), spec=titled))
        text = json.dumps(spec, ensure_ascii=False)
        assert not re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|x{300}", text)
        # Long labels are drawn slowly, and differ in nothing but what is checked above: three figures show it.
        if hostile == NO_CHARACTER or each.name in ("by-group", "differences", "layers-1"):
            assert vl_convert.vegalite_to_svg(spec).startswith("<svg")


def test_long_names_with_a_shared_prefix_stay_distinct_on_paper(figures: dict[str, VegaFigure]) -> None:
    figure = figures["by-group"]
    rows = [{**row, "group": "x" * 300 + row["group"]} for row in figure.rows]
    drawn_rows = make_paper_spec(replace(figure, rows=tuple(rows)))["datasets"]["rows"]
    assert len({row["group"] for row in drawn_rows}) == len({row["group"] for row in rows}) > 1
    assert [row["model"] for row in drawn_rows] == [row["model"] for row in rows]


def _points(figure: VegaFigure) -> list[str]:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(make_paper_spec(figure))
    return [part for part in svg.split("<path") if 'fill="#555"' in part]


def test_the_adc_curve_passes_through_adc(figures: dict[str, VegaFigure], tmp_path: Path) -> None:
    curve = {(row["model"], row["delta"]): row["adc"] for row in figures["adc-curve"].rows}
    units = load_report_data([str(tmp_path / "runs" / "run")]).units
    for model in ("alpha", "beta"):
        gaps = [(row["gap"], row["human_gap"]) for row in units if row["model"] == model and "human_gap" in row]
        met = [one > 0 and abs(one - two) < 0.5 for one, two in gaps]
        assert curve[model, 0.5] == pytest.approx(sum(met) / len(met))


def test_the_human_line_is_the_share_of_ratings_in_order(figures: dict[str, VegaFigure]) -> None:
    rows = figures["by-group"].rows
    assert {row["chance"] for row in rows} == {0.5}
    assert {row["human"] for row in rows} == {1.0}


def test_people_are_drawn_with_their_published_accuracy(tmp_path: Path) -> None:
    """The tag that ZhoBLiMP's pairs have comes before ratings."""
    judged = suite()
    contrasts = tuple(
        replace(contrast, tags={**contrast.tags, "human_accuracy": f"0.{5 + number % 2}"})
        for number, contrast in enumerate(judged.contrasts)
    )
    material = load_report_data(everything(tmp_path / "runs"))
    with_people = replace(judged, contrasts=contrasts, derived_tags=("human_accuracy",))
    drawn = {one.name: one for one in draw_figures(attach_suites(material, [with_people]))}
    people = {row["group"]: round(row["human"], 9) for row in drawn["by-group"].rows}
    assert {people[name] for name in ("p1", "p3")} == {0.6}
    assert people["p2"] == 0.5


def test_bars_have_deviations_and_the_line_of_every_sentence(figures: dict[str, VegaFigure]) -> None:
    row = figures["features"].rows[0]
    assert (row["feature"], row["mean"], row["sd"], row["whole"]) == ("Simple", 0.4, 0.05, 0.4)


def test_files_for_a_paper_have_its_widths(figures: dict[str, VegaFigure], tmp_path: Path) -> None:
    some = [figures["adc-curve"], figures["by-group"]]
    files = write_figures(tmp_path / "figures", some)
    assert {path.suffix for path in files} == {".pdf", ".svg", ".png"}
    assert (tmp_path / "figures" / "adc-curve.pdf").read_bytes().startswith(b"%PDF")
    for figure, inches in zip(some, (3.3, 6.8), strict=True):
        head = (tmp_path / "figures" / f"{figure.name}.png").read_bytes()[:24]
        assert struct.unpack(">I", head[16:20])[0] / 300 == pytest.approx(inches, abs=0.25)


def test_rows_of_models_and_configurations_are_a_heat_map() -> None:
    cells = [
        {"table": "Figure 1", "row": f"model: {training}", "column": environment, "ours": 0.1 * n, "paper": None}
        for n, training in enumerate(("CoLA", "1 NPI", "All NPI"))
        for environment in ("ADV", "COND", "ONLY")
    ]
    (panel,) = result_plots.make_grid_panels(ReportData(cells=tuple(cells)))
    assert panel.title == "Figure 1"
    assert len(panel.rows) == 9
