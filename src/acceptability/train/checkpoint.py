"""A training run that is killed goes on where it stopped: what it has done is written whole or not at all.

A checkpoint is a folder of parts and one ``state.json`` that names them. Each is written under
another name, forced to disk and then renamed; the state comes last, so it never names a part
that is not there. A run may go on from a checkpoint only if recipe and corpus are the same.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import TrainError

Write = Callable[[BinaryIO], object]


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name when it is whole, and not before."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise TrainError(_problem(path, error)) from error
    finally:
        if draft.exists():
            draft.unlink()


@dataclass(frozen=True)
class State:
    """What a checkpoint holds.

    Args:
        step: How far the run was, in the recipe's own count.
        facts: What the recipe wants to remember: numbers and texts.
        parts: The files, by the names that the recipe gave them.
    """

    step: int
    facts: Mapping[str, object]
    parts: Mapping[str, Path]


class Checkpoints:
    """The checkpoint of one run.

    Args:
        about: What must be the same for a run to go on: recipe, corpus, versions that change numbers.
    """

    def __init__(self, folder: Path, about: Mapping[str, object]) -> None:
        self.folder = folder
        self.about = json.loads(json.dumps(about))

    def latest(self) -> State | None:
        """Return the last whole state, or None where nothing was begun."""
        path = self.folder / "state.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise TrainError(
                f"cannot read the checkpoint {path}: {error}. Delete {self.folder} to begin anew."
            ) from error
        if kept["about"] != self.about:
            differing = [name for name in kept["about"] if kept["about"][name] != self.about.get(name)]
            raise TrainError(
                f"{self.folder} holds an unfinished run with another {' and '.join(differing) or 'recipe'}. "
                "Run it to its end with the same options, delete that folder, or choose another --out."
            )
        parts = {name: self.folder / file for name, file in kept["parts"].items()}
        return State(int(kept["step"]), kept["facts"], parts)

    def save(self, step: int, parts: Mapping[str, Write], *, facts: Mapping[str, object] | None = None) -> State:
        """Write a state: new parts stand beside those of before, or take the place of one of the same name."""
        before = self.latest()
        kept = dict(before.parts) if before else {}
        new = {name: self.folder / f"{name}-{step}" for name in parts}
        for name, write in parts.items():
            with atomic(new[name]) as out:
                write(out)
        told = {**(before.facts if before else {}), **(facts or {})}
        files = {name: path.name for name, path in (kept | new).items()}
        with atomic(self.folder / "state.json") as out:
            out.write(json.dumps({"about": self.about, "step": step, "facts": told, "parts": files}).encode())
        for name in kept.keys() & new.keys():
            if kept[name] != new[name]:
                kept[name].unlink(missing_ok=True)
        return State(step, told, kept | new)

    def clear(self) -> None:
        """Remove the checkpoint: the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)


def array(values: NDArray[np.generic]) -> Write:
    """Return what writes an array, for ``np.load``."""

    def write(out: BinaryIO) -> None:
        # Not np.save: it does not say why when a disk is full.
        whole = np.ascontiguousarray(values)
        np.lib.format.write_array_header_1_0(out, np.lib.format.header_data_from_array_1_0(whole))
        out.write(whole.reshape(-1).view(np.uint8).data)

    return write


def _sync_folder(folder: Path) -> None:
    """Force a renaming to disk, where the system can."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _problem(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full: {path} could not be written. What was saved before it is whole; "
            "make room and run the same command again, and it goes on from there."
        )
    return f"cannot write {path}: {error.strerror or error}"
