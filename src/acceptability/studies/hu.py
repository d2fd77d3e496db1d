"""The published surprisals of Hu, Chen and Levy (2020): how well five models license reflexive pronouns.

A combination is a model, an experiment and a pronoun. Its sets all have the same strings in the same
order, so it is a table: a row a set, a column a string, each string of one of three classes.

Traps: the published accuracies take the ungrammatical strings from the column ``grammatical`` of the stimuli, which
is wrong on 1,120 rows of exp1a themselves; the classes here follow ``mismatch_position``, which is right. Where the
three means tie, as nearly always for the 5-gram, the published accuracies count a set as right once in three, by lot.
Surprisals are in bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import SuiteError
from acceptability.studies.files import published
from acceptability.studies.per_set import Flags
from acceptability.suites import load_suite
from acceptability.text import dict_rows
from acceptability.types import Floats, Sentence, Suite

Key = tuple[str, str, str]
"""Experiment, model and pronoun."""

NEURAL = ("bert", "trans", "jrnn", "grnn")
"""The models whose sets Niu and Penn test; the 5-gram gives most strings of a set the same surprisal."""

ACCURACIES = ("total_acc", "vs_baseline_acc", "vs_distractor_acc")

_PUBLISHED = "hu_reflexive/published"


@dataclass(frozen=True, eq=False)
class Combination:
    """What one model makes of the sets of one experiment and pronoun.

    Args:
        items: What each set is called.
        surprisals: The pronoun's surprisal in bits, a row a set, a column a string.
        classes: The class of each column: baseline, distractor or ungrammatical.
        marked: Which columns the stimuli mark as grammatical, rightly or not.
    """

    model: str
    experiment: str
    pronoun: str
    items: tuple[str, ...]
    surprisals: Floats
    classes: tuple[str, ...]
    marked: Flags

    @property
    def key(self) -> Key:
        """Experiment, model and pronoun."""
        return self.experiment, self.model, self.pronoun

    @property
    def name(self) -> str:
        """The same, as tables show them."""
        return " ".join(self.key)

    @property
    def is_good(self) -> Flags:
        """Which columns are grammatical: baseline and distractor."""
        return self.among("baseline", "distractor")

    @property
    def good(self) -> Floats:
        """The surprisals of the grammatical strings."""
        return self.surprisals[:, self.is_good]

    @property
    def bad(self) -> Floats:
        """The surprisals of the ungrammatical strings."""
        return self.surprisals[:, ~self.is_good]

    def among(self, *classes: str) -> Flags:
        """Tell which columns are of these classes."""
        return np.isin(self.classes, classes)


@dataclass(frozen=True, eq=False)
class Right:
    """In which sets the ungrammatical strings are the most surprising on average, strictly; and where all means tie."""

    total: Flags
    vs_baseline: Flags
    vs_distractor: Flags
    tied: Flags

    def shares(self) -> dict[str, float]:
        """Return the three accuracies under their published names."""
        found = (self.total, self.vs_baseline, self.vs_distractor)
        return {name: float(each.mean()) for name, each in zip(ACCURACIES, found, strict=True)}


def right_by_position(of: Combination) -> Right:
    """Return which sets are right where classes follow ``mismatch_position``."""
    return _right(of.surprisals, of.among("baseline"), of.among("distractor"), of.among("ungrammatical"))


def right_as_marked(of: Combination) -> Right:
    """Return which sets are right where the column ``grammatical`` says what is ungrammatical, as published."""
    return _right(of.surprisals, of.among("baseline"), of.among("distractor"), ~of.marked)


def _right(surprisals: Floats, baseline: Flags, distractor: Flags, bad: Flags) -> Right:
    ours, least, less = (surprisals[:, part].mean(axis=1) for part in (bad, baseline, distractor))
    tied = (ours == least) & (ours == less)
    return Right((ours > least) & (ours > less), ours > least, ours > less, tied)


def combinations() -> list[Combination]:
    """Return every combination of five models that surprisals were published of."""
    stimuli = _stimuli(load_suite("hu_reflexive"))
    return [
        _combination(path, content, stimuli)
        for path, content in published(_PUBLISHED).items()
        if path.startswith("data/surprisal/")
    ]


def accuracies() -> dict[Key, dict[str, str]]:
    """Return the published accuracies, as they stand in the files, by experiment, model and pronoun."""
    return {
        (row["exp"], row["model"], row["pronoun"]): {name: row[name] for name in ACCURACIES}
        for path, content in published(_PUBLISHED).items()
        if path.startswith("data/accuracy/")
        for _, row in dict_rows(content, path)
    }


def _stimuli(suite: Suite) -> dict[tuple[str, str], list[Sentence]]:
    found: dict[tuple[str, str], list[Sentence]] = {}
    for each in suite.sentences:
        found.setdefault((each.tags["experiment"], each.tags["pronoun"]), []).append(each)
    return found


def _combination(path: str, content: bytes, stimuli: Mapping[tuple[str, str], Sequence[Sentence]]) -> Combination:
    model, experiment, file = path.split("/")[2:]
    pronoun = file.partition("_")[0]
    sentences = stimuli[experiment, pronoun]
    surprisals = np.array(list(_surprisals(path, content, pronoun)))
    if len(surprisals) != len(sentences):
        raise SuiteError(f"{path}: {len(surprisals)} surprisals of {pronoun!r}; there are {len(sentences)} sentences")
    order = _by_set(sentences)
    first = [sentences[place] for place in order[0]]
    return Combination(
        model,
        experiment,
        pronoun,
        tuple(sentences[places[0]].tags["item"] for places in order),
        surprisals[np.array(order)],
        tuple(each.tags["class"] for each in first),
        np.array([each.tags["grammatical"] == "1" for each in first]),
    )


def _by_set(sentences: Sequence[Sentence]) -> list[list[int]]:
    """Return the places of each set's strings; every set must have the same classes in the same order."""
    sets: dict[str, list[int]] = {}
    for place, each in enumerate(sentences):
        sets.setdefault(each.tags["item"], []).append(place)
    shapes = {
        tuple((sentences[place].tags["class"], sentences[place].tags["grammatical"]) for place in places)
        for places in sets.values()
    }
    if len(shapes) > 1:
        raise SuiteError(f"the sets of {sentences[0].id} differ in what strings they have; expected one pattern")
    return list(sets.values())


def _surprisals(path: str, content: bytes, pronoun: str) -> Iterator[float]:
    """Yield the pronoun's surprisal in each sentence, in the order of the stimuli."""
    if path.endswith(".csv"):
        yield from (float(row["surprisal"]) for _, row in dict_rows(content, path))
    else:
        yield from map(float, re.findall(rf"^{pronoun}\t(\S+)\s*$".encode(), content, re.MULTILINE))
