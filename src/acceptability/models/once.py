"""Properties that open networks: computed once, and one at a time, whichever threads ask for them.

Python's own ``cached_property`` has had no lock since 3.12, and transformers cannot open two networks at the same
time: it changes PyTorch for as long as it opens one, and networks after that are left without weights.
"""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

Made = TypeVar("Made")

_opening = RLock()


class once(cached_property[Made]):  # noqa: N801
    """A cached property that no two threads compute at once.

    >>> class Model:
    ...     @once
    ...     def net(self):
    ...         return "opened"
    >>> Model().net
    'opened'
    """

    def __get__(self, instance: object, owner: type[Any] | None = None) -> Made:  # type: ignore[override]
        """Return what is cached, or wait for whatever is being opened, and then open."""
        with _opening:
            return super().__get__(instance, owner)
