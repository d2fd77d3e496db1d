"""The hashes of model files: remembered for large files, and computed again when a file may have changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from acceptability.models import files


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that are read to be hashed."""
    paths: list[Path] = []
    read_hash = files._read_hash
    monkeypatch.setattr(files, "_read_hash", lambda path: [paths.append(path), read_hash(path)][1])
    monkeypatch.setattr(files, "_REMEMBERED_BYTES", 10)
    monkeypatch.setattr(files, "_SETTLED_NS", -1_000_000_000_000)
    return paths


def hash_anew(path: Path) -> str:
    """Hash a file as a new process does."""
    files._hash_content.cache_clear()
    return files.hash_file(path)


def expected(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def test_a_large_file_is_hashed_once_for_all_processes(tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"0123456789")
    assert hash_anew(path) == hash_anew(path) == expected(path)
    assert len(reads) == 1


def test_a_small_file_is_not_remembered(tmp_path: Path, reads: list[Path], own_home: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"012345678")
    assert hash_anew(path) == hash_anew(path) == expected(path)
    assert len(reads) == 2
    assert not list(own_home.glob("models/*"))


def test_another_content_is_hashed_again_even_with_the_old_time(tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"0123456789")
    before, status = hash_anew(path), path.stat()
    path.write_bytes(b"9876543210")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert hash_anew(path) == expected(path) != before


def test_another_file_of_the_same_size_and_time_is_hashed_again(tmp_path: Path, reads: list[Path]) -> None:
    path, other = tmp_path / "model.bin", tmp_path / "other.bin"
    path.write_bytes(b"0123456789")
    before, status = hash_anew(path), path.stat()
    other.write_bytes(b"9876543210")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert hash_anew(path) == expected(path) != before


def test_a_file_that_changed_a_moment_ago_is_not_remembered(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_SETTLED_NS", 2_000_000_000)
    path = tmp_path / "model.bin"
    path.write_bytes(b"0123456789")
    assert hash_anew(path) == hash_anew(path) == expected(path)
    assert len(reads) == 2


@pytest.mark.parametrize("damage", ["", "[1]", '"abc"', "null"])
def test_a_damaged_memory_is_read_again(damage: str, tmp_path: Path, reads: list[Path], own_home: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"0123456789")
    hash_anew(path)
    (memory,) = own_home.glob("models/*-hash.json")
    memory.write_text(damage)
    assert hash_anew(path) == expected(path)
