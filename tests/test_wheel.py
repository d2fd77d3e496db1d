"""The wheel alone: what `pip install acceptability` gives works without a checkout, without extras and offline.

The wheel is built and installed into an empty folder, beside links to the dependencies that it declares, and to
theirs. The interpreter sees that folder and its own library, nothing else of this environment.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pages import ROOT

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys

def refuse(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo"}:
        raise SystemExit(f"the program reached out: {event} {arguments}")

sys.addaudithook(refuse)
sys.path.insert(0, sys.argv.pop(1))
from acceptability.cli import main
main()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel, and links to what it declares."""
    pytest.importorskip("hatchling", reason="hatchling, of the extra dev, builds the wheel")
    built, folder = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("site")
    _done([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", built], ROOT)
    (wheel,) = built.glob("acceptability-*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel]
    _done(install, built)
    (installed,) = distributions(path=[str(folder)])
    for name in _needed(installed, set()):
        for path in _find_paths(name):
            (folder / path.name).symlink_to(path)
    return folder


def _done(command: list[object], cwd: Path, **env: str) -> str:
    words = [str(each) for each in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, encoding="utf-8", env=env or None)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _needed(found: Distribution, known: set[str]) -> set[str]:
    """Return the names of all that a distribution cannot be installed without."""
    for each in map(Requirement, found.requires or ()):
        if each.name not in known and (each.marker is None or each.marker.evaluate({"extra": ""})):
            known.add(each.name)
            _needed(distribution(each.name), known)
    return known


def _find_paths(name: str) -> Iterator[Path]:
    """Yield the folders and modules that a distribution puts beside others."""
    found = distribution(name)
    for first in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        yield Path(str(found.locate_file(first)))


def _typed(site: Path, folder: Path, *arguments: str) -> str:
    work, home = folder / "work", folder / "home"
    work.mkdir()
    # -S: no site-packages; -I: neither the folder it is called in nor PYTHONPATH.
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, site, *arguments]
    return _done(command, work, ACCEPTABILITY_HOME=str(home), HOME=str(home), COLUMNS="160")


def test_only_the_declared_dependencies_are_seen(site: Path, tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import numpy, acceptability; import pytest"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "No module named 'pytest'" in done.stderr


def test_the_demo_makes_its_page(site: Path, tmp_path: Path) -> None:
    said = _typed(site, tmp_path, "demo")
    assert "trigram" in said
    assert (tmp_path / "work" / "acceptability-demo.html").stat().st_size > 100_000


def test_the_published_values_of_papers_are_there(site: Path) -> None:
    folder = Path("acceptability", "papers", "values")
    names = sorted(path.name for path in (ROOT / "src" / folder).glob("*.csv"))
    assert names
    assert sorted(path.name for path in (site / folder).glob("*.csv")) == names


def test_suites_are_listed(site: Path, tmp_path: Path) -> None:
    assert "li_adger" in _typed(site, tmp_path, "suites")


def test_a_sentence_is_judged(site: Path, tmp_path: Path) -> None:
    said = _typed(site, tmp_path, "judge", "The boys were late.", "The boys was late.", "--model", "trigram")
    assert "better by 2.434: The boys were late." in said


def test_a_suite_is_evaluated(site: Path, tmp_path: Path) -> None:
    said = _typed(site, tmp_path, "evaluate", "starter", "--model", "trigram", "--measure", "PairAccuracy(ties=0.5)")
    assert "0.654" in said
