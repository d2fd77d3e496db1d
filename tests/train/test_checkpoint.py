from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from acceptability.errors import TrainError
from acceptability.train.checkpoint import CheckpointManager, atomic_write, make_array_writer


def text(content: str):
    return lambda out: out.write(content.encode())


def test_a_state_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    checkpoints = CheckpointManager(tmp_path / "c", {"recipe": {"order": 3}, "corpus": "abc"})
    assert checkpoints.latest() is None
    numbers = np.arange(6, dtype=np.int32).reshape(2, 3)
    checkpoints.save(1, {"numbers": make_array_writer(numbers), "weights": text("first")}, facts={"loss": 2.5})
    checkpoints.save(2, {"weights": text("second")}, facts={"epoch": 1})
    state = CheckpointManager(tmp_path / "c", {"recipe": {"order": 3}, "corpus": "abc"}).latest()
    assert (state.step, dict(state.facts)) == (2, {"loss": 2.5, "epoch": 1})
    assert np.load(state.parts["numbers"]).tolist() == numbers.tolist()
    assert state.parts["weights"].read_text() == "second"
    # The replaced part is deleted, and there is no draft.
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["numbers-1", "state.json", "weights-2"]
    checkpoints.clear()
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.uint16, np.bool_])
def test_arrays_are_written_as_numpy_reads_them(tmp_path: Path, dtype) -> None:
    for values in (np.arange(12).astype(dtype).reshape(3, 4), np.array([], dtype), np.arange(9).astype(dtype)[::2]):
        with atomic_write(tmp_path / "a.npy") as out:
            make_array_writer(values)(out)
        loaded = np.load(tmp_path / "a.npy")
        assert loaded.dtype == values.dtype
        np.testing.assert_array_equal(loaded, values)


def test_a_run_with_another_corpus_does_not_resume(tmp_path: Path) -> None:
    CheckpointManager(tmp_path, {"recipe": {"order": 3}, "corpus": "abc"}).save(1, {})
    with pytest.raises(TrainError, match="another corpus"):
        CheckpointManager(tmp_path, {"recipe": {"order": 3}, "corpus": "xyz"}).latest()


@pytest.mark.parametrize("fails_at", ["part", "state", "write"])
def test_a_full_disk_is_reported_and_leaves_the_last_checkpoint(tmp_path: Path, monkeypatch, fails_at: str) -> None:
    checkpoints = CheckpointManager(tmp_path, {"corpus": "abc"})
    checkpoints.save(1, {"weights": text("first")})
    synced = []

    def full(*_: object) -> None:
        synced.append(1)
        if fails_at == "part" or len(synced) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def no_room(out) -> None:
        out.write(b"half of")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fails_at != "write":
        monkeypatch.setattr("acceptability.train.checkpoint.os.fsync", full)
    with pytest.raises(TrainError, match="the disk is full: .* make room and run the same command again"):
        checkpoints.save(2, {"weights": no_room if fails_at == "write" else text("second")})
    monkeypatch.undo()
    state = checkpoints.latest()
    assert (state.step, state.parts["weights"].read_text()) == (1, "first")
    assert not list(tmp_path.glob(".*draft"))
    assert checkpoints.save(2, {"weights": text("second")}).parts["weights"].read_text() == "second"


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainError, match="cannot write"):
        CheckpointManager(tmp_path / "file" / "c", {}).save(1, {"a": text("b")})


def test_a_damaged_state(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(TrainError, match="Delete .* to start again"):
        CheckpointManager(tmp_path, {}).latest()
