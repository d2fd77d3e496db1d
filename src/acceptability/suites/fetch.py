"""The files of a suite: found in a local copy, in our cache, or downloaded; always checked.

Every file is compared with the sha256 of its uncompressed content in the catalog, so
a local copy may be gzipped and is trusted no more than a download.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import zipfile
import zlib
from pathlib import Path

from acceptability.errors import SuiteError, reason
from acceptability.home import home, local_data
from acceptability.suites.catalog import Entry

_log = logging.getLogger(__name__)
_MOST_BYTES = 1 << 30
_SECONDS = 60


def contents(entry: Entry) -> dict[str, bytes]:
    """Return the checked content of each file of a suite; what is nowhere is downloaded."""
    return {path: _content(entry, path) for path in entry.files}


def fetch(entry: Entry) -> list[Path]:
    """Download the files of a suite that are not on this machine yet, and return where all are, checked."""
    places = {path: _found(entry, path) or _download(entry, path) for path in entry.files}
    for path, where in places.items():
        _checked(entry, path, where)
    return list(places.values())


def is_here(entry: Entry) -> bool:
    """Tell whether every file of a suite is on this machine."""
    return all(_found(entry, path) for path in entry.files)


def verify(entry: Entry) -> dict[str, str]:
    """Return, for each file, where it was found and that it is right; a wrong one is an error."""
    found = {path: (where, _checked(entry, path, where)) for path in entry.files if (where := _found(entry, path))}
    missing = [path for path in entry.files if path not in found]
    if missing:
        raise SuiteError(
            f"suite {entry.id!r}: {missing[0]!r} is neither in ACCEPTABILITY_DATA nor downloaded. "
            f"Run: acceptability suites fetch {entry.id}"
        )
    return {path: str(where) for path, (where, _) in found.items()}


def _content(entry: Entry, path: str) -> bytes:
    where = _found(entry, path) or _download(entry, path)
    return _checked(entry, path, where)


def _found(entry: Entry, path: str) -> Path | None:
    """Return where a file lies: in the package, in the local copy, or in the cache."""
    if not entry.folder:
        return Path(__file__).parent / path
    local = local_data()
    folders = [local / entry.folder, _cache(entry)] if local else [_cache(entry)]
    places = [folder / name for folder in folders for name in (path, f"{path}.gz")]
    return next((place for place in places if place.is_file()), None)


def _cache(entry: Entry) -> Path:
    return home() / "data" / entry.folder


def _checked(entry: Entry, path: str, where: Path) -> bytes:
    try:
        content = _unpacked(where) if where.suffix == ".gz" else where.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise SuiteError(f"suite {entry.id!r}: {where} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != entry.files[path]:
        raise SuiteError(
            f"suite {entry.id!r}: {where} is not the published file (its sha256 differs from the catalog's). "
            "Restore it, or delete it and run: acceptability suites fetch " + entry.id
        )
    return content


def _unpacked(where: Path) -> bytes:
    """Return what a gzipped file holds; a small file that would fill the memory is refused before it does."""
    with gzip.open(where) as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"it holds more than {_MOST_BYTES:,} bytes, which no suite has")
    return content


def _download(entry: Entry, path: str) -> Path:
    """Download one file into the cache, and return its place once its content is right."""
    import pooch
    import requests

    upstream = entry.upstream.get(path, path)
    if not upstream:
        raise SuiteError(
            f"suite {entry.id!r}: {path!r} cannot be downloaded (`suites show {entry.id}` says why). "
            f"Put it at {entry.folder}/{path} in a folder and name that folder in ACCEPTABILITY_DATA."
        )
    remote, _, member = upstream.partition("!")
    target = _cache(entry) / path
    address = f"{entry.source}/{remote}"
    _log.info("downloading %s", address)
    try:
        got = pooch.retrieve(
            address,
            known_hash=None if member else f"sha256:{entry.files[path]}",
            fname=Path(remote).name if member else target.name,
            path=target.parent,
            downloader=pooch.HTTPDownloader(timeout=_SECONDS, progressbar=False),
        )
        if member:
            target.write_bytes(_member(Path(got), member))
    except (requests.RequestException, OSError, ValueError, zipfile.BadZipFile) as error:
        raise SuiteError(
            f"suite {entry.id!r}: could not download {address}: {reason(error)}. Check the connection, "
            "or name a folder with a local copy in ACCEPTABILITY_DATA."
        ) from error
    _checked(entry, path, target)
    return target


def _member(archive: Path, member: str) -> bytes:
    """Return one file of a zip archive, found by the end of its path; nothing is unpacked to disk."""
    with zipfile.ZipFile(archive) as opened:
        everything = [each for each in opened.infolist() if not each.filename.startswith("__MACOSX")]
        found = [each for each in everything if f"/{each.filename}".endswith(f"/{member}")]
        if len(found) != 1:
            raise ValueError(f"{archive.name} has {len(found)} files named {member!r}; expected one")
        if found[0].file_size > _MOST_BYTES:
            raise ValueError(f"{member!r} in {archive.name} is larger than any suite")
        return opened.read(found[0])
