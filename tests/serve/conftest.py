"""Visitors for the tests of the page; the page itself is imported only where the extra [web] is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .http_client import Visitor

collect_ignore = [] if find_spec("fastapi") else ["visiting.py"]


@pytest.fixture
def visitor() -> Iterator[Visitor]:
    from .http_client import Visitor, visiting

    with visiting() as client:
        yield Visitor(client)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Visitor]:
    """A visitor where little is allowed."""
    from acceptability.serve.security import Limits

    from .http_client import Visitor, visiting

    # Without a clock that stands still, the rate limit would refill while a busy machine answers.
    monkeypatch.setattr("acceptability.serve.security.time", SimpleNamespace(monotonic=lambda: 0.0))
    limits = Limits(upload_bytes=3_000, characters=50, sentences=3, table_sentences=6, per_minute=8)
    with visiting(limits=limits) as client:
        yield Visitor(client)
