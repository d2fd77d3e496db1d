"""The built site in a browser: kinds of pages, wide and narrow, light and dark; what axe-core says; search and filter.

It is built once, and opened from disk: whatever a page loaded from the network would fail the test.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT
from report.chromium import chromium, opened

pytest.importorskip("material", reason="tests of the site need mkdocs-material")
pytest.importorskip("mkdocstrings", reason="tests of the site need mkdocstrings")

PAGES = [
    "index",
    "learn/first-table",
    "howto/from-minicons",
    "howto/troubleshooting",
    "why/statistics",
    "why/peers",
    "notebooks/judge-pairs",
    "notebooks/compare-models",
    "gallery",
    "reference/suites",
    "reference/models",
    "reference/measures",
    "reference/recipes",
    "reference/commands",
    "reference/commands-compare",
    "reference/python",
    "reference/python-data",
]
QUICK = [("index", 1280, "light"), ("reference/suites", 390, "dark")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def test_examples_in_docstrings_are_code_and_not_quotations(site: Path) -> None:
    for page in site.glob("reference/*.html"):
        assert "<blockquote>" not in page.read_text(encoding="utf-8"), page.name
    assert '<span class="o">&gt;&gt;&gt;</span>' in (site / "reference/python-functions.html").read_text("utf-8")


def test_links_and_anchors_of_the_reference_lead_somewhere(site: Path) -> None:
    """mkdocs checks the links of Markdown, and the tables are HTML."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in site.glob("reference/*.html")}
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    links = {
        (name, target or name, anchor)
        for name, text in texts.items()
        for target, anchor in re.findall(r'href="([\w-]*(?:\.html)?)#([^"]+)"', text.partition("<article")[2])
    }
    assert len(links) > 500
    assert not sorted(link for link in links if link[2] not in anchors.get(link[1], ()))


def check_accessible(browser, site: Path, name: str, width: int, scheme: str) -> None:
    axe = Path(importlib.util.find_spec("axe_playwright_python").submodule_search_locations[0]) / "axe.min.js"
    with opened(browser, site / f"{name}.html", width=width, scheme=scheme) as page:
        page.locator("details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
        assert page.locator("html").evaluate("each => each.scrollWidth") <= width
        page.locator("html").evaluate(axe.read_text(encoding="utf-8") + "; () => undefined")
        # Not preloaded: axe would fetch the style sheets again, which a browser refuses to a page from disk.
        said = page.locator("html").evaluate("() => axe.run({ resultTypes: ['violations'], preload: false })")
        faults = [
            f"{each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in said["violations"]
            if each["impact"] != "minor"
        ]
        assert faults == []
        assert len(said["passes"]) > 20


@pytest.mark.parametrize(("name", "width", "scheme"), QUICK)
def test_axe_finds_nothing(browser, site: Path, name: str, width: int, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python", reason="the test of accessibility needs axe-playwright-python")
    check_accessible(browser, site, name, width, scheme)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_on_any_kind_of_page(browser, site: Path, name: str, width: int, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python", reason="the test of accessibility needs axe-playwright-python")
    check_accessible(browser, site, name, width, scheme)


def test_suites_are_filtered_by_the_keyboard(browser, site: Path) -> None:
    with opened(browser, site / "reference" / "suites.html") as page:
        rows = page.locator(".reference tbody tr:visible")
        assert rows.count() > 80
        page.locator("#filter-0").focus()
        page.keyboard.type("russian rublimp")
        assert rows.count() == 1
        assert "rublimp" in rows.inner_text()
        assert re.fullmatch(r"1 of \d+", page.get_by_role("status").first.inner_text())
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert "Licence" in rows.inner_text()


def test_a_link_to_a_row_opens_what_it_is_folded_into(browser, site: Path) -> None:
    with opened(browser, site / "reference" / "recipes.html") as page:
        option = page.locator("#lstm-embedding")
        assert not option.is_visible()
        page.evaluate("location.hash = 'lstm-embedding'")
        option.wait_for(state="visible")


def test_the_site_is_searched_from_disk(browser, site: Path) -> None:
    with opened(browser, site / "howto" / "serve.html") as page:
        page.keyboard.press("/")
        page.keyboard.type("surprisal")
        found = page.locator(".md-search-result__link").first
        found.wait_for()
        assert "urprisal" in page.locator(".md-search-result__list").inner_text()
        address = found.get_attribute("href")
        assert Path(address.removeprefix("file://").partition("?")[0].partition("#")[0]).is_file()
