"""The page in a real Chromium: keyboard, progress, light and dark, wide and narrow, and nothing runs that was typed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WHY = "the page is tried in a browser only where playwright, axe-playwright-python and Chromium are installed"
pytest.importorskip("fastapi", reason="the page needs the extra [web]")
axe = pytest.importorskip("axe_playwright_python", reason=WHY)
playwright = pytest.importorskip("playwright.sync_api", reason=WHY)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip(WHY, allow_module_level=True)

AXE = Path(axe.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# In milliseconds; far longer than a page takes, since the machine may be busy.
TIMEOUT = 120_000
WIDTHS = {"wide": (1200, 900), "narrow": (360, 740)}
EVIL = "<script>alert(1)</script>"
TABLE = f'good,bad,phenomenon\n"{EVIL} sleeps.",=cmd(),"<img src=x onerror=alert(2)>"\nCats sleep.,Sleep cats.,order\n'


class Server:
    """A server in a process of its own, which can be killed and started again."""

    def __init__(self, home: Path) -> None:
        self.home, self.port = home, 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "acceptability", "serve", "--port", str(self.port), "--json"]
        command += ["--per-minute", "100000"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "ACCEPTABILITY_HOME": str(self.home)}, encoding="utf-8"
        )
        said = "".join(self.process.stdout.readline() for _ in range(3))
        self.address = json.loads(said)["address"]
        self.port = int(self.address.rsplit(":", 1)[1].strip("/"))

    def end(self, how: int) -> int:
        self.process.send_signal(how)
        self.process.stdout.close()
        return self.process.wait(120)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("served")) as running:
        yield running
        assert running.end(signal.SIGINT) == 0, "Ctrl-C does not end the server in order"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS, timeout=TIMEOUT)
        yield opened
        opened.close()


class Watched:
    """A page that remembers what it should never have: dialogs, and errors such as forbidden scripts."""

    def __init__(self, browser: Browser, server: Server, width: str = "wide", scheme: str = "light") -> None:
        wide, high = WIDTHS[width]
        self.context = browser.new_context(
            base_url=server.address, viewport={"width": wide, "height": high}, color_scheme=scheme
        )
        self.context.set_default_timeout(TIMEOUT)
        self.page: Page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message: Any) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def judge(self, first: str, second: str, models: tuple[str, ...]) -> None:
        self.page.goto("/")
        for box in self.page.locator("input[name=model]").all():
            box.set_checked(box.input_value() in models)
        self.page.fill("#first", first)
        self.page.fill("#second", second)
        self.page.press("#second", "Enter")
        self.page.wait_for_selector("#answer", timeout=TIMEOUT)

    def evaluate(self, table: str, *models: str) -> None:
        self.page.goto("/table")
        for box in self.page.locator("input[name=model]").all():
            box.set_checked(box.input_value() in models)
        self.page.fill("#table", table)
        self.page.click("button.main")
        self.page.wait_for_selector("text=Open the report", timeout=TIMEOUT)

    def faults(self) -> list[str]:
        """Return what axe finds serious or critical on the page."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run(document)")
        bad = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
        return [f"{self.page.url} {each['id']}: {each['nodes'][0]['html']}" for each in bad]


def test_typed_text_is_escaped_and_never_run(browser: Browser, server: Server) -> None:
    with Watched(browser, server) as visit:
        visit.judge(EVIL, "=cmd() <img src=x onerror=alert(2)>", ("trigram", "uniform"))
        assert EVIL in visit.page.input_value("#first")
        assert "script" in visit.page.inner_text("#verdicts")
        visit.evaluate(TABLE, "uniform")
        page = visit.page
        # A click returns before the page that it leads to is there; its text would be read from the page before.
        with page.expect_navigation():
            page.click("text=Browse the sentences")
        assert f"{EVIL} sleeps." in page.inner_text("main")
        assert "=cmd()" in page.inner_text("main")
        page.goto(page.url + "?q=" + EVIL)
        assert EVIL in page.inner_text("main")
        page.goto("/runs")
        with page.expect_navigation():
            page.click("tbody a >> nth=0")
        with page.expect_navigation():
            page.click("text=Open the report")
        assert "PairAccuracy" in page.inner_text("body")
        page.wait_for_selector("#figures canvas, #figures svg, figure canvas, figure svg", timeout=TIMEOUT)
        assert f"{EVIL} sleeps." in page.inner_text("body")
        assert visit.wrong == []


def test_pages_work_by_keyboard_alone(browser: Browser, server: Server) -> None:
    with Watched(browser, server) as visit:
        page = visit.page
        page.goto("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        for _ in range(6):
            page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "first"
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.type("The boys were late.")
        page.keyboard.press("Tab")
        page.keyboard.type("The boys was late.")
        for box in page.locator("input[name=model]").all():
            page.keyboard.press("Tab")
            if box.input_value() not in ("trigram", "uniform"):
                page.keyboard.press("Space")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#answer", timeout=TIMEOUT)
        assert "1 of 2 models find the first sentence better" in page.inner_text("#answer")
        assert visit.wrong == []


def test_without_scripts_the_page_works_too(browser: Browser, server: Server) -> None:
    context = browser.new_context(base_url=server.address, java_script_enabled=False)
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    page.goto("/")
    for name in ("mini-masked", "mini-causal", "mini-lstm"):
        page.uncheck(f"input[value={name}]")
    page.fill("#first", "Cats sleep.")
    page.click("text=Judge >> nth=-1")
    assert page.locator("#answer").inner_text() == "Scores of the models"
    context.close()


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", "wide"),
        ("dark", "narrow"),
        pytest.param("light", "narrow", marks=pytest.mark.slow),
        pytest.param("dark", "wide", marks=pytest.mark.slow),
    ],
)
def test_every_page_is_accessible_and_fits(browser: Browser, server: Server, scheme: str, width: str) -> None:
    """With a folder in ACCEPTABILITY_PICTURES, pictures are made there."""
    folder = os.environ.get("ACCEPTABILITY_PICTURES")
    with Watched(browser, server, width, scheme) as visit:
        page, faults = visit.page, []
        visit.evaluate(TABLE, "trigram", "uniform")
        done, run = page.url, page.get_attribute("text=Browse the sentences", "href")
        visit.judge(
            "The author that the critics praise is famous.",
            "The author that the critics praise are famous.",
            ("trigram", "uniform"),
        )
        for name, address in (
            ("judge", ""),
            ("table", "/table"),
            ("job", done),
            ("run", run),
            ("suites", "/suites"),
            ("suite", "/suites/starter"),
            ("runs", "/runs"),
            ("problem", "/nothing"),
            ("enter", "/enter"),
        ):
            if address:
                page.goto(address)
            faults += visit.faults()
            if folder:
                page.screenshot(path=Path(folder, f"{name}-{scheme}-{width}.png"), full_page=name == "judge")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(21, 24, 28)") == (scheme == "dark")
        assert faults == []
        assert [each for each in visit.wrong if "404" not in each] == []


def _states(home: Path) -> list[str]:
    return [json.loads(path.read_text())["state"] for path in (home / "jobs").glob("*/job.json")]


@pytest.mark.slow
def test_a_job_survives_a_killed_server(browser: Browser, tmp_path: Path) -> None:
    with Server(tmp_path) as server, Watched(browser, server) as visit:
        page = visit.page
        page.goto("/suites/starter")
        page.click("summary")
        for box in page.locator("input[name=model]").all():
            box.set_checked(box.input_value() == "mini-masked")
        page.click("button.main")
        deadline = time.monotonic() + 120
        while page.evaluate("document.getElementById('progress').value") < 5 and time.monotonic() < deadline:
            page.wait_for_timeout(100)
        server.end(signal.SIGKILL)
        page.wait_for_selector("text=the server cannot be reached", timeout=TIMEOUT)
        assert _states(tmp_path) == ["running"]
        server.start()
        page.wait_for_selector("text=Open the report", timeout=2 * TIMEOUT)
        assert "383" in page.inner_text("table")
        assert server.end(signal.SIGINT) == 0


@pytest.mark.slow
def test_all_models_are_shown(browser: Browser, server: Server, tmp_path: Path) -> None:
    folder = Path(os.environ.get("ACCEPTABILITY_PICTURES", tmp_path))
    names = ("mini-masked", "mini-causal", "mini-lstm", "trigram", "uniform")
    for scheme in ("light", "dark"):
        with Watched(browser, server, scheme=scheme) as visit:
            visit.judge(
                "The author that the critics praise is famous.", "The author that the critics praise are famous.", names
            )
            assert visit.page.locator(".verdict").count() == len(names)
            assert visit.page.locator(".problem").count() == 0
            assert visit.faults() == []
            visit.page.screenshot(path=folder / f"all-{scheme}.png")
