"""The readers again, with inputs that atheris finds by looking at which code they reach."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from .counting import SECONDS_EACH, counted
from .targets import targets

TESTS = Path(__file__).resolve().parents[1]
_RUNS = re.compile(r"number_of_executed_units:\s*(\d+)")

pytestmark = [
    pytest.mark.skipif(not SECONDS_EACH, reason="runs with make fuzz"),
    pytest.mark.skipif(not find_spec("atheris"), reason="atheris is not installed: the extra [fuzz] has it"),
]


def test_what_reaches_new_code_gives_a_value_or_one_line() -> None:
    paths = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH", ""))))
    command = [sys.executable, "-m", "fuzz.guided", str(max(1, round(SECONDS_EACH * len(targets()) / 2)))]
    with counted("all readers, guided") as count:
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
        found = _RUNS.search(done.stderr + done.stdout)
        count.inputs = int(found[1]) if found else 0
        assert done.returncode == 0, (done.stdout + done.stderr)[-5_000:]
        assert count.inputs > 0
