"""Accuracy over sets of three classes of sentences (Hu, Chen and Levy 2020)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError
from acceptability.measures.gathering import check_has_tag, gathered, notes_on, shared_tags
from acceptability.measures.options import check_choice, check_tag_name
from acceptability.measures.pairs import mean
from acceptability.types import Scores, Sentence, Suite, Units

CLASSES = ("baseline", "distractor", "ungrammatical")


@dataclass(frozen=True)
class SetAccuracy:
    """How often the ungrammatical sentences of a set score below its baseline and below its distractor sentences.

    The mean score of each class is taken; a tie fails. A set is one row, and one that lacks a
    class is left out, which a note counts.

    Args:
        sets: The tag that says which set a sentence is in.
        classes: The tag that says its class: baseline, distractor or ungrammatical.
        against: "both", or only "baseline" or "distractor".
        grammatical: A tag that is 1 or 0. Sentences whose class it contradicts (1 on an ungrammatical one,
            0 on another) are left out; with the column of that name the published accuracies come out.
    """

    sets: str = "set"
    classes: str = "class"
    against: str = "both"
    grammatical: str = ""

    needs = "sets"
    mean_of = "correct"

    def __post_init__(self) -> None:
        check_tag_name("SetAccuracy: sets", self.sets)
        check_tag_name("SetAccuracy: classes", self.classes)
        check_choice("SetAccuracy: against", self.against, ("both", "baseline", "distractor"))
        if self.grammatical != "":
            check_tag_name("SetAccuracy: grammatical", self.grammatical)

    @property
    def gathered_by(self) -> str:
        """The tag that makes one row of several sentences."""
        return self.sets

    @property
    def needs_tags(self) -> tuple[str, ...]:
        """The tags without which there is nothing to measure."""
        return tuple(filter(None, (self.sets, self.classes, self.grammatical)))

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a set: how far its ungrammatical mean is below the other two, and whether it is."""
        for tag in self.needs_tags:
            check_has_tag(suite, self, tag)
        left_out: Counter[str] = Counter()
        kept = [each for each in suite.sentences if self._counts(suite, each, left_out)]
        rows, tags = {}, {}
        for name, members in gathered(kept, self.sets).items():
            means = self._means(members, scores)
            if len(means) < len(CLASSES):
                left_out["sets without all three classes"] += 1
                continue
            rows[name] = [means[other] - means["ungrammatical"] for other in ("baseline", "distractor")]
            tags[name] = shared_tags(members)
        gaps = np.array([*rows.values()], dtype=np.float64).reshape(-1, 2)
        decisive = {"both": gaps.min(axis=1), "baseline": gaps[:, 0], "distractor": gaps[:, 1]}[self.against]
        columns = {"below_baseline": gaps[:, 0], "below_distractor": gaps[:, 1]}
        columns["correct"] = (decisive > 0).astype(np.float64)
        return Units(tuple(rows), columns, tuple(tags.values()), notes_on(left_out))

    def value(self, units: Units) -> float:
        """Return the share of sets that are right."""
        return mean(units["correct"])

    def _counts(self, suite: Suite, each: Sentence, left_out: Counter[str]) -> bool:
        found = each.tags.get(self.classes)
        if self.sets not in each.tags or found is None:
            left_out[f"sentences without the tags {self.sets!r} and {self.classes!r}"] += 1
            return False
        if found not in CLASSES:
            raise MeasureError(
                f"suite {suite.name!r}: sentence {each.id!r} has {self.classes}={found!r}; "
                f"expected {', '.join(CLASSES)}"
            )
        if self.grammatical and each.tags.get(self.grammatical) != ("0" if found == "ungrammatical" else "1"):
            left_out[f"sentences whose tag {self.grammatical!r} contradicts their class"] += 1
            return False
        return True

    def _means(self, members: list[Sentence], scores: Scores) -> dict[str, float]:
        given: dict[str, list[float]] = {}
        for each in members:
            given.setdefault(each.tags[self.classes], []).append(scores[each.id])
        # Summed without rounding: the order of sentences must not make or break a tie.
        return {name: math.fsum(values) / len(values) for name, values in given.items()}
