"""The table of what was fuzzed, at the end of ``make fuzz``."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

collect_ignore = [] if find_spec("atheris") else ["guided.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from .counting import COUNTS, SECONDS_EACH, table

    if SECONDS_EACH and COUNTS:
        terminalreporter.section("what was fuzzed")
        for line in table():
            terminalreporter.write_line(line)
