"""A Chromium that opens files from disk, for tests of pages; they are skipped with a reason where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)

_LOCAL = ("file:", "blob:", "data:")


@contextmanager
def chromium() -> Iterator[object]:
    """Yield an open browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="tests of pages need playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("tests of pages need chromium on the path")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=_FLAGS.split(), timeout=120_000)
        yield browser
        browser.close()


@contextmanager
def opened(browser, path: Path, *, width: int = 1200, scheme: str = "light", whole: bool = False) -> Iterator[object]:
    """Yield a page, with ``whole`` once all figures are drawn; a script that fails, or a dialog, fails the test."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(120_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda asked: None if asked.url.startswith(_LOCAL) else wrong.append(asked.url))
    page.goto(path.as_uri())
    if whole:
        page.wait_for_selector("html[data-drawn=all]", state="attached")
    yield page
    context.close()
    assert wrong == []
