"""Licensing of reflexive pronouns (Hu, Chen and Levy 2020): five experiments, three pronouns.

A set holds one item's sentences in three classes: baseline, distractor, ungrammatical.
The region ``target`` is the pronoun. Ids: ``EXPERIMENT/PRONOUN/ROW``.

Traps: class and label follow ``mismatch_position``, since ``grammatical`` contradicts it
(and the sentences) on 1,120 rows of exp1a themselves; the published value stays as the
tag ``grammatical``. Published accuracies of exp1a themselves used the wrong column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from acceptability.suites.catalog import Entry
from acceptability.text import dict_rows
from acceptability.types import Sentence, Suite

_CLASSES = {
    "none": "baseline",
    "rc_subj": "distractor",
    "nonlocal_subj": "distractor",
    "distractor": "distractor",
    "matrix_subj": "ungrammatical",
    "local_subj": "ungrammatical",
    "head": "ungrammatical",
}


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the stimuli of all experiments, in the order of the published surprisals."""
    sentences = (each for path, content in files.items() for each in _stimuli(entry, path, content))
    return Suite(entry.id, tuple(sentences))


def _stimuli(entry: Entry, path: str, content: bytes) -> Iterator[Sentence]:
    place = PurePosixPath(path)
    experiment, pronoun = place.parent.name, place.stem
    for number, (_, row) in enumerate(dict_rows(content, f"{entry.folder}/{path}"), start=1):
        tags = {
            "experiment": experiment,
            "pronoun": pronoun,
            "item": row["item"],
            "set": f"{experiment}/{pronoun}/{row['item']}",
            "class": _CLASSES[row["mismatch_position"]],
            "mismatch_position": row["mismatch_position"],
            "mismatch_feature": row["mismatch_feature"],
            "counterbalance": row["counterbalance"],
            "grammatical": row["grammatical"],
        }
        text = row["sentence_no_eos"]
        yield Sentence(
            f"{experiment}/{pronoun}/{number}",
            text,
            label=int(tags["class"] != "ungrammatical"),
            regions={"target": _whole_word(row["pronoun"], text)},
            tags=tags,
        )


def _whole_word(word: str, text: str) -> tuple[int, int]:
    found = re.search(rf"\b{re.escape(word)}\b", text)
    assert found, f"{word!r} is not in {text!r}"
    return found.span()
