"""Keeps doctests away from the home of whoever runs them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def another_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No doctest sees the user's store."""
    home = tmp_path_factory.mktemp("another-home")
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(home))
    return home
