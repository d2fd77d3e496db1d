"""Folders on disk, set by two environment variables, and what a stranger's file may open; there is no settings file.

``ACCEPTABILITY_HOME`` holds the store, the runs and downloaded data (default: the
user's data folder). ``ACCEPTABILITY_DATA`` is a folder with local copies of data sets.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from platformdirs import user_data_path

from acceptability.errors import SpecError, StoreError

HUB = "hub"
"""What allows data sets and models on the Hugging Face Hub."""

_ALLOW_FORMS = "hub, remote:HOST, plugin:NAME, or the path of a file or folder that exists"


def home_folder() -> Path:
    """Return the folder of the store, the runs and the downloaded data."""
    # An empty variable counts as unset: Path("") would be the current directory.
    named_folder = os.environ.get("ACCEPTABILITY_HOME")
    folder = Path(named_folder) if named_folder else user_data_path("acceptability", appauthor=False)
    try:
        # Some init systems and containers start processes without HOME, and then "~" cannot be expanded.
        return folder.expanduser()
    except RuntimeError as error:
        raise StoreError(f"there is no home folder: {folder}. Name one in ACCEPTABILITY_HOME.") from error


def local_data_folder() -> Path | None:
    """Return the folder with local copies of data sets, or None if ACCEPTABILITY_DATA is not set."""
    named_folder = os.environ.get("ACCEPTABILITY_DATA")
    return Path(named_folder).expanduser() if named_folder else None


@dataclass(frozen=True)
class TrustBoundary:
    """What a file that may come from a stranger can open: its own folder, and what the user allows.

    Symbolic links are resolved before anything is compared. That the file itself lies in its folder is checked first.

    Args:
        file: The file.
        allow: What the user allows besides: ``hub``, ``remote:HOST``, ``plugin:NAME``, or the path of a file or folder.
    """

    file: Path
    allow: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check what is allowed, and then the file."""
        if isinstance(self.allow, str):
            raise SpecError(f"allow must be a list of texts, such as [{self.allow!r}]")
        for what in self.allow:
            is_name = what == HUB or what.startswith(("remote:", "plugin:"))
            # A slip of the pen would otherwise count as a path that nothing lies under.
            if not is_name and not (what and _resolve_path(what).exists()):
                raise SpecError(f"--allow {shlex.quote(what)}: expected {_ALLOW_FORMS}")
        self.check_path(str(self.file))

    @cached_property
    def folder(self) -> Path:
        """The folder of the file."""
        return _resolve_path(str(self.file.parent))

    @cached_property
    def _allowed_paths(self) -> tuple[Path, ...]:
        names = (what for what in self.allow if what != HUB and not what.startswith(("remote:", "plugin:")))
        return tuple(map(_resolve_path, names))

    def require(self, subject: str, *names: str) -> None:
        """Raise an error unless the user allows something.

        Args:
            subject: What the file asks for, for the error.
            names: What allows it, of which one is enough; the error suggests the first.
        """
        if not any(name in self.allow for name in names):
            raise SpecError(
                f"{self.file}: {subject} is outside the folder of this file, which may come from a stranger. "
                f"If you trust it, add --allow {shlex.quote(names[0])} (in Python, allow=[{names[0]!r}])."
            )

    def find_path(self, name: str) -> str | None:
        """Return the path that a name in the file stands for, beside the file or else as it is; None without a file."""
        beside = self._join(name)
        forms = [Path(name), *(Path(name[:index]) for index, letter in enumerate(name) if letter == "@" and index)]
        if any(os.path.lexists(_expand_user(Path(self._join(str(form))))) for form in forms):
            return beside
        return name if any(os.path.lexists(_expand_user(form)) for form in forms) else None

    def confine_path(self, name: str) -> str:
        """Return the path that a name in the file stands for; raise an error if it leads to what is not allowed."""
        path = self.find_path(name) or self._join(name)
        self.check_path(path)
        return path

    def _join(self, name: str) -> str:
        # Whoever opens it replaces a "~" by the home folder.
        return name if name.startswith("~") else str(self.file.parent / name)

    def check_path(self, name: str) -> None:
        """Raise an error for a path, or a link in a folder, that leads out of the folder to what is not allowed."""
        pending, checked = list_path_forms(name), set()
        while pending:
            path = _resolve_path(str(pending.pop()))
            # What the user allows is the user's own, and may contain links to elsewhere.
            if path in checked or any(path.is_relative_to(allowed) for allowed in self._allowed_paths):
                continue
            checked.add(path)
            if not path.is_relative_to(self.folder):
                self.require(name if name == str(path) else f"{name} ({path})", str(path))
            # A named pipe, which an archive can contain, would let the program wait for ever.
            if _is_special(path):
                raise SpecError(f"{self.file}: {path} is neither a file nor a folder")
            for parent, folders, files in os.walk(path):
                entries = (Path(parent, entry) for entry in (*folders, *files))
                pending += [entry for entry in entries if entry.is_symlink() or _is_special(entry)]


def _is_special(path: Path) -> bool:
    """Return whether a path leads to something that is neither a file nor a folder, such as a named pipe."""
    try:
        mode = path.stat().st_mode
    # Whoever opens it reports what is not there, or must not be read.
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def list_path_forms(name: str) -> list[Path]:
    """Return a path, and the paths before the ``@HASH`` of a signature that are opened if there is no such file."""
    forms = [Path(name)]
    while "@" in name and not _resolve_path(name).exists():
        name = name.rpartition("@")[0]
        if os.path.lexists(_expand_user(Path(name))):
            forms.append(Path(name))
    return forms


def _resolve_path(name: str) -> Path:
    try:
        return _expand_user(Path(name)).resolve()
    # A loop of links, a NUL byte, or a name that is too long.
    except (OSError, RuntimeError, ValueError) as error:
        raise SpecError(f"cannot find out where the path {name!r} leads: {error}") from error


def _expand_user(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise SpecError(f"cannot find out where the path {str(path)!r} leads: {error}") from error
