"""Folders of restarts: which classifiers lie in them, and which table or figure each group of them belongs to.

A group is a folder whose sub-folders are classifiers, ``GROUP/KIND-SEED``. Its name tells what it is for: a number is a
size on the learning curve of Figure 3, ``split-NAME`` a split of Table 5; any other name is a row of Table 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from acceptability.errors import ModelError
from acceptability.studies.cola_rows import Taught, is_taught, taught

_SPLIT = "split-"


@dataclass(frozen=True)
class Group:
    """Restarts of one classifier.

    Args:
        name: What the folder and the folders above it are called, from the one that was given on.
        size: How many sentences they learnt from, for the learning curve; else None.
        split: By which split of CoLA they learnt; empty for the one as published.
    """

    name: str
    runs: tuple[Taught, ...]
    size: int | None = None
    split: str = ""

    @property
    def chosen(self) -> int | None:
        """Which run has the highest MCC on held-out sentences, the first of equals; None where one does not tell."""
        held = [each.held for each in self.runs if each.held is not None]
        return held.index(max(held)) if len(held) == len(self.runs) else None

    @property
    def about(self) -> str:
        """What they are, in a few words."""
        return self.runs[0].about


def groups(places: Sequence[str | Path]) -> list[Group]:
    """Return the groups of restarts in folders and the folders below them; a folder without any is an error."""
    return [group for place in places for group in _groups_in(Path(place))]


def _groups_in(root: Path) -> list[Group]:
    root = root.resolve()
    if not root.is_dir():
        raise ModelError(f"there is no folder {root}; --restarts names one whose sub-folders are classifiers")
    found = [group for folder in (root, *_folders(root)) for group in _of_folder(folder, root)]
    if not found:
        raise ModelError(
            f"no folder in {root} holds a classifier: a sub-folder with a recipe.json, as teaching leaves it"
        )
    return found


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders below one, but not those of classifiers."""
    for path in sorted(root.iterdir()):
        if path.is_dir() and not is_taught(path):
            yield path
            yield from _folders(path)


def _of_folder(folder: Path, root: Path) -> Iterator[Group]:
    """Yield the groups of one folder: one for each kind of classifier."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and is_taught(path))
    name = "/".join((root.name, *folder.relative_to(root).parts))
    kinds = [(kind, tuple(runs)) for kind, runs in groupby(_by_kind(inside), key=lambda each: each.kind)]
    for kind, runs in kinds:
        own = f"{name}, {kind}" if len(kinds) > 1 else name
        split = folder.name.removeprefix(_SPLIT) if folder.name.startswith(_SPLIT) else ""
        yield Group(own, runs, int(folder.name) if folder.name.isdigit() else None, split)


def _by_kind(folders: Iterable[Path]) -> list[Taught]:
    return sorted((taught(each) for each in folders), key=lambda one: (one.kind, seed_of(one.folder)))


def seed_of(folder: Path) -> tuple[int, str]:
    """Return the seed in a folder's name, ``KIND-SEED``, so that runs stand in the order of their seeds.

    >>> seed_of(Path("cbow-12"))
    (12, 'cbow-12')
    """
    last = folder.name.rpartition("-")[2]
    return int(last) if last.isdigit() else -1, folder.name
