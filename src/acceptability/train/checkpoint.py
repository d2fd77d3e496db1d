"""Checkpoints, from which a killed training run resumes: every file is written completely or not at all.

A checkpoint is a folder of parts and a ``state.json`` that names them. Each file is written under another name, forced
to disk (fsync) and then renamed; the state comes last, so it never names a part that is missing. A run resumes from a
checkpoint only if its recipe and corpus are the same.
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
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import TrainError

PartWriter = Callable[[BinaryIO], object]


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing, which appears under its name once it is complete, and not before."""
    # In the same folder: a file can be renamed atomically within one file system only.
    draft = path.with_name(f".{path.name}.draft")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as out:
            yield out
            # Without fsync a power failure could leave a file that is renamed already but has no content yet.
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise TrainError(_describe_error(path, error)) from error
    finally:
        # After a failure the space is free again, which matters if the disk is full.
        if draft.exists():
            draft.unlink()


@dataclass(frozen=True)
class CheckpointState:
    """The content of a checkpoint.

    Args:
        step: The progress of the run, in the recipe's own count.
        facts: Numbers and texts that the recipe resumes from.
        parts: The files, by the names that the recipe gave them.
    """

    step: int
    facts: Mapping[str, object]
    parts: Mapping[str, Path]


class CheckpointManager:
    """The checkpoint of one run.

    Args:
        run_identity: What must be equal for a run to resume: recipe, corpus, versions that change numbers.
        renamed_options: The present names of the recipe's options by the former ones, under which an earlier version
            may have saved the checkpoint.
    """

    def __init__(
        self, folder: Path, run_identity: Mapping[str, object], renamed_options: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.renamed_options = renamed_options or {}
        # As it will be read back: JSON turns tuples into lists, which would compare as different.
        self.run_identity = json.loads(json.dumps(run_identity))

    def latest(self) -> CheckpointState | None:
        """Return the last complete state, or None if no run was started."""
        path = self.folder / "state.json"
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise TrainError(
                f"cannot read the checkpoint {path}: {error}. Delete {self.folder} to start again."
            ) from error
        stored_identity = self._rename_options(stored["about"])
        if stored_identity != self.run_identity:
            differing = [name for name in stored_identity if stored_identity[name] != self.run_identity.get(name)]
            raise TrainError(
                f"{self.folder} holds an unfinished run with another {' and '.join(differing) or 'recipe'}. "
                "Finish it with the same options, delete that folder, or choose another --out."
            )
        parts = {name: self.folder / file for name, file in stored["parts"].items()}
        return CheckpointState(int(stored["step"]), stored["facts"], parts)

    def _rename_options(self, stored_identity: dict[str, Any]) -> dict[str, Any]:
        if "recipe" not in stored_identity:
            return stored_identity
        options = {self.renamed_options.get(name, name): value for name, value in stored_identity["recipe"].items()}
        return {**stored_identity, "recipe": options}

    def save(
        self, step: int, parts: Mapping[str, PartWriter], *, facts: Mapping[str, object] | None = None
    ) -> CheckpointState:
        """Write a state with the parts of the previous one; new parts are added, or replace those of the same name."""
        previous = self.latest()
        stored = dict(previous.parts) if previous else {}
        # A new name for every step: until the new state is written, the old one needs its own files.
        new = {name: self.folder / f"{name}-{step}" for name in parts}
        for name, write in parts.items():
            with atomic_write(new[name]) as out:
                write(out)
        all_facts = {**(previous.facts if previous else {}), **(facts or {})}
        files = {name: path.name for name, path in (stored | new).items()}
        with atomic_write(self.folder / "state.json") as out:
            out.write(
                json.dumps({"about": self.run_identity, "step": step, "facts": all_facts, "parts": files}).encode()
            )
        # Only now that no state names them are replaced parts deleted.
        for name in stored.keys() & new.keys():
            if stored[name] != new[name]:
                stored[name].unlink(missing_ok=True)
        return CheckpointState(step, all_facts, stored | new)

    def clear(self) -> None:
        """Delete the checkpoint of a finished run."""
        shutil.rmtree(self.folder, ignore_errors=True)


def make_array_writer(values: NDArray[np.generic]) -> PartWriter:
    """Return a function that writes an array into an open file, as ``np.load`` reads it."""

    def write(out: BinaryIO) -> None:
        # Not np.save, whose error on a full disk does not give the reason.
        contiguous = np.ascontiguousarray(values)
        np.lib.format.write_array_header_1_0(out, np.lib.format.header_data_from_array_1_0(contiguous))
        out.write(contiguous.reshape(-1).view(np.uint8).data)

    return write


def _sync_folder(folder: Path) -> None:
    """Force the renaming of a file in a folder to disk, where the system can."""
    # Windows cannot open a folder.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _describe_error(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full: {path} could not be written. What was saved before is intact; "
            "make room and run the same command again, and it resumes from there."
        )
    return f"cannot write {path}: {error.strerror or error}"
