"""The data of the NPI paper: paradigms in nine environments, minimal pairs, and cloze pairs.

Warstadt et al. (2019). The published files are used as they are: 5,500 minimal and 3,869 cloze pairs. For the user's
own suite, such as ``acceptability generate npi`` writes, pairs are made by the paper's rule: two sentences of one
paradigm that differ in one of the factors licensor, NPI and scope, and in their label.

A ``Configuration`` says which groups of a suite, such as the nine environments, a classifier is trained on: sentences
from elsewhere (``other``), ``one`` group, ``all-but`` one group, or ``all``. The figures report, for every group, the
score of one such classifier there, or, as ``average-other``, the mean score of the classifiers that were trained on a
single other group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from acceptability.errors import SuiteError
from acceptability.suites import VARIED_TAG, add_minimal_pairs, load_suite
from acceptability.types import Contrast, Sentence, Suite, Tags

ENVIRONMENT, VARIED_FACTOR = "environment", VARIED_TAG
FACTORS = ("npi", "licensor", "scope")
"""The factors, in the order of the paper's figures; the tag ``varied`` of a pair names the one in which it differs."""

ENVIRONMENT_LABELS = {
    "adverbs": "ADV",
    "conditional": "COND",
    "determiner_negation_biclausal": "D-NEG",
    "sentential_negation_biclausal": "S-NEG",
    "only": "ONLY",
    "quantifier": "QNT",
    "questions": "QUES",
    "simplequestions": "SMP-Q",
    "superlative": "SUP",
}
"""The environments of the published files, in the order of the paper's figures, and their labels there."""

PUBLISHED_DATA = ""
"""The path that stands for the published data."""

# ``acceptability generate npi`` names two environments in the plural, the published files in the singular. Without one
# name for both, generated sentences would fill columns of their own.
_SINGULAR_NAMES = {"conditionals": "conditional", "quantifiers": "quantifier"}
# The published files call their test sentences "test_full"; files of users have "test".
_TRAIN_SPLITS, _TEST_SPLITS = ("train",), ("test", "test_full")
# Published pairs name all three factors, "licensor=0_scope=0_npi_present=1-0"; the one that varies has two values.
_VARIED_PATTERN = re.compile(r"(licensor|scope|npi_present)=[01]-[01]")


@dataclass(frozen=True)
class NpiData:
    """Training sentences, and the sentences and pairs that models are evaluated on.

    Args:
        name: ``npi`` for the published data, else the path of the suite.
        train: The training sentences, with the tags environment, licensor, npi, scope and set.
        test: The test sentences, with the same tags.
        pairs: Minimal pairs, with the tags environment and varied.
        cloze: Pairs that differ in one word.
    """

    name: str
    train: Suite
    test: Suite
    pairs: Suite
    cloze: Suite

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments: those of the paper in its order, then any others."""
        in_data = list_groups(self.train, ENVIRONMENT)
        return (
            *(name for name in ENVIRONMENT_LABELS if name in in_data),
            *(name for name in in_data if name not in ENVIRONMENT_LABELS),
        )

    def limit_test_sentences(self, per_environment: int) -> NpiData:
        """Return the data with fewer test sentences, and only the pairs whose sentences are among them.

        Args:
            per_environment: About how many test sentences to keep of each environment; 0 keeps all.
        """
        if not per_environment:
            return self
        test = subsample_suite(self.test, ENVIRONMENT, per_environment * len(self.environments))
        # By text and not by id: published pairs are in a file of their own, whose ids are not those of the test
        # sentences.
        texts = {sentence.text for sentence in test.sentences}
        return replace(self, test=test, pairs=_select_pairs_within(self.pairs, texts))


def environment_label(environment: str) -> str:
    """Return the label of an environment in the paper's figures; its name if the paper does not have it."""
    return ENVIRONMENT_LABELS.get(environment, environment)


# Cached: the published files have about 100,000 sentences, and every classifier of a plan asks for them.
@cache
def load_npi_data(path: str = PUBLISHED_DATA) -> NpiData:
    """Return the published data, or the data of a suite in a file."""
    tagged = add_factor_tags(load_suite(path or "npi"))
    train, test = (_select_split(tagged, names, path) for names in (_TRAIN_SPLITS, _TEST_SPLITS))
    if path:
        pairs = make_minimal_pairs(test)
        return NpiData(path, train, test, pairs, _select_one_word_pairs(pairs))
    return NpiData("npi", train, test, *(_add_varied_factor(load_suite(name)) for name in ("npi/pairs", "npi/cloze")))


def make_minimal_pairs(suite: Suite) -> Suite:
    """Return the minimal pairs of a suite: two sentences of a paradigm that differ in one factor and in their label."""
    contrasts = add_minimal_pairs(replace(suite, contrasts=()), FACTORS).contrasts
    if not contrasts:
        raise SuiteError(f"suite {suite.name!r} has no two sentences of a set that differ in one factor and in label")
    return replace(suite, name=f"{suite.name}, pairs", contrasts=contrasts)


def add_factor_tags(suite: Suite) -> Suite:
    """Return a suite with the factors as tags (0 or 1), and with the paper's names of environments."""
    sentences = (replace(sentence, tags=_make_factor_tags(sentence, suite.name)) for sentence in suite.sentences)
    return replace(suite, sentences=tuple(sentences), contrasts=())


def _make_factor_tags(sentence: Sentence, suite: str) -> Tags:
    tags = dict(sentence.tags)
    word = tags.get("npi", "")
    # In the published files the tag ``npi`` is the word, and its presence is ``npi_present``. Here ``npi`` is the
    # factor, like ``licensor`` and ``scope``, and the word moves to ``word``.
    if "npi_present" in tags:
        tags |= {"npi": tags["npi_present"], "word": word}
    for name in FACTORS:
        if tags.get(name) not in ("0", "1"):
            raise SuiteError(
                f"suite {suite!r}, sentence {sentence.id!r}: {name} is {tags.get(name)!r}; expected 0 or 1"
            )
    for name in (ENVIRONMENT, "split", "set"):
        if name not in tags:
            raise SuiteError(f"suite {suite!r}, sentence {sentence.id!r} has no tag {name!r}")
    return tags | {ENVIRONMENT: _normalise_environment(tags[ENVIRONMENT])}


def _normalise_environment(environment: str) -> str:
    return _SINGULAR_NAMES.get(environment, environment)


def _select_split(suite: Suite, names: Iterable[str], path: str) -> Suite:
    selected = tuple(sentence for sentence in suite.sentences if sentence.tags["split"] in names)
    if not selected:
        raise SuiteError(f"{path}: no sentence's split is {' or '.join(names)}")
    return replace(suite, sentences=selected, contrasts=())


def _add_varied_factor(suite: Suite) -> Suite:
    """Return published pairs with a tag for the factor in which they differ."""
    contrasts = (
        replace(pair, tags={**pair.tags, VARIED_FACTOR: _parse_varied_factor(pair.tags)}) for pair in suite.contrasts
    )
    return replace(suite, contrasts=tuple(contrasts))


def _parse_varied_factor(tags: Mapping[str, str]) -> str:
    match = _VARIED_PATTERN.search(tags["condition"])
    if match is None:
        raise SuiteError(f"no factor varies in the condition of a published pair: {tags['condition']!r}")
    return match[1].removesuffix("_present")


def _select_one_word_pairs(suite: Suite) -> Suite:
    """Return the pairs whose sentences have the same number of words, and differ in one."""
    return _keep_contrasts(suite, [pair for pair in suite.contrasts if _count_differing_words(suite, pair) == 1])


def _count_differing_words(suite: Suite, contrast: Contrast) -> int | None:
    # Words and not tokens, so that the cloze pairs are the same for all models.
    better, worse = (suite.by_id[name].text.split() for name in (contrast.better, contrast.worse))
    return sum(a != b for a, b in zip(better, worse, strict=True)) if len(better) == len(worse) else None


def _select_pairs_within(suite: Suite, texts: set[str]) -> Suite:
    """Return the pairs both of whose sentences are among some texts."""
    pairs = [
        pair for pair in suite.contrasts if all(suite.by_id[name].text in texts for name in (pair.better, pair.worse))
    ]
    return _keep_contrasts(suite, pairs)


def _keep_contrasts(suite: Suite, contrasts: Sequence[Contrast]) -> Suite:
    ids = {sentence_id for pair in contrasts for sentence_id in (pair.better, pair.worse)}
    sentences = tuple(sentence for sentence in suite.sentences if sentence.id in ids)
    return replace(suite, sentences=sentences, contrasts=tuple(contrasts))


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
    return replace(suite, sentences=sentences, contrasts=())


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
    return replace(
        suite, sentences=tuple(sentence for sentence in suite.sentences if sentence.id in kept_ids), contrasts=()
    )
