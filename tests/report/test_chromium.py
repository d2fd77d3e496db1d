"""The report in a browser: light and dark, wide and narrow; what axe-core says of it; nothing untrusted runs."""

from __future__ import annotations

import csv
import importlib.util
import io
from pathlib import Path

import pytest

from report.chromium import chromium, opened
from report.report_rows import ATTACK, FORMULA, MODELS, everything, suite

pytest.importorskip("altair", reason="figures need the extra plots")

from acceptability.report.page import ReportHeading, write_report
from acceptability.report.report_data import attach_suites, load_report_data


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    material = attach_suites(load_report_data(everything(folder / "runs")), [suite()])
    return write_report(folder / "report.html", ReportHeading(f"A report {ATTACK}", FORMULA), material)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1200, "light"),
        (390, "dark"),
        pytest.param(390, "light", marks=pytest.mark.slow),
        pytest.param(1200, "dark", marks=pytest.mark.slow),
    ],
)
def test_the_page_fits_and_every_figure_is_drawn(
    browser, report: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    with opened(browser, report, width=width, scheme=scheme, whole=True) as page:
        assert page.locator("html").evaluate("each => each.scrollWidth") <= width
        charts = page.locator(".chart")
        assert charts.count() == page.locator("figure").count() > 14
        assert page.locator(".chart > svg, .chart > canvas, .chart .marks").count() >= charts.count()
        assert "could not be drawn" not in page.locator("main").inner_text()
        page.screenshot(path=tmp_path / f"{scheme}-{width}.png", full_page=True)
        assert (tmp_path / f"{scheme}-{width}.png").stat().st_size > 50_000


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(browser, report: Path, scheme: str) -> None:
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None:
        pytest.skip("the test of accessibility needs axe-playwright-python")
    axe = Path(found.submodule_search_locations[0]) / "axe.min.js"
    with opened(browser, report, scheme=scheme, whole=True) as page:
        page.locator("details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
        # Run by the debugger, since the page itself allows no script but its own.
        page.locator("html").evaluate(axe.read_text(encoding="utf-8") + "; () => undefined")
        said = page.locator("html").evaluate("() => axe.run({ resultTypes: ['violations'] })")
    faults = [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in said["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert faults == []
    assert len(said["passes"]) > 20


def test_attacks_are_shown_as_text(browser, report: Path) -> None:
    with opened(browser, report) as page:
        first = page.locator("#pairs li").first.inner_text()
        assert ATTACK in first
        assert "onerror=alert(1)" in first
        assert page.locator("#pairs img, #pairs script").count() == 0
        assert ATTACK in page.locator("h1").inner_text()
        assert FORMULA in page.locator("#pairs li").nth(1).inner_text()


def test_pairs_are_searched_sorted_and_filtered(browser, report: Path) -> None:
    with opened(browser, report) as page:
        count = page.locator("#count")
        assert count.inner_text() == "40 of 40 pairs"
        page.fill("#search", "sleeps 17")
        assert count.inner_text() == "1 of 40 pairs"
        page.fill("#search", "")
        page.select_option("#tag", "phenomenon")
        page.select_option("#tag-value", "p1")
        assert count.inner_text() == "10 of 40 pairs"
        page.select_option("#tag", "")
        verdicts = page.locator("#verdicts select")
        verdicts.nth(0).select_option("1")
        verdicts.nth(1).select_option("0")
        shown = page.locator("#pairs li")
        assert 0 < shown.count() < 40
        for each in shown.all():
            assert "✓ alpha" in each.inner_text()
            assert "✗ beta" in each.inner_text()
        page.select_option("#sort", "down0")
        gaps = [float(each.locator(".gaps span.right").first.inner_text().split()[2]) for each in shown.all()]
        assert gaps == sorted(gaps, reverse=True)


def test_pages_turn_by_the_keyboard(browser, report: Path) -> None:
    with opened(browser, report) as page:
        page.focus("#after")
        page.keyboard.press("Enter")
        assert page.locator("#where").inner_text() == "Page 2 of 2"
        assert page.locator("#after").is_disabled()


def test_downloaded_rows_are_those_of_the_figure_and_hold_no_formula(browser, report: Path) -> None:
    with opened(browser, report) as page:
        with page.expect_download() as awaited:
            page.locator("#pairs-csv").click()
        rows = list(csv.reader(io.StringIO(Path(awaited.value.path()).read_text(encoding="utf-8"), newline="")))
        assert len(rows) == 41
        assert rows[1][2] == ATTACK
        assert rows[2][2:4] == [f"'{FORMULA}", "'@SUM(1)\u2028x"]
        with page.expect_download() as awaited:
            page.locator("[data-csv]").first.click()
        assert awaited.value.suggested_filename == "summary.csv"
        rows = list(csv.DictReader(io.StringIO(Path(awaited.value.path()).read_text(encoding="utf-8"))))
        assert {row["model"] for row in rows} == set(MODELS)
        details = page.locator("[data-rows]").first
        details.locator("summary").click()
        # The browser reports an opened <details> in an event of its own after the click, and only then are rows made.
        details.locator("tbody tr").last.wait_for()
        assert details.locator("tbody tr").count() == len(rows)
