"""A suite written as it is made, one sentence a line: memory does not grow with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptability.errors import SuiteError
from acceptability.types import Sentence


@dataclass(frozen=True, slots=True)
class Made:
    """A sentence that was made, and the ids of those that it is better than."""

    sentence: Sentence
    better_than: Sequence[str] = ()


def check_out(path: Path, *, force: bool = False) -> None:
    """Refuse a file that cannot be written or would not be read as a suite, before any work is done for it."""
    if path.suffix != ".jsonl":
        raise SuiteError(f"{path} must end in .jsonl: made sentences are written one a line, in our own format")
    if not path.parent.is_dir():
        raise SuiteError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise SuiteError(f"cannot write {path}: it is a folder. Name a file in it.")
    if path.exists() and not force:
        raise SuiteError(f"{path} is there already. Name another file, or write over it with --force.")


def write_sentences(made: Iterable[Sentence | Made], path: Path) -> int:
    """Write sentences as a suite and return how many; the file has its name when it is whole, and not before."""
    check_out(path, force=True)
    draft = path.with_name(f".{path.name}.draft")
    count = 0
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as out:
            for row in _rows(made):
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        draft.replace(path)
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return count


def _rows(made: Iterable[Sentence | Made]) -> Iterator[dict[str, object]]:
    for each in made:
        sentence = each.sentence if isinstance(each, Made) else each
        row: dict[str, object] = {
            "id": sentence.id,
            "text": sentence.text,
            "label": sentence.label,
            "tags": dict(sentence.tags),
        }
        # The reader takes the columns from the rows: what has no contrasts is written as before.
        yield row | {"better_than": list(each.better_than)} if isinstance(each, Made) else row
