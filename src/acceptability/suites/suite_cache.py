"""Parsed suites on disk: columns in a file that is mapped into memory, so that a suite is parsed and hashed once.

A file begins with a line that names the format and says how long the header is and what its checksum; the header, in
JSON, describes the arrays that follow. It is used only if its key is the expected one and both checksums are right; any
other file is replaced. The key depends on the content that was parsed and on the code that parses it. A file is written
under another name and then renamed, so that other processes see all of it or nothing.

Beside it, ``NAME.files.json`` remembers size, time of modification and inode of every file that was hashed, so that
only a file that may have changed is hashed again.

Nothing here is needed: where it cannot be written, suites are read from their files each time, and the log says so.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mmap
import os
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from acceptability.paths import home_folder
from acceptability.suites.columns import Column, SuiteTable, build_table
from acceptability.types import Suite

_log = logging.getLogger(__name__)

# The number is that of the layout; what the readers and the hash do is in the key, as the hash of their code.
_MAGIC = b"acceptability suite 1\n"
_ALIGNMENT = 64
# What a file of this format must hold before the header: the magic line, and two numbers of eight bytes.
_START = len(_MAGIC) + 16

# A file that was changed twice within the resolution of its time stamps may look unchanged. FAT has two seconds.
_RACY_NANOSECONDS = 2_000_000_000

# Tables of users come and go; the oldest give way. Suites of the catalog stay, like the downloads.
_MAX_TABLE_BYTES = 1 << 30


@dataclass(frozen=True)
class FileState:
    """What tells whether a file may have changed since it was hashed.

    Args:
        looked_at: The time at which this was found out, in nanoseconds.
    """

    size: int
    modified: int
    inode: int
    looked_at: int

    @classmethod
    def of(cls, path: Path) -> FileState | None:
        """Return the state of a file; None if there is none."""
        now = time.time_ns()
        try:
            status = path.stat()
        # A NUL in the name raises a ValueError; the reader refuses such a name with an error of ours.
        except (OSError, ValueError):
            return None
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, now)

    def is_unchanged_since(self, earlier: FileState) -> bool:
        """Tell whether the file is certainly the same as in an earlier state."""
        same = (self.size, self.modified, self.inode) == (earlier.size, earlier.modified, earlier.inode)
        return same and earlier.modified < earlier.looked_at - _RACY_NANOSECONDS


@dataclass(frozen=True)
class ParsedSuite:
    """A suite, and the remarks on how it was read, which are repeated when it is read from the cache."""

    suite: Suite
    remarks: tuple[str, ...] = ()


class SuiteCache:
    """The place of one parsed suite on disk."""

    def __init__(self, folder: str, name: str) -> None:
        """Name the place.

        Args:
            folder: ``catalog`` or ``tables``.
            name: The name of the suite, or whatever identifies the table.
        """
        self._folder = home_folder() / "parsed" / folder
        self._path = self._folder / f"{name.replace('/', '__')}.suite"
        self._memory_path = self._path.with_suffix(".files.json")

    def is_file(self) -> bool:
        """Return whether a parsed suite is there, under whatever key."""
        return self._path.is_file()

    def open(self, key: str) -> ParsedSuite | None:
        """Return the suite that was kept under a key; None if there is none, or it is damaged."""
        try:
            with self._path.open("rb") as opened:
                if not os.fstat(opened.fileno()).st_size:
                    raise _DamagedError("it is empty")
                return _parse_file(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ), key)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("the parsed suite %s cannot be read (%s); the data files are read", self._path, error.strerror)
        except _DamagedError as error:
            _log.warning("the parsed suite %s is damaged: %s. It is built again.", self._path, error)
        return None

    def write(self, key: str, suite: Suite, remarks: tuple[str, ...] = ()) -> ParsedSuite:
        """Keep a suite under a key, and return it as it was kept; if that cannot be done, the log says so.

        Args:
            remarks: What the log says about the suite whenever it is read.
        """
        table = build_table(suite)
        described = {"key": key, "name": suite.name, "unit": suite.unit, "remarks": remarks}
        described |= {"hash": table.hash, "derived_tags": table.derived_tags}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _replace_file(self._path, _list_parts(described, table.arrays))
            self._remove_oldest()
        except OSError as error:
            reason = error.strerror or error
            _log.warning("cannot keep the parsed suite at %s (%s); its files are read each time", self._path, reason)
            return ParsedSuite(suite, remarks)
        # From the file, the columns take no memory of the process that others need.
        return self.open(key) or ParsedSuite(suite, remarks)

    def find_sha256(self, location: Path) -> str | None:
        """Return the remembered hash of a file; None if it is unknown or may have changed."""
        remembered = self._memory.get(str(location.absolute()))
        state = FileState.of(location)
        if not remembered or not state:
            return None
        sha256, *earlier = remembered
        return str(sha256) if state.is_unchanged_since(FileState(*earlier)) else None

    def remember(self, hashes: Mapping[Path, str], states: Mapping[Path, FileState | None]) -> None:
        """Remember the hashes of files, with their states from before they were hashed."""
        rows = {
            str(location.absolute()): [sha256, state.size, state.modified, state.inode, state.looked_at]
            for location, sha256 in hashes.items()
            if (state := states.get(location))
        }
        # A place that cannot be written was named when the suite was written.
        with suppress(OSError):
            _replace_file(self._memory_path, [json.dumps(rows).encode()])

    @property
    def _memory(self) -> dict[str, list[Any]]:
        if not hasattr(self, "_rows"):
            self._rows: dict[str, list[Any]] = {}
            with suppress(OSError, ValueError):
                rows = json.loads(self._memory_path.read_bytes())
                # Whatever it is that another program wrote there: a file not remembered is hashed again.
                valid = rows.items() if isinstance(rows, dict) else ()
                self._rows = {name: row for name, row in valid if _is_memory_row(row)}
        return self._rows

    def _remove_oldest(self) -> None:
        if self._folder.name != "tables":
            return
        # Another process may do the same at the same time.
        with suppress(FileNotFoundError):
            files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in self._folder.iterdir())
            total = sum(size for _, size, _ in files)
            for _, size, path in files:
                if total > _MAX_TABLE_BYTES and path != self._path:
                    path.unlink()
                    total -= size


class _DamagedError(Exception):
    """A file that is not what was written."""


def _is_memory_row(row: object) -> bool:
    return isinstance(row, list) and len(row) == 5 and all(isinstance(number, int) for number in row[1:])


def _list_parts(described: Mapping[str, object], arrays: Mapping[str, Column]) -> list[bytes | memoryview]:
    """Return what a file consists of."""
    directory, body, size, checksum = {}, list[bytes | memoryview](), 0, 0
    for name, array in arrays.items():
        directory[name] = [array.dtype.str, len(array), size]
        content = np.ascontiguousarray(array).data.cast("B") if len(array) else memoryview(b"")
        padding = bytes(-len(content) % _ALIGNMENT)
        for part in (content, padding):
            checksum = zlib.crc32(part, checksum)
            body.append(part)
        size += len(content) + len(padding)
    header = json.dumps({**described, "arrays": directory, "size": size, "checksum": checksum}).encode()
    # The body begins at a multiple of the alignment, as arrays have to.
    header += b" " * (-(_START + len(header)) % _ALIGNMENT)
    numbers = len(header).to_bytes(8, "little") + zlib.crc32(header).to_bytes(8, "little")
    return [_MAGIC, numbers, header, *body]


def _parse_file(content: mmap.mmap, key: str) -> ParsedSuite | None:
    """Return the suite in a file; None if its key is another one, and an error if it is not whole."""
    if content[: len(_MAGIC)] != _MAGIC:
        # Another version of the package, or a file of another program.
        if content[:14] == _MAGIC[:14]:
            return None
        raise _DamagedError("it does not begin as it should")
    numbers = content[len(_MAGIC) : _START]
    start = _START + int.from_bytes(numbers[:8], "little")
    header = content[_START:start]
    if len(numbers) < 16 or zlib.crc32(header) != int.from_bytes(numbers[8:], "little"):
        raise _DamagedError("its header has another checksum")
    described = json.loads(header)
    if described["key"] != key:
        return None
    if len(content) != start + described["size"]:
        raise _DamagedError(f"it has {len(content):,} bytes instead of {start + described['size']:,}")
    with memoryview(content) as whole, whole[start:] as body:
        if zlib.crc32(body) != described["checksum"]:
            raise _DamagedError("its checksum is another one")
    arrays = {
        # NumPy does not make an empty array of a part of a file.
        name: np.frombuffer(content, dtype, count, start + offset) if count else np.zeros(0, dtype)
        for name, (dtype, count, offset) in described["arrays"].items()
    }
    table = SuiteTable(arrays, described["hash"], tuple(described["derived_tags"]))
    return ParsedSuite(table.open_suite(described["name"], described["unit"]), tuple(described["remarks"]))


def _replace_file(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file at once: whoever reads it at the same time sees all of the old one or all of the new one."""
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", suffix=".part", delete=False) as out:
        try:
            out.writelines(parts)
            out.close()
            Path(out.name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(out.name).unlink()
            raise


def make_name(*parts: object) -> str:
    """Return the name of the place of a table.

    >>> make_name("mine.csv") == make_name("mine.csv") != make_name("yours.csv")
    True
    """
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def make_key(*parts: object) -> str:
    """Return a key for what was parsed, which changes with the code that parses."""
    return hashlib.sha256(json.dumps([_hash_code(), *parts]).encode()).hexdigest()


@cache
def _hash_code() -> str:
    # Every change of a reader counts, so that nobody has to think of raising a number.
    package = Path(__file__).parents[1]
    paths = [package / "types.py", package / "specs.py", *(package / "text").glob("*.py")]
    paths += (package / "suites").rglob("*.py")
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def hash_content(content: bytes) -> str:
    """Return the sha256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()
