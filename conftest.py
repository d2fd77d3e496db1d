"""Keeps doctests away from the home of whoever runs them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

# The modules of the page need the extra [web] to be imported at all.
collect_ignore = [] if find_spec("fastapi") else ["src/acceptability/serve"]


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No doctest sees the user's store."""
    home = tmp_path_factory.mktemp("another-home")
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(home))
    return home
