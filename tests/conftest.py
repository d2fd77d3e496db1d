"""What every test gets: a home of its own, the data when they are there, and tiny models."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers that each use every core stand in each other's way. NumPy reads this when it is imported, which our own
    # modules below do.
    os.environ.setdefault("OMP_NUM_THREADS", "1")

MEMORY_DISK = Path("/dev/shm")
if MEMORY_DISK.is_dir() and os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > 2 << 30:
    # Thousands of tests make folders and stores, each of which would wait for a disk several times.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))

# Hundreds of tests start commands, which would compile every module anew; and pytest would rewrite every file of tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from acceptability.engine import processes
from acceptability.papers.park import park_suites
from acceptability.paths import local_data_folder
from acceptability.types import Sentence

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ROOT.parent / "shared" / "data"
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
if BESIDE.is_dir():
    os.environ.setdefault("ACCEPTABILITY_DATA", str(BESIDE))

# How long an example takes depends on what else the machine does, so no test may fail for it.
settings.register_profile("acceptability", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("acceptability")

pytest_plugins = ["tiny", "faulty_server"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run tests with real pretrained models")
    parser.addoption("--faults", action="store_true", help="inject every fault, not only a few of each kind")
    parser.addoption("--network", action="store_true", help="also run tests that reach out to the internet")


# The files that take 8 to 40 seconds each: were they begun last, one worker would go on alone at the end.
LONGEST = [
    "test_docs.py",
    "contracts/test_suites.py",
    "serve/test_browser.py",
    "test_site.py",
    "cli/test_commands.py",
    "api/test_reproduction.py",
    "train/classifiers/test_restarts.py",
    "papers/niu_penn/test_niu_penn_models.py",
    "suites/test_suite_cache.py",
    "golden/test_suites.py",
    "faults/test_kills.py",
    "faults/test_disks.py",
    "faults/test_promises.py",
    "faults/test_stopping.py",
    "cli/test_classifying.py",
    "cli/test_tables.py",
    "models/hf/test_forward_paths.py",
    "models/test_embedded.py",
    "contracts/test_measures.py",
    "contracts/test_models.py",
    "fuzz/test_bounds.py",
    "fuzz/test_readers.py",
    "serve/test_pages.py",
    "report/test_figures.py",
    "report/test_chromium.py",
    "cli/test_study.py",
]


def pytest_configure(config: pytest.Config) -> None:
    # Workers take the files as they are ordered below; without this, those with most tests would be first.
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ranks = {ROOT / "tests" / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))
    for item in items:
        for marker in ("slow", "network", "faults"):
            if item.get_closest_marker(marker) and not config.getoption(f"--{marker}"):
                item.add_marker(pytest.mark.skip(reason=f"needs --{marker}"))


# Python looks for garbage after every 700 new objects that last, of which a suite has a hundred thousand: a fifth of
# the time of some tests.
gc.set_threshold(50_000, 10, 10)


def pytest_collection_finish() -> None:
    """Never look for garbage among what lasts as long as the tests do."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Look for garbage once at the end, in which pytest finds what was not closed; it would itself look five times."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in a few lines what was skipped and why, instead of a line for every place in the tests."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        terminalreporter.section("skipped")
    for reason, times in reasons.most_common():
        terminalreporter.write_line(f"{times:5} {reason}")


@pytest.fixture(scope="session", autouse=True)
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures of a whole module, which are made before ``own_home``, do not see the user's store either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEPTABILITY_HOME", str(tmp_path_factory.mktemp("shared-home")))
        yield


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders, one for each test."""
    # Numbered here: ``mktemp`` looks through all folders made before, of which there would be thousands.
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in count())


@pytest.fixture(scope="session")
def parsed_suites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of parsed suites that all tests and the commands they start share; it is keyed by content."""
    base = tmp_path_factory.getbasetemp()
    # Workers of xdist have folders of their own below a common one.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "parsed-suites"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], parsed_suites: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees another's store, nor the user's; only suites are parsed once for all tests."""
    home = next(homes)
    home.mkdir()
    (home / "parsed").symlink_to(parsed_suites)
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test gets a model that an earlier one loaded, and perhaps has not let go of yet."""
    monkeypatch.setattr("acceptability.models._loaded_models", WeakValueDictionary())


@pytest.fixture(scope="session", autouse=True)
def shared_pairs() -> Iterator[None]:
    """Textbook sentences are paired once for all tests in this process."""
    pair, paired = park_suites.pair_textbook_sentences, {}

    def pair_sentences(sentences: Sequence[Sentence]) -> object:
        key = tuple(map(repr, sentences))
        if key not in paired:
            paired[key] = pair(sentences)
        return paired[key]

    with pytest.MonkeyPatch.context() as patch:
        # Its own tests call it directly; the studies that need it take a second for each call.
        patch.setattr(park_suites, "pair_textbook_sentences", pair_sentences)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_commands() -> Iterator[None]:
    """The commands are built once, and not for each of hundreds of calls within this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def no_worker_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What worker processes would do is done in this process, which has PyTorch already."""

    def map_here(
        function: processes.WorkerFunction, items: Sequence[Any], *, on_progress: processes.ProgressListener, **_: int
    ) -> Iterator[processes.CallOutcome]:
        for index, item in enumerate(items):
            with redirect_stdout(sys.stderr):
                outcome = processes.run_call(function, item, index, partial(on_progress, index))
            yield outcome

    monkeypatch.setattr(processes, "map_unordered", map_here)


@pytest.fixture
def data() -> Path:
    """The folder with local copies of the published data sets."""
    folder = local_data_folder()
    if folder is None or not folder.is_dir():
        pytest.skip("the published data are not here: set ACCEPTABILITY_DATA")
    return folder
