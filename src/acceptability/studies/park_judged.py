"""What a user's models make of the three suites of Park, Park and Song (2021), one row a model and contrast.

As in the paper a pair is left out if a masked word is not in the model's vocabulary, unless it was made up on purpose
("sleeped"). A target of several words counts: they are masked together and their log-probabilities added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acceptability.contrasts import TargetContrasts, target_contrasts
from acceptability.measures.contrast import Directionality, Repulsion
from acceptability.protocols import Engine
from acceptability.scoring import Progress, tokens
from acceptability.studies.park_suites import Part
from acceptability.studies.park_types import types_of_examples
from acceptability.suites.targets import REGION, Exclusion, pieces
from acceptability.types import Contrast, TokenScores

_SPLIT = "a word of the target is several tokens"


@dataclass(frozen=True)
class Judged:
    """A contrast as a model sees it.

    Args:
        part: The suite: "I", "II" or "III".
        row: Its row of Table 1.
        kind: The kind of suite I, or the error type of suite III; None where it has none.
        is_correct: Whether the worse sentence has the more surprising target.
        repulsion: In percentage points, as the paper's tests have it; None where both targets are certain.
    """

    model: str
    part: str
    row: str
    kind: str | None
    is_correct: bool
    repulsion: float | None


@dataclass(frozen=True, eq=False)
class Side:
    """All that the models say when insertions and deletions hide the word on one side."""

    name: str
    models: tuple[str, ...]
    parts: tuple[Part, ...]
    found: Mapping[tuple[str, str], TargetContrasts]
    rows: tuple[Judged, ...]

    def of(self, **wanted: object) -> list[Judged]:
        """Return the rows with these values: ``of(part="I", model="mini-masked")``."""
        return [each for each in self.rows if all(getattr(each, name) == value for name, value in wanted.items())]

    @property
    def source(self) -> str:
        """Where its numbers are from."""
        return f"re-scored with {', '.join(self.models)}"


def ask(
    parts: Sequence[Part], models: Sequence[str], side: str, engine: str | Engine, progress: Progress | None
) -> Side:
    """Ask every model about every suite."""
    found, rows = {}, []
    for model in models:
        for part in parts:
            said = _of_known_words(
                target_contrasts(part.pairs, model, side=side, multi_token=True, engine=engine, progress=progress),
                model,
                engine,
            )
            found[model, part.name] = said
            rows += _rows(model, part, said)
    return Side(side, tuple(models), tuple(parts), found, tuple(rows))


def _of_known_words(found: TargetContrasts, model: str, engine: str | Engine) -> TargetContrasts:
    """Return the contrasts whose targets have as many tokens as words and marks; made-up words may have more."""
    suite = found.suite
    said = {sentence.id: each for sentence, each in tokens(suite, model, region=REGION, engine=engine)}

    def is_split(name: str) -> bool:
        text = suite.by_id[name].text[slice(*suite.by_id[name].regions[REGION])]
        return isinstance(each := said[name], TokenScores) and len(each.tokens) > len(pieces(text))

    split = {
        each.id: each
        for each in suite.contrasts
        if not each.tags.get("nonword") and (is_split(each.better) or is_split(each.worse))
    }
    kept = tuple(each for each in suite.contrasts if each.id not in split)
    left_out = tuple(Exclusion(_SPLIT, each.tags["contrast"]) for each in split.values())
    return TargetContrasts(replace(suite, contrasts=kept), found.scores, (*found.exclusions, *left_out))


def single_tokens(found: TargetContrasts) -> TargetContrasts:
    """Return the contrasts whose targets are one token each, as ``acceptability contrasts`` has them."""
    kept = tuple(each for each in found.suite.contrasts if each.tags["tokens"] == "1")
    return replace(found, suite=replace(found.suite, contrasts=kept))


def _rows(model: str, part: Part, said: TargetContrasts) -> list[Judged]:
    correct = Directionality().units(said.suite, said.scores)
    apart = Repulsion().units(said.suite, said.scores)
    is_correct = dict(zip(correct.ids, correct["correct"] > 0, strict=True))
    repulsions = dict(zip(apart.ids, (100 * apart["repulsion"]).tolist(), strict=True))
    return [
        Judged(
            model,
            part.name,
            part.row_of(each.tags.get("book") if part.name == "II" else None),
            kind_of(part.name, each),
            bool(is_correct[each.id]),
            repulsions.get(each.id),
        )
        for each in said.suite.contrasts
    ]


def kind_of(part: str, each: Contrast) -> str | None:
    """Return the kind of a contrast of suite I, the error type of one of suite III."""
    return each.tags.get("kind") if part == "I" else types_of_examples().get(each.tags.get("type", ""))


def accuracy(rows: Sequence[Judged]) -> float:
    """Return the share of rows that are correct."""
    return float(np.mean([each.is_correct for each in rows]))


def repulsions(rows: Iterable[Judged]) -> list[float]:
    """Return the repulsions, in percentage points, of the rows that have one."""
    return [each.repulsion for each in rows if each.repulsion is not None]


def by(rows: Iterable[Judged], key: Callable[[Judged], str | None]) -> dict[str, list[Judged]]:
    """Return the rows in groups, in the order in which they first come; rows of no group are left out."""
    groups: dict[str, list[Judged]] = {}
    for each in rows:
        if (name := key(each)) is not None:
            groups.setdefault(name, []).append(each)
    return groups
