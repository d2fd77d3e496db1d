"""Promises that no other test checks: every result has a signature, and nothing is sent without a request."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from acceptability.specs import parse_signature

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "why" / "promises.md"
WATCH = """
import os, socket
real = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX:
        with open(os.environ["WATCHED"], "a") as out:
            print(address, file=out)
        raise OSError("not allowed")
    return real(self, address)
socket.socket.connect = connect
def resolve(*arguments, **others):
    with open(os.environ["WATCHED"], "a") as out:
        print(arguments, file=out)
    raise OSError("not allowed")
socket.getaddrinfo = resolve
"""


@pytest.fixture
def watched(tmp_path: Path) -> dict[str, str]:
    """An environment in which every connection is noted and refused."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "WATCHED": str(tmp_path / "watched"), "OMP_NUM_THREADS": "1"}


def command(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "acceptability", *arguments], env=env, capture_output=True, text=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "starter", "-m", "trigram", "-m", "uniform", "--json"],
        pytest.param(["score", "starter", "mini-causal"], marks=pytest.mark.faults),
        ["models"],
        ["suites"],
        pytest.param(["demo"], marks=pytest.mark.faults),
        ["doctor"],
    ],
)
def test_nothing_is_sent_unless_asked(arguments: list[str], watched: dict[str, str]) -> None:
    done = command(watched, *arguments)
    assert done.returncode == 0, done.stderr
    assert not Path(watched["WATCHED"]).exists(), Path(watched["WATCHED"]).read_text()


def test_what_is_asked_for_is_seen_by_the_watch(watched: dict[str, str]) -> None:
    """The test above could not fail if the watch were blind."""
    done = command({**watched, "ACCEPTABILITY_DATA": ""}, "suites", "fetch", "blimp")
    assert done.returncode == 1
    assert "Check the connection" in done.stderr
    assert Path(watched["WATCHED"]).read_text()


def test_no_result_without_a_signature(watched: dict[str, str]) -> None:
    done = command(watched, "evaluate", "starter", "-m", "uniform", "--json", "--by", "phenomenon", "--resamples", "0")
    rows = json.loads(done.stdout)
    assert rows
    for row in rows:
        assert {"suite", "model", "n", "acceptability"} <= set(parse_signature(row["signature"]))


def test_every_test_that_the_page_names_is_there() -> None:
    """The page says which test would break; one that was renamed or deleted is missed here."""
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 15
    for path, name in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text, f"{path}::{name}"
