"""The catalog of suites, and the files of a suite: from a local copy, from the cache, or downloaded.

``catalog.toml`` lists the source, licence, readers and checksums of every suite. Other packages add suites
through the entry point ``acceptability.suites``, which names the path of a TOML file of the same form.

Every file is compared with the sha256 of its uncompressed content in the catalog. A local copy may
therefore be gzipped, and is trusted no more than a download.
"""

from __future__ import annotations

import hashlib
import logging
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from acceptability.errors import SuiteError, UnknownName, first_error_line
from acceptability.paths import home_folder, local_data_folder
from acceptability.text.containers import MAX_BYTES, unpack_gzip


@dataclass(frozen=True)
class CatalogEntry:
    """The catalog's entry of one suite.

    Args:
        id: The name of the suite.
        reader: The name of the reader in the registry.
        folder: The folder of its files below ``ACCEPTABILITY_DATA``; empty for a suite inside the package.
        source: The URL, at a fixed commit, to which the files' upstream paths are appended.
        sentences, contrasts: Their numbers, which a test compares with the data.
        unit: The sampling unit, see ``Suite``: a tag, or "row" for single rows; empty if the reader declares it.
        unit_reason: Why it is this unit.
        files: The sha256 of the uncompressed content of each file, by its path in the folder.
        upstream: The upstream path of a file if it differs; ``ARCHIVE.zip!member`` for a file
            inside an archive, and empty for a file that cannot be downloaded.
        quirks: Peculiarities that a user of the data should know.
        catalog_folder: The folder of the catalog, in which the files of a suite without ``folder`` lie.
    """

    id: str
    reader: str
    title: str
    language: str
    citation: str
    licence: str
    folder: str
    source: str
    sentences: int
    contrasts: int
    files: Mapping[str, str]
    upstream: Mapping[str, str]
    quirks: tuple[str, ...]
    unit: str = ""
    unit_reason: str = ""
    catalog_folder: Path = Path(__file__).parent


@cache
def load_catalog() -> tuple[CatalogEntry, ...]:
    """Return the entries of all suites, those of the package first and then those of plug-ins."""
    # Imported here, see `registry.names`.
    from importlib.metadata import entry_points

    plugin_paths = [Path(point.load()) for point in entry_points(group="acceptability.suites")]
    return (*_load_own_entries(), *(entry for path in plugin_paths for entry in read_entries(path)))


@cache
def _load_own_entries() -> tuple[CatalogEntry, ...]:
    return tuple(read_entries(Path(__file__).with_name("catalog.toml")))


def is_plugin_suite(entry: CatalogEntry) -> bool:
    """Return whether a suite is in the catalog of another package."""
    return all(entry is not own for own in _load_own_entries())


def find_entries(name: str) -> list[CatalogEntry]:
    """Return the entry of exactly this name, or else all entries below it.

    >>> [entry.id for entry in find_entries("npi")]
    ['npi']
    >>> len(find_entries("cola/targeted"))
    5
    """
    exact = [entry for entry in load_catalog() if entry.id == name]
    return exact or [entry for entry in load_catalog() if entry.id.startswith(f"{name}/")]


def require_entries(name: str) -> list[CatalogEntry]:
    """Return the entries of a name; raise an error with a suggestion if there are none."""
    matching_entries = find_entries(name)
    if not matching_entries:
        raise unknown_suite_error(name)
    return matching_entries


def unknown_suite_error(name: str) -> UnknownName:
    """Return the error about a name that no suite has."""
    known = [entry.id for entry in load_catalog()]
    hint = (
        f"`acceptability suites` lists all {len(known)}; "
        "a file of your own ends in .csv, .tsv, .xlsx, .ods, .json, .jsonl, .parquet, .txt, .zip or .tar.gz."
    )
    return UnknownName("suite", name, known, hint=hint)


def read_entries(path: Path) -> list[CatalogEntry]:
    """Return the entries of a TOML file in the format of the catalog."""
    groups = tomllib.loads(path.read_text(encoding="utf-8"))["group"]
    # The files that a package ships with its catalog lie beside that, wherever the package is installed.
    place = {"catalog_folder": path.parent}
    return [_build_entry(group | place, suite) for group in groups for suite in group["suite"]]


def _build_entry(group: Mapping[str, Any], suite: Mapping[str, Any]) -> CatalogEntry:
    """Return the entry of a suite: defaults, overridden by its group's fields, overridden by its own."""
    entry_fields = (
        {"folder": "", "source": "", "upstream": {}, "quirks": [], "files": {}}
        | {key: value for key, value in group.items() if key != "suite"}
        | dict(suite)
    )
    entry_fields["quirks"] = tuple(entry_fields["quirks"])
    return CatalogEntry(**entry_fields)


_log = logging.getLogger(__name__)
# Per read of the connection, not for the whole download, so slow connections are fine.
_TIMEOUT_SECONDS = 60


def read_contents(entry: CatalogEntry) -> dict[str, bytes]:
    """Return the verified content of each file of a suite, by its path; missing files are downloaded."""
    return {path: _read_content(entry, path) for path in entry.files}


def fetch_files(entry: CatalogEntry) -> list[Path]:
    """Download the files of a suite that are not on this machine yet, verify all, and return their locations."""
    locations = locate_files(entry)
    # Files that were there already are verified as well: they may be damaged or edited.
    for path, location in locations.items():
        verify_file(entry, path, location)
    return list(locations.values())


def locate_files(entry: CatalogEntry) -> dict[str, Path]:
    """Return the location of each file of a suite, by its path; missing files are downloaded."""
    return {path: _find_file(entry, path) or _download(entry, path) for path in entry.files}


def verify_file(entry: CatalogEntry, path: str, location: Path) -> None:
    """Raise an error unless a file at a location is that of the catalog."""
    _read_checked(entry, path, location)


def is_available(entry: CatalogEntry) -> bool:
    """Return whether every file of a suite is on this machine."""
    return all(_find_file(entry, path) for path in entry.files)


def verify_files(entry: CatalogEntry) -> dict[str, str]:
    """Return the location of each file of a suite; a missing or altered file is an error."""
    locations = {path: location for path in entry.files if (location := _find_file(entry, path))}
    for path, location in locations.items():
        verify_file(entry, path, location)
    missing = [path for path in entry.files if path not in locations]
    if missing:
        raise SuiteError(
            f"suite {entry.id!r}: {missing[0]!r} is neither in ACCEPTABILITY_DATA nor downloaded. "
            f"Run: acceptability suites fetch {entry.id}"
        )
    return {path: str(location) for path, location in locations.items()}


def _read_content(entry: CatalogEntry, path: str) -> bytes:
    return _read_checked(entry, path, _find_file(entry, path) or _download(entry, path))


def _find_file(entry: CatalogEntry, path: str) -> Path | None:
    """Return the location of a file in the package, in the local copy or in the cache; None if it is missing."""
    if not entry.folder:
        return entry.catalog_folder / path
    local = local_data_folder()
    folders = [local / entry.folder, _cache_folder(entry)] if local else [_cache_folder(entry)]
    # The local copy comes first: whoever names a folder wants those files, even if others were downloaded before.
    candidates = [folder / name for folder in folders for name in (path, f"{path}.gz")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _cache_folder(entry: CatalogEntry) -> Path:
    return home_folder() / "data" / entry.folder


def _read_checked(entry: CatalogEntry, path: str, location: Path) -> bytes:
    """Return the content of a file; raise an error if it is not that of the catalog."""
    try:
        content = location.read_bytes()
        content = unpack_gzip(content, str(location)) if location.suffix == ".gz" else content
    except SuiteError as error:
        raise SuiteError(f"suite {entry.id!r}: {error}") from error
    except OSError as error:
        raise SuiteError(f"suite {entry.id!r}: {location} cannot be read: {error}") from error
    if hashlib.sha256(content).hexdigest() != entry.files[path]:
        raise SuiteError(
            f"suite {entry.id!r}: {location} is not the published file (its sha256 differs from the catalog's). "
            "Restore it, or delete it and run: acceptability suites fetch " + entry.id
        )
    return content


def _download(entry: CatalogEntry, path: str) -> Path:
    """Download one file into the cache, verify it, and return its location."""
    # Imported here, since most runs download nothing and both are slow to import.
    import pooch
    import requests

    upstream = entry.upstream.get(path, path)
    if not upstream:
        raise SuiteError(
            f"suite {entry.id!r}: {path!r} cannot be downloaded (`suites show {entry.id}` says why). "
            f"Put it at {entry.folder}/{path} in a folder and name that folder in ACCEPTABILITY_DATA."
        )
    remote, _, member = upstream.partition("!")
    target = _cache_folder(entry) / path
    address = f"{entry.source}/{remote}"
    _log.info("downloading %s", address)
    try:
        downloaded = pooch.retrieve(
            address,
            # The catalog has checksums of members only; an archive is verified by the member that is taken from it.
            known_hash=None if member else f"sha256:{entry.files[path]}",
            fname=Path(remote).name if member else target.name,
            path=target.parent,
            downloader=pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS, progressbar=False),
        )
        if member:
            target.write_bytes(_read_zip_member(Path(downloaded), member))
    # pooch raises ValueError for a wrong checksum.
    except (requests.RequestException, OSError, ValueError, zipfile.BadZipFile) as error:
        raise SuiteError(
            f"suite {entry.id!r}: could not download {address}: {first_error_line(error)}. Check the connection, "
            "or name a folder with a local copy in ACCEPTABILITY_DATA."
        ) from error
    _read_checked(entry, path, target)
    return target


def _read_zip_member(archive: Path, member: str) -> bytes:
    """Return the content of one file in a zip archive, identified by the end of its path."""
    with zipfile.ZipFile(archive) as opened:
        # Archives made on a Mac contain a shadow copy of every file under this folder.
        archive_files = [entry for entry in opened.infolist() if not entry.filename.startswith("__MACOSX")]
        matching_files = [entry for entry in archive_files if f"/{entry.filename}".endswith(f"/{member}")]
        if len(matching_files) != 1:
            raise ValueError(f"{archive.name} has {len(matching_files)} files named {member!r}; expected one")
        # The size in the archive's directory may be a lie, but then zipfile reads no more than it.
        if matching_files[0].file_size > MAX_BYTES:
            raise ValueError(f"{member!r} in {archive.name} is larger than any suite")
        return opened.read(matching_files[0])
