"""What a classifier learns from and where it is measured, as data: one group, all but one, all, or another data set.

The training–evaluation configurations of Warstadt et al. (2019, the NPI paper), for the values of any tag of a labelled
suite. Classifiers are taught on ``other`` sentences, on ``one`` group, on all groups ``all-but`` one, or on ``all``.
What is told of a group is then the value of one classifier there, or, for "average other", the mean over those that
were taught on one of the other groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import SuiteError
from acceptability.types import Sentence, Suite

OTHER, ONE, ALL_BUT, ALL = "other", "one", "all-but", "all"
AVERAGE_OTHER = "average-other"
ROWS = (OTHER, ONE, AVERAGE_OTHER, ALL_BUT, ALL)
"""What is told of each group, in the order of the paper's figures."""


@dataclass(frozen=True)
class Configuration:
    """What a classifier learns from.

    Args:
        kind: ``other`` (sentences from elsewhere), ``one`` (a group), ``all-but`` (all others) or ``all``.
        group: The group that it learns from, or that is left out; empty for ``other`` and ``all``.
    """

    kind: str
    group: str = ""

    @property
    def folder(self) -> str:
        """Where its classifiers lie, below the folder of a model.

        >>> Configuration("all-but", "adverbs").folder
        'all-but/adverbs'
        """
        return f"{self.kind}/{self.group}" if self.group else self.kind

    def groups(self, everyone: Sequence[str]) -> tuple[str, ...]:
        """Return the groups that it learns from; none for ``other``.

        >>> Configuration("all-but", "only").groups(["adverbs", "only", "questions"])
        ('adverbs', 'questions')
        """
        if self.kind == OTHER:
            return ()
        return tuple(each for each in everyone if self.kind == ALL or (each == self.group) == (self.kind == ONE))


def configurations(groups: Sequence[str]) -> list[Configuration]:
    """Return all that is taught for some groups: on others' sentences, on each, on all but each, and on all.

    >>> [each.folder for each in configurations(["a", "b"])]
    ['other', 'one/a', 'one/b', 'all-but/a', 'all-but/b', 'all']
    """
    single = [Configuration(kind, group) for kind in (ONE, ALL_BUT) for group in groups]
    return [Configuration(OTHER), *single, Configuration(ALL)]


def told_of(row: str, group: str, groups: Sequence[str]) -> list[Configuration]:
    """Return the configurations whose values on a group are averaged into what a row tells of it.

    >>> [each.folder for each in told_of("average-other", "b", ["a", "b", "c"])]
    ['one/a', 'one/c']
    >>> [each.folder for each in told_of("all-but", "b", ["a", "b", "c"])]
    ['all-but/b']
    """
    if row == AVERAGE_OTHER:
        return [Configuration(ONE, each) for each in groups if each != group]
    return [Configuration(row, group if row in (ONE, ALL_BUT) else "")]


def told_elsewhere(row: str, groups: Sequence[str]) -> list[Configuration]:
    """Return the configurations that are averaged for sentences that belong to no group, such as hand-made ones.

    >>> [each.folder for each in told_elsewhere("one", ["a", "b"])]
    ['one/a', 'one/b']
    """
    if row in (ONE, ALL_BUT):
        return [Configuration(row, each) for each in groups]
    return [] if row == AVERAGE_OTHER else [Configuration(row)]


def groups_of(suite: Suite, tag: str) -> tuple[str, ...]:
    """Return the values of a tag, in the order in which they come; every sentence must have one."""
    lacking = [each.id for each in suite.sentences if tag not in each.tags]
    if lacking:
        raise SuiteError(f"suite {suite.name!r}: {len(lacking)} sentences have no tag {tag!r}, {lacking[0]!r} first")
    return tuple(dict.fromkeys(each.tags[tag] for each in suite.sentences))


def chosen(suite: Suite, tag: str, groups: Iterable[str]) -> Suite:
    """Return the sentences of some groups."""
    wanted = set(groups)
    found = tuple(each for each in suite.sentences if each.tags[tag] in wanted)
    if not found:
        raise SuiteError(f"suite {suite.name!r} has no sentence whose {tag} is {' or '.join(sorted(wanted))}")
    return Suite(suite.name, found)


def some_of(suite: Suite, tag: str, most: int, seed: int = 0) -> Suite:
    """Return about so many sentences, whole sets (tag ``set``) and as many from each group; all of them for 0."""
    if not 0 < most < len(suite.sentences):
        return suite
    random, share = np.random.default_rng(seed), most / len(groups_of(suite, tag))
    kept: set[str] = set()
    for group in groups_of(suite, tag):
        sets: dict[str, list[Sentence]] = {}
        for each in suite.sentences:
            if each.tags[tag] == group:
                sets.setdefault(each.tags.get("set", each.id), []).append(each)
        names, count = list(sets), 0
        for place in random.permutation(len(names)).tolist():
            if count >= share:
                break
            kept.update(each.id for each in sets[names[place]])
            count += len(sets[names[place]])
    return Suite(suite.name, tuple(each for each in suite.sentences if each.id in kept))
