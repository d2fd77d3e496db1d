"""A suite written as it is made, one sentence a line: memory does not grow with it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from acceptability.errors import SuiteError
from acceptability.types import Sentence


def check_out(path: Path) -> None:
    """Refuse a file that cannot be written or would not be read as a suite, before any work is done for it."""
    if path.suffix != ".jsonl":
        raise SuiteError(f"{path} must end in .jsonl: made sentences are written one a line, in our own format")
    if not path.parent.is_dir():
        raise SuiteError(f"cannot write {path}: there is no folder {path.parent}")


def write_sentences(made: Iterable[Sentence], path: Path) -> int:
    """Write sentences as a suite and return how many; the file has its name when it is whole, and not before."""
    check_out(path)
    draft = path.with_name(f".{path.name}.draft")
    count = 0
    try:
        with draft.open("w", encoding="utf-8", newline="\n") as out:
            for each in made:
                row = {"id": each.id, "text": each.text, "label": each.label, "tags": dict(each.tags)}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
        draft.replace(path)
    except OSError as error:
        raise SuiteError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return count
