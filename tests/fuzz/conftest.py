"""The table of what was fuzzed, at the end of ``make fuzz``."""

from __future__ import annotations

import pytest

# It is a program of its own, and needs atheris when it is imported.
collect_ignore = ["guided.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    from .counting import COUNTS, SECONDS_EACH, table

    if SECONDS_EACH and COUNTS:
        terminalreporter.section("what was fuzzed")
        for line in table():
            terminalreporter.write_line(line)
