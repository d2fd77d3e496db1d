"""The catalog of suites, and the files of a suite: from a local copy, from the cache, or downloaded.

``catalog.toml`` lists the source, licence, readers and checksums of every suite. Other packages add suites
through the entry point ``acceptability.suites``, which names the path of a TOML file of the same form.

Every file is compared with the sha256 of its uncompressed content in the catalog. A local copy may
therefore be gzipped, and is trusted no more than a download.

Some suites are data sets of the Hugging Face Hub (``in_tables``), whose files have no hashes here. Their tables are
looked for in the folder of the suite, which may be a clone of the data set, and downloaded with the library
``datasets`` otherwise.
"""

from __future__ import annotations

import hashlib
import json
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
from acceptability.text.io import read_content


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
        hub, config, revision: The name of a data set on the Hub, its configuration and its revision.
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
    hub: str = ""
    config: str = ""
    revision: str = ""
    catalog_folder: Path = Path(__file__).parent

    @property
    def in_tables(self) -> bool:
        """Whether the suite is tables without hashes, as the data sets of the Hub are, and not files with hashes."""
        return self.reader == "hub"

    @property
    def place(self) -> str:
        """Where a copy of the tables lies below ``ACCEPTABILITY_DATA``."""
        return f"{self.folder}/{self.config}" if self.config else self.folder


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


def find_language_entries(language: str) -> list[CatalogEntry]:
    """Return the entries of the suites of a language; an error lists the languages if there is none.

    Args:
        language: A code of BCP 47, such as ``zh``, or of ISO 639-3, such as ``zho``.

    >>> [entry.id for entry in find_language_entries("zh")]
    ['climp', 'sling', 'zhoblimp']
    >>> find_language_entries("deu") == find_language_entries("de")
    True
    """
    wanted = language.strip().lower()
    # The names of the data sets of MultiBLiMP are codes of ISO 639-3, which say what the shorter codes are.
    short = {entry.config: entry.language for entry in load_catalog() if entry.folder == "multiblimp"} | {
        "zho": "zh",
        "jpn": "ja",
    }
    wanted = short.get(wanted, wanted)
    entries = [entry for entry in load_catalog() if entry.language.lower() == wanted]
    if not entries:
        known = sorted({entry.language for entry in load_catalog()})
        raise UnknownName("language of suites", language, known, hint=f"There are suites in: {', '.join(known)}.")
    return entries


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
    if entry.in_tables:
        return {path: read_content(location) for path, location in locate_files(entry).items()}
    return {path: _read_content(entry, path) for path in entry.files}


def fetch_files(entry: CatalogEntry) -> list[Path]:
    """Download the files of a suite that are not on this machine yet, verify all, and return their locations."""
    locations = locate_files(entry)
    # Files that were there already are verified as well: they may be damaged or edited.
    for path, location in locations.items() if not entry.in_tables else ():
        verify_file(entry, path, location)
    return list(locations.values())


def locate_files(entry: CatalogEntry) -> dict[str, Path]:
    """Return the location of each file of a suite, by its path; missing files are downloaded."""
    if entry.in_tables:
        return _find_tables(entry) or {f"{entry.config or 'data'}.jsonl": _download_tables(entry)}
    return {path: _find_file(entry, path) or _download(entry, path) for path in entry.files}


def verify_file(entry: CatalogEntry, path: str, location: Path) -> None:
    """Raise an error unless a file at a location is that of the catalog."""
    _read_checked(entry, path, location)


def is_available(entry: CatalogEntry) -> bool:
    """Return whether every file of a suite is on this machine."""
    if entry.in_tables:
        return bool(_find_tables(entry))
    return all(_find_file(entry, path) for path in entry.files)


def verify_files(entry: CatalogEntry) -> dict[str, str]:
    """Return the location of each file of a suite; a missing or altered file is an error.

    The tables of a data set of the Hub have no hashes: only that they are there is verified.
    """
    if entry.in_tables:
        tables = _find_tables(entry)
        if not tables:
            raise SuiteError(f"suite {entry.id!r}: {_describe_place(entry)}")
        return {path: str(location) for path, location in tables.items()}
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


_TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")


def _find_tables(entry: CatalogEntry) -> dict[str, Path]:
    """Return the tables of a suite in the local copy or in the cache, by their paths; none if there is no copy."""
    local = local_data_folder()
    for folder in (*((local / entry.folder,) if local else ()), _cache_folder(entry)):
        # A clone has a folder for each configuration; what was downloaded here is one file, and COMPS has files.
        tables = [
            path
            for path in sorted(folder.rglob("*"))
            if path.suffix.lower() in _TABLE_SUFFIXES and path.is_file() and _is_of_config(entry, path, folder)
        ]
        if tables:
            return {str(path.relative_to(folder)): path for path in tables}
    return {}


def _is_of_config(entry: CatalogEntry, path: Path, folder: Path) -> bool:
    """Tell whether a table is one of a configuration: by its folder, or by its name, as ``comps_wugs_dist-before``."""
    if not entry.config:
        return True
    relative = path.relative_to(folder)
    if entry.config in relative.parts[:-1]:
        return True
    name = relative.stem.replace("-", "_").removeprefix(f"{entry.folder}_")
    return name == entry.config or (name.startswith(f"{entry.config}_") and _is_longest_config(entry, name))


def _is_longest_config(entry: CatalogEntry, name: str) -> bool:
    """Tell whether no other configuration's name is a longer beginning of a table's."""
    # "wugs_dist_before" is of the configuration "wugs_dist", and not of "wugs".
    others = (other.config for other in load_catalog() if other.folder == entry.folder)
    return not any(len(other) > len(entry.config) and name.startswith(other) for other in others)


def _describe_place(entry: CatalogEntry) -> str:
    """Return where a copy of a data set of the Hub is looked for, and how to get one."""
    local = local_data_folder()
    others = (
        sorted({one.name for one in (local / entry.folder).iterdir()})
        if local and (local / entry.folder).is_dir()
        else []
    )
    has = f" (there are: {', '.join(others[:10])}{', …' if len(others) > 10 else ''})" if others else ""
    fetch = (
        f"Run: acceptability suites fetch {entry.id}"
        if entry.hub
        else f"It cannot be downloaded here: see {entry.source}"
    )
    return f"there are no tables in {entry.place} of ACCEPTABILITY_DATA{has}, and none were downloaded. {fetch}"


def _download_tables(entry: CatalogEntry) -> Path:
    """Download the rows of a data set of the Hub into the cache, and return the file that they are kept in."""
    # Imported here: only these suites need the module, which imports this one's room.
    from acceptability.suites.table_files import load_hub_table

    if not entry.hub:
        raise SuiteError(f"suite {entry.id!r}: {_describe_place(entry)}")
    name = ":".join(filter(None, (entry.hub, entry.config))) + (f"@{entry.revision}" if entry.revision else "")
    try:
        rows = load_hub_table(name)[1].rows
    except SuiteError as error:
        raise SuiteError(
            f"suite {entry.id!r}: {error}. Check the connection; accept the terms at {entry.source} and log in with "
            f"`hf auth login` if there are any; or put a copy at {entry.place} in the folder of ACCEPTABILITY_DATA."
        ) from error
    target = _cache_folder(entry) / f"{entry.config or 'data'}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(dict(row), ensure_ascii=False, default=str) for _, row in rows)
    # Written aside first: a download that is stopped must not leave half a suite, which has no hash to show it.
    unfinished = target.with_suffix(".unfinished")
    unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    unfinished.replace(target)
    return target


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
            # The catalog has checksums of members and of uncompressed content only. Both are compared further down.
            known_hash=None if member or path.endswith(".gz") else f"sha256:{entry.files[path]}",
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
