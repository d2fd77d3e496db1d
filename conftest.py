"""Keeps doctests away from the home of whoever runs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

# The modules of the page need the extra [web] to be imported at all.
collect_ignore = [] if find_spec("fastapi") else ["src/acceptability/serve"]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders, one for each doctest."""
    # Numbered here: ``mktemp`` looks through all folders made before, of which there would be many.
    base = tmp_path_factory.mktemp("other-homes")
    return (base / str(number) for number in count())


@pytest.fixture(autouse=True)
def own_home(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """No doctest sees the user's store."""
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(home))
    return home
