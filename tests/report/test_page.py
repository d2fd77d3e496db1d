from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from acceptability import evaluate
from acceptability.errors import ReportError, UnknownName
from acceptability.report import export, page
from acceptability.report.page import (
    ReportHeading,
    build_browser,
    choose_pairs,
    dump_script_json,
    pack_browser,
    write_report,
)
from acceptability.report.report_data import attach_suites, load_report_data
from acceptability.report.terminal import build_group_table, format_number
from acceptability.store.runs import save_run
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.suites import load_suite
from report.report_rows import ATTACK, FORMULA, MODELS, everything, suite


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.is_inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        self.is_inside = tag == "script" and ("type", "application/json") not in attrs
        self.scripts += [""] * self.is_inside

    def handle_endtag(self, tag: str) -> None:
        self.is_inside = False

    def handle_data(self, data: str) -> None:
        if self.is_inside:
            self.scripts[-1] += data


@pytest.fixture
def material(tmp_path: Path):
    return attach_suites(load_report_data(everything(tmp_path / "runs")), [suite()])


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing that draws were installed."""
    monkeypatch.setattr(page, "can_draw", lambda: False)
    monkeypatch.setattr(export, "find_spec", lambda name: None)


def test_the_page_is_self_contained_and_runs_only_its_own_scripts(material, plain, tmp_path: Path) -> None:
    path = write_report(tmp_path / "p.html", ReportHeading("A <b>title</b>", ATTACK, [(ATTACK, "&")]), material)
    text = path.read_text(encoding="utf-8")
    tags = Tags(text)
    assert not {"link", "img", "iframe", "object", "base"} & set(tags.seen)
    assert [value for name, value in tags.attributes if name in ("src", "href")] == [
        *("#main", "#tables", "#items", "#again", "#cite")
    ]
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    policy = next(value for name, value in tags.attributes if value and "default-src" in value)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in tags.scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert len(hashes) == 1
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    assert ATTACK not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_without_the_packages_for_figures_the_page_has_a_note(material, plain, tmp_path: Path) -> None:
    text = write_report(tmp_path / "p.html", ReportHeading("t"), material).read_text(encoding="utf-8")
    assert "pip install &#39;acceptability[plots]&#39;" in text
    assert "<figure" not in text
    # Tables have the name that people use, and that of the code where it is pointed at.
    assert ' title="PairAccuracy(ties=0.0)">Pair accuracy</th>' in text


def test_data_in_the_page_cannot_end_its_element(material) -> None:
    found = build_browser(material)
    text = dump_script_json(pack_browser(found))
    assert not set("<>&\u2028\u2029") & set(text)
    pairs = json.loads(text)["pairs"]
    assert pairs[0]["texts"][0] == ATTACK
    assert pairs[1]["texts"] == [FORMULA, "@SUM(1)\u2028x"]
    assert json.loads(text)["models"] == list(MODELS)


def test_pairs_on_which_models_differ_come_first(material) -> None:
    everyone = build_browser(material).pairs
    differing = [each.id for each in everyone if each.models_differ]
    assert 0 < len(differing) < 38
    kept = choose_pairs(everyone, len(differing) + 2)
    assert [each.id for each in kept[:-2]] == differing
    assert not any(each.models_differ for each in kept[-2:])
    assert [each.id for each in kept] == [each.id for each in choose_pairs(everyone, len(differing) + 2)]
    few = build_browser(material, max_pairs=5)
    assert "5 of 40 pairs are here" in few.about
    assert "serve" in few.about
    assert build_browser(material).about == "All 40 pairs are here."


def test_tokens_are_read_from_the_store_without_a_model(tmp_path: Path, monkeypatch) -> None:
    results = evaluate("starter", ["uniform"], measure=["PairAccuracy"])
    run = save_run("evaluate", "evaluate starter", [each.row() for each in results], collect_unit_rows(results), [])
    monkeypatch.setattr("acceptability.models.load_model", None)
    found = build_browser(attach_suites(load_report_data([run.id])))
    assert found.models == ("uniform",)
    assert len(found.pairs) == 383
    first = pack_browser(found)["pairs"][0]
    starts, bits, unknown = (first["tokens"][0][0][part::4] for part in (0, 2, 3))
    assert starts[0] == 0
    assert bits == [15.6] * len(bits)
    assert unknown == [0] * len(bits)
    folder = str(run.folder)
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path))
    elsewhere = build_browser(attach_suites(load_report_data([folder])))
    assert "No surprisals of single tokens are stored for uniform" in elsewhere.shading


def test_a_suite_that_changed_is_not_shown(tmp_path: Path) -> None:
    sources = everything(tmp_path / "runs")
    other = suite()
    changed = type(other)("mine", other.sentences[:-2], other.contrasts[:-1])
    found = attach_suites(load_report_data(sources), [changed])
    assert not found.suites
    assert "was not found" in found.notes[0]
    assert build_browser(found) is None


def test_runs_are_found_by_id_folder_and_file(tmp_path: Path) -> None:
    results = evaluate("starter", ["uniform"], measure=["PBC()"])
    run = save_run("evaluate", "evaluate starter", [each.row() for each in results], collect_unit_rows(results), [])
    (tmp_path / "rows.json").write_text(json.dumps([each.row() for each in results]))
    for source in (run.id, str(run.folder), str(tmp_path / "rows.json")):
        assert len(load_report_data([source]).results) == 1
    assert len(load_report_data([run.id, run.id]).results) == 1
    with pytest.raises(UnknownName, match="no run named"):
        load_report_data(["nothing"])
    (tmp_path / "odd.json").write_text('[{"a": 1}]')
    with pytest.raises(ReportError, match="no row can be shown"):
        load_report_data([str(tmp_path / "odd.json")])
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ReportError, match="cannot read"):
        load_report_data([str(tmp_path / "bad.json")])


def test_a_note_on_one_model_of_several_has_its_name(plain, tmp_path: Path) -> None:
    row = evaluate("starter", ["uniform"], measure=["AUC"])[0].row()
    notes = {model: f"shared; unknown words are in {count} of 838 sentences" for model, count in (("a", 3), ("b", 4))}
    rows = [row | {"model": model, "notes": text} for model, text in notes.items()]
    (tmp_path / "r.json").write_text(json.dumps(rows))
    report_data = load_report_data([str(tmp_path / "r.json")])
    text = write_report(tmp_path / "p.html", ReportHeading("t"), report_data).read_text()
    assert "<li>AUC(): shared" in text
    assert "a, AUC(): unknown words are in 3 of 838 sentences" in text
    assert "b, AUC(): unknown words are in 4 of 838 sentences" in text


def test_an_undefined_value_is_a_dash_with_a_reason(plain, tmp_path: Path) -> None:
    row = evaluate("starter", ["uniform"], measure=["PBC()"])[0].row()
    (tmp_path / "r.json").write_text(
        json.dumps([row | {"value": None, "low": None, "high": None, "reason": "because"}])
    )
    text = write_report(
        tmp_path / "p.html", ReportHeading("t"), load_report_data([str(tmp_path / "r.json")])
    ).read_text()
    assert "because" in text
    assert ">–<" in text
    assert format_number(None) == "–"


def test_a_page_in_no_folder_is_an_error(material, plain, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot write .*p\.html"):
        write_report(tmp_path / "none" / "p.html", ReportHeading("t"), material)


def test_groups_stand_in_rows_and_models_in_columns() -> None:
    results = [
        each for each in evaluate("starter", ["uniform"], measure=["PairAccuracy"], by="phenomenon") if each.group
    ]
    table = build_group_table(results)
    assert len(table.rows) == 13
    assert table.header == ("phenomenon", "n", "uniform")


def test_the_starter_suite_is_found_by_its_name() -> None:
    results = evaluate("starter", ["uniform"], measure=["PBC()"])
    run = save_run("evaluate", "evaluate starter", [each.row() for each in results], [], [])
    assert attach_suites(load_report_data([run.id])).suites["starter"].hash == load_suite("starter").hash


def test_the_script_of_figures_is_kept_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vl_convert = pytest.importorskip("vl_convert")
    # The homes of other tests share the folder in which it is kept.
    home = tmp_path / "home"
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(home))
    bundles = iter(["first</script>", "second", "third"])
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda **_: next(bundles))
    bundle = page._bundle_vega.__wrapped__
    assert [bundle(), bundle()] == [r"first<\/script>"] * 2
    (path,) = (home / "parsed").iterdir()
    path.write_text(path.read_text().replace("first", "last"))
    assert bundle() == "second"
    # A home that cannot be written to is no reason to fail.
    path.unlink()
    path.mkdir()
    assert bundle() == "third"
