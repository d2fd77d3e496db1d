"""Training–evaluation configurations over the groups of a labelled suite (Warstadt et al. 2019, the NPI paper).

A group is one value of any tag of the suite, such as one NPI environment. Classifiers are trained on sentences from
elsewhere (``other``), on ``one`` group, on ``all-but`` one group, or on ``all``. The figures report, for every group,
the score of one such classifier there, or, as ``average-other``, the mean score of the classifiers that were trained on
a single other group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import SuiteError
from acceptability.types import Sentence, Suite

OTHER, ONE, ALL_BUT, ALL = "other", "one", "all-but", "all"
AVERAGE_OTHER = "average-other"
FIGURE_ROWS = (OTHER, ONE, AVERAGE_OTHER, ALL_BUT, ALL)
"""What is reported for each group, in the order of the paper's figures."""


@dataclass(frozen=True)
class Configuration:
    """Which sentences a classifier is trained on.

    Args:
        kind: ``other`` (sentences from elsewhere), ``one`` (a group), ``all-but`` (all other groups) or ``all``.
        group: The group that is trained on, or left out; empty for ``other`` and ``all``.
    """

    kind: str
    group: str = ""

    @property
    def folder(self) -> str:
        """The folder of its classifiers, relative to that of a model.

        >>> Configuration("all-but", "adverbs").folder
        'all-but/adverbs'
        """
        return f"{self.kind}/{self.group}" if self.group else self.kind

    def select_groups(self, all_groups: Sequence[str]) -> tuple[str, ...]:
        """Return the groups that are trained on; none for ``other``.

        >>> Configuration("all-but", "only").select_groups(["adverbs", "only", "questions"])
        ('adverbs', 'questions')
        """
        if self.kind == OTHER:
            return ()
        # The group itself is selected for ONE and not selected for ALL_BUT; for all other groups it is the reverse.
        return tuple(group for group in all_groups if self.kind == ALL or (group == self.group) == (self.kind == ONE))


def list_configurations(groups: Sequence[str]) -> list[Configuration]:
    """Return all configurations of some groups: other sentences, each group, all but each group, and all groups.

    >>> [configuration.folder for configuration in list_configurations(["a", "b"])]
    ['other', 'one/a', 'one/b', 'all-but/a', 'all-but/b', 'all']
    """
    single = [Configuration(kind, group) for kind in (ONE, ALL_BUT) for group in groups]
    return [Configuration(OTHER), *single, Configuration(ALL)]


def select_configurations(row: str, group: str, groups: Sequence[str]) -> list[Configuration]:
    """Return the configurations whose scores on a group are averaged in one row of a figure.

    Args:
        row: One of ``FIGURE_ROWS``.
        group: The group that the classifiers are evaluated on.
        groups: All groups of the suite.

    >>> [configuration.folder for configuration in select_configurations("average-other", "b", ["a", "b", "c"])]
    ['one/a', 'one/c']
    >>> [configuration.folder for configuration in select_configurations("all-but", "b", ["a", "b", "c"])]
    ['all-but/b']
    """
    if row == AVERAGE_OTHER:
        return [Configuration(ONE, other_group) for other_group in groups if other_group != group]
    return [Configuration(row, group if row in (ONE, ALL_BUT) else "")]


def select_configs_without_group(row: str, groups: Sequence[str]) -> list[Configuration]:
    """Return the configurations that are averaged for sentences of no group, such as hand-made ones.

    Args:
        row: One of ``FIGURE_ROWS``.
        groups: All groups of the suite.

    >>> [configuration.folder for configuration in select_configs_without_group("one", ["a", "b"])]
    ['one/a', 'one/b']
    """
    if row in (ONE, ALL_BUT):
        return [Configuration(row, group) for group in groups]
    # For a sentence without a group, every group is another one: the row would repeat the row ONE.
    return [] if row == AVERAGE_OTHER else [Configuration(row)]


def list_groups(suite: Suite, tag: str) -> tuple[str, ...]:
    """Return the values of a tag in order of first appearance; every sentence must have the tag."""
    untagged_ids = [sentence.id for sentence in suite.sentences if tag not in sentence.tags]
    if untagged_ids:
        raise SuiteError(
            f"suite {suite.name!r}: {len(untagged_ids)} sentences have no tag {tag!r}, the first is {untagged_ids[0]!r}"
        )
    # A dict, unlike a set, keeps the order.
    return tuple(dict.fromkeys(sentence.tags[tag] for sentence in suite.sentences))


def filter_groups(suite: Suite, tag: str, groups: Iterable[str]) -> Suite:
    """Return the sentences of some groups."""
    selected_groups = set(groups)
    sentences = tuple(sentence for sentence in suite.sentences if sentence.tags[tag] in selected_groups)
    if not sentences:
        raise SuiteError(f"suite {suite.name!r} has no sentence whose {tag} is {' or '.join(sorted(selected_groups))}")
    return Suite(suite.name, sentences)


def subsample_suite(suite: Suite, tag: str, max_sentences: int, seed: int = 0) -> Suite:
    """Return a random sample of whole sets, balanced over the groups.

    Args:
        tag: The tag whose values are the groups.
        max_sentences: About how many sentences are drawn; 0 keeps all.
    """
    if not 0 < max_sentences < len(suite.sentences):
        return suite
    random, max_per_group = np.random.default_rng(seed), max_sentences / len(list_groups(suite, tag))
    kept_ids: set[str] = set()
    for group in list_groups(suite, tag):
        # Sets (tag "set") are kept whole: a minimal pair must not lose one of its sentences.
        sets: dict[str, list[Sentence]] = {}
        for sentence in suite.sentences:
            if sentence.tags[tag] == group:
                sets.setdefault(sentence.tags.get("set", sentence.id), []).append(sentence)
        set_names, count = list(sets), 0
        for set_index in random.permutation(len(set_names)).tolist():
            if count >= max_per_group:
                break
            # The last set of a group may exceed its share, hence "about" so many sentences.
            kept_ids.update(sentence.id for sentence in sets[set_names[set_index]])
            count += len(sets[set_names[set_index]])
    return Suite(suite.name, tuple(sentence for sentence in suite.sentences if sentence.id in kept_ids))
