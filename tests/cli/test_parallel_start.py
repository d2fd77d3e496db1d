"""A first evaluation with a network parses a large suite in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability import suites
from acceptability.cli import parallel_start
from acceptability.models.hf import loading
from acceptability.suites import is_unparsed, load_suite

pytest.importorskip("transformers")


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices for which transformers was imported."""
    devices: list[str] = []
    monkeypatch.setattr(loading, "import_transformers", devices.append)
    return devices


def start(monkeypatch: pytest.MonkeyPatch, model: str) -> list[str]:
    """Start with every suite but the starter taken for an unparsed one, and return the suites that were parsed."""
    parsed: list[str] = []

    class Process:
        def __init__(self, *, target, args, daemon) -> None:
            self.names = args[0]

        def start(self) -> None:
            parsed.extend(self.names)

        def join(self) -> None:
            pass

    context = type("Context", (), {"Process": Process})
    monkeypatch.setattr(parallel_start.multiprocessing, "get_context", lambda _: context)
    monkeypatch.setattr(parallel_start, "is_unparsed", lambda name: name != "starter")
    parallel_start.start_in_parallel(["starter", "blimp"], ["trigram", model])
    return parsed


def test_what_a_network_needs_is_imported_while_a_suite_is_parsed(monkeypatch, imported: list[str]) -> None:
    assert start(monkeypatch, "causal:folder(device='cuda:1')") == ["blimp"]
    assert imported == ["cuda:1"]


def test_without_a_network_nothing_is_imported_or_started(monkeypatch, imported: list[str]) -> None:
    assert start(monkeypatch, "uniform") == []
    assert imported == []


def test_a_suite_is_unparsed_until_it_was_read(monkeypatch, data: Path, tmp_path: Path) -> None:
    # The homes of other tests share what was parsed.
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(suites, "_MIN_LARGE_BYTES", 0)
    assert is_unparsed("cola/in_domain_dev")
    load_suite("cola/in_domain_dev")
    assert not is_unparsed("cola/in_domain_dev")
    assert not is_unparsed("no/such/suite")


def test_a_small_suite_is_left_to_this_process(data: Path) -> None:
    assert not is_unparsed("cola/in_domain_dev")
