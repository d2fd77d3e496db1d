"""How many faults: a few in the ordinary tests, all of them with --faults; and the table at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faults.harness import Driver, Tally

_TALLY = Tally()
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tally() -> Tally:
    """What is counted, over all tests."""
    return _TALLY


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """Choose between how often in the ordinary tests, and how often with --faults."""
    return lambda few, many: many if request.config.getoption("--faults") else few


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """What runs commands that need no torch."""
    found = Driver(tmp_path_factory.mktemp("driver"), ["acceptability.models.ngram", "acceptability.train.ngram"])
    yield found
    found.close()


@pytest.fixture(scope="session")
def torch_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """What runs commands that need torch."""
    modules = ["torch", "transformers", "acceptability.models.causal", "acceptability.train.recurrent_loop"]
    found = Driver(tmp_path_factory.mktemp("torch-driver"), modules)
    yield found
    found.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was injected, lost and wrong, and keep it as JSON."""
    if config.getoption("--faults") and _TALLY.rows:
        terminalreporter.section("faults")
        for line in _TALLY.lines():
            terminalreporter.write_line(line)
        _TALLY.write(ROOT / "build" / "faults.json")
