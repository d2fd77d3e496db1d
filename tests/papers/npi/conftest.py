"""A small suite of the user's own that has everything the NPI paper's methods need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptability.types import Sentence


def make_paradigm(environment: str, split: str, number: int) -> list[Sentence]:
    """Return the eight sentences that cross licensor, NPI and scope, tagged as a user's file must be."""
    sentences = []
    for code in range(8):
        licensor, npi, scope = (code >> 2) & 1, (code >> 1) & 1, code & 1
        words = ("rarely" if licensor else "often", "ever" if npi else "once")
        text = f"{environment} {split} {number} {' '.join(words if scope else words[::-1])} sang."
        label = int(not npi or (licensor and scope))
        tags = {"environment": environment, "split": split, "set": f"{environment}/{split}/{number}"}
        tags |= {"licensor": str(licensor), "npi": str(npi), "scope": str(scope), "npi_word": "ever"}
        sentences.append(Sentence(f"{tags['set']}/{code}", text, label, tags=tags))
    return sentences


@pytest.fixture
def own_suite(tmp_path: Path) -> str:
    """The path of a user's own suite: two environments, each with training and test sentences."""
    sentences = [
        sentence
        for environment in ("only", "rare")
        for split in ("train", "test")
        for number in range(6)
        for sentence in make_paradigm(environment, split, number)
    ]
    path = tmp_path / "own.jsonl"
    rows = [{"id": s.id, "text": s.text, "label": s.label, "tags": dict(s.tags)} for s in sentences]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)
