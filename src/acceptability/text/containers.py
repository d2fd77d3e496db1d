"""Files that hold files: folders, .zip and .tar archives, and files compressed by gzip.

Nothing is unpacked to the disk, so that no name in an archive can lead anywhere; names that try are an error all the
same. What a hundred bytes can expand to is bounded.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from acceptability.errors import SuiteError, first_error_line
from acceptability.text.io import read_content

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")

# More than any suite has, and less than fills the memory.
MAX_BYTES = 1 << 30
_MAX_FILES = 20_000


def is_archive(name: str) -> bool:
    """Return whether a name is that of an archive, by its ending."""
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def drop_gzip_suffix(name: str) -> str:
    """Return the name that a file has once it is decompressed.

    >>> drop_gzip_suffix("mine.csv.gz"), drop_gzip_suffix("mine.tar.gz")
    ('mine.csv', 'mine.tar.gz')
    """
    return name[:-3] if name.lower().endswith(".gz") and not is_archive(name) else name


def read_unpacked(path: Path) -> bytes:
    """Return the content of a file, decompressed if its name ends in .gz."""
    content = read_content(path)
    return unpack_gzip(content, str(path)) if drop_gzip_suffix(path.name) != path.name else content


def unpack_gzip(content: bytes, where: str) -> bytes:
    """Return what a file compressed by gzip holds; an excessive one is an error before it fills the memory."""
    try:
        with gzip.open(io.BytesIO(content)) as opened:
            unpacked = opened.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise SuiteError(f"{where} cannot be read: {error}") from error
    if len(unpacked) > MAX_BYTES:
        raise SuiteError(f"{where} expands to more than {MAX_BYTES:,} bytes, which no suite has")
    return unpacked


def list_folder(folder: Path) -> list[Path]:
    """Return the files of a folder and of the folders in it, in alphabetical order, without hidden ones."""
    try:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
    except OSError as error:
        raise SuiteError(f"cannot read the folder {folder}: {error.strerror}") from error
    kept = [path for path in files if not _is_hidden(path.relative_to(folder).as_posix())]
    if len(kept) > _MAX_FILES:
        raise SuiteError(f"{folder} has {len(kept):,} files; at most {_MAX_FILES:,} are read")
    return kept


def read_archive(content: bytes, where: str) -> dict[str, bytes]:
    """Return the files in an archive by their names, in alphabetical order, without hidden ones.

    Args:
        content: The archive.
        where: Its name, whose ending says what format it has.
    """
    read = _iter_zip if where.lower().endswith(".zip") else _iter_tar
    files: dict[str, bytes] = {}
    size = 0
    try:
        for name, part in read(content):
            size += len(part)
            if size > MAX_BYTES or len(files) >= _MAX_FILES:
                raise ValueError(f"it expands to more than {MAX_BYTES:,} bytes or {_MAX_FILES:,} files")
            if name in files:
                raise ValueError(f"it has two files named {name!r}")
            files[name] = part
    # zipfile raises RuntimeError for a password, and NotImplementedError for an unknown compression.
    except (
        tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError
    ) as error:  # fmt: skip
        raise SuiteError(f"{where} cannot be read as an archive: {first_error_line(error)}") from error
    return dict(sorted(files.items()))


def _iter_zip(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        left = MAX_BYTES
        for member in archive.infolist():
            name = _check_name(member.filename)
            if member.is_dir() or _is_hidden(name):
                continue
            # The size in the archive's directory may be a lie, but then zipfile reads no more than it.
            left -= member.file_size
            if left < 0:
                raise ValueError(f"it expands to more than {MAX_BYTES:,} bytes")
            yield name, archive.read(member)


def _iter_tar(content: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        left = MAX_BYTES
        for member in archive:
            name = _check_name(member.name)
            # Links lead out of the archive, and devices are no files.
            if member.issym() or member.islnk() or member.isdev():
                raise ValueError(f"{name!r} in it is a link or a device, which is not followed")
            # Headers cost a decompression too: a member is counted whether or not it is read.
            left -= max(member.size, 512)
            if left < 0:
                raise ValueError(f"it expands to more than {MAX_BYTES:,} bytes")
            opened = archive.extractfile(member) if member.isfile() and not _is_hidden(name) else None
            if opened is not None:
                yield name, opened.read()


def _check_name(name: str) -> str:
    """Return the name of a file in an archive; raise an error for one that leads out of it."""
    posix = PurePosixPath(name.replace("\\", "/"))
    if posix.is_absolute() or ".." in posix.parts or (posix.parts and ":" in posix.parts[0]):
        raise ValueError(f"the name {name!r} in it leads out of the archive")
    return posix.as_posix()


def _is_hidden(name: str) -> bool:
    # Archives made on a Mac contain a shadow copy of every file under __MACOSX.
    parts = PurePosixPath(name).parts
    return any(part.startswith(".") for part in parts) or "__MACOSX" in parts


def strip_common_folder(names: Iterable[str]) -> dict[str, str]:
    """Return what distinguishes files from each other, by their names: these without the folder that all are in.

    >>> strip_common_folder(["ZhoBLiMP/BA_deletion.jsonl", "ZhoBLiMP/passive.jsonl"])
    {'ZhoBLiMP/BA_deletion.jsonl': 'BA_deletion.jsonl', 'ZhoBLiMP/passive.jsonl': 'passive.jsonl'}
    """
    all_parts = {name: PurePosixPath(name).parts for name in names}
    parents = [parts[:-1] for parts in all_parts.values()]
    shared = 0
    while parents and all(len(parts) > shared and parts[shared] == parents[0][shared] for parts in parents):
        shared += 1
    return {name: "/".join(parts[shared:]) for name, parts in all_parts.items()}
