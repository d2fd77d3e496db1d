"""What lies beside a model's weights: its own unigrams, and what it was trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptability.errors import ModelError
from acceptability.spelling import read_located, write
from acceptability.train.recipe import FILE

WORDFREQ = "slor(unigrams='wordfreq:en')"
_UNIGRAMS = "unigrams.tsv"


@dataclass(frozen=True)
class Told:
    """What the ``recipe.json`` of a model that was trained here tells.

    Args:
        kind: The recipe, such as rnn.
        corpus: The sha256 of the text that it was trained on.
        words: How many words the text has, as spaces separate them.
    """

    kind: str
    files: tuple[str, ...]
    words: int
    corpus: str
    options: Mapping[str, Any]


def slor_of(model: str) -> tuple[str, str]:
    """Return the SLOR of a model, against its own unigrams where it has some, and whose unigrams these are."""
    folder = _folder(model)
    if folder is None or not (folder / _UNIGRAMS).is_file():
        return WORDFREQ, "unigrams of wordfreq, where the paper counts those of its training corpus"
    own = f"the model's own unigrams, {_UNIGRAMS} in its folder: those of its training corpus, add-one, as in the paper"
    return write("slor", {"unigrams": str(folder / _UNIGRAMS)}), own


def told_of(model: str) -> Told | None:
    """Return what the ``recipe.json`` in a model's folder tells; None where there is none."""
    folder = _folder(model)
    if folder is None or not (folder / FILE).is_file():
        return None
    told = _read(folder / FILE)
    try:
        files, options = tuple(map(str, told["files"])), dict(told["recipe"])
        return Told(str(told["kind"]), files, int(told["words"]), str(told["corpus"]), options)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{folder / FILE} does not tell kind, files, words, corpus and recipe, as ours do: {error}"
        ) from None


def trained_on(model: str) -> str:
    """Return what a model was trained on, as the ``recipe.json`` in its folder tells; nothing where there is none."""
    told = told_of(model)
    if told is None:
        return ""
    names = ", ".join(told.files[:3]) + (f" and {len(told.files) - 3} more" if len(told.files) > 3 else "")
    case = {True: ", in lower case", False: ", in upper and lower case"}.get(told.options.get("lower", ""), "")
    return f"trained on {told.words:,} words of {names} (sha256 {told.corpus[:12]}){case}"


def _folder(model: str) -> Path | None:
    """Return the folder that a model lies in; None where it is a file, or has a name alone."""
    place = read_located(model)[1]
    bare = place.rpartition("@")[0]
    return next((Path(each) for each in (place, bare) if each and Path(each).is_dir()), None)


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {file}: {error}") from error
    return told if isinstance(told, dict) else {}
