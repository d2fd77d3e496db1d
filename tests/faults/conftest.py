"""How many faults: a few in the ordinary tests, all of them with --faults; and the table at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from faults.harness import Driver, Row, Tally

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
    driver_process = Driver(
        tmp_path_factory.mktemp("driver"), ["acceptability.models.ngram.model", "acceptability.train.ngram_recipes"]
    )
    yield driver_process
    driver_process.close()


@pytest.fixture(scope="session")
def torch_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """What runs commands that need torch."""
    modules = ["torch", "transformers", "acceptability.models.hf.causal", "acceptability.train.recurrent_task"]
    driver_process = Driver(tmp_path_factory.mktemp("torch-driver"), modules)
    yield driver_process
    driver_process.close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts to the process that started this one, if there is one."""
    if (worker_output := getattr(session.config, "workeroutput", None)) is not None:
        worker_output["faults"] = json.dumps([asdict(row) for row in _TALLY.rows.values()])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of another process."""
    for row in json.loads(node.workeroutput.get("faults", "[]") if hasattr(node, "workeroutput") else "[]"):
        _TALLY.take_over(Row(**row))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was injected, lost and wrong, and keep it as JSON."""
    if config.getoption("--faults") and _TALLY.rows:
        terminalreporter.section("faults")
        for line in _TALLY.lines():
            terminalreporter.write_line(line)
        _TALLY.write(ROOT / "build" / "faults.json")
