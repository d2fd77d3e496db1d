"""Who has the store open: all who use it share a lock, and who mends it has it alone.

The lock is the system's, on a file beside the store, and ends with the process that holds it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import BinaryIO

from acceptability.errors import StoreError

_SECONDS_TO_WAIT = 10.0


def shared(path: Path) -> BinaryIO:
    """Return a lock that others may hold as well; closing it ends it."""
    return _locked(path, alone=False)


def alone(path: Path) -> BinaryIO:
    """Return a lock that nobody else holds; closing it ends it."""
    ends = time.monotonic() + _SECONDS_TO_WAIT
    while True:
        try:
            return _locked(path, alone=True)
        except BlockingIOError:
            if time.monotonic() > ends:
                raise StoreError(
                    f"the store {path} is damaged, and another process uses it. Nothing was changed: "
                    "give the command again when that has ended, and the store is mended."
                ) from None
        time.sleep(0.05)


def _locked(path: Path, *, alone: bool) -> BinaryIO:
    opened = path.with_name(f"{path.name}.lock").open("ab")
    try:
        # Elsewhere the system refuses by itself to move a file that is open.
        if os.name == "posix":
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except BaseException:
        opened.close()
        raise
    return opened
