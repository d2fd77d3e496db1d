"""What the study of NPIs is about: paradigms in nine environments, minimal pairs, cloze pairs, and hand-made items.

Warstadt et al. (2019). The published files are used as they are: 5,500 minimal and 3,869 cloze pairs. Of a suite of
one's own, such as ``acceptability generate npi`` writes, pairs are made by the paper's rule: two sentences of one
paradigm that differ in one of the factors licensor, NPI and scope, and in their label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from acceptability.errors import SuiteError
from acceptability.suites import load_suite
from acceptability.suites.minimal import VARIED, minimal_pairs
from acceptability.train.classifiers.configurations import groups_of, some_of
from acceptability.types import Contrast, Sentence, Suite, Tags

ENVIRONMENT, CHANGED = "environment", VARIED
FACTORS = ("npi", "licensor", "scope")
"""The factors, in the order of the paper's figures; a pair's tag ``varied`` names the one in which it differs."""

SHORT = {
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
"""The environments of the published files, in the order of the paper's figures, and what these call them."""

PUBLISHED = ""
_PLURAL = {"conditionals": "conditional", "quantifiers": "quantifier"}
_LEARN, _TEST = ("train",), ("test", "test_full")
_VARIED = re.compile(r"(licensor|scope|npi_present)=[01]-[01]")


@dataclass(frozen=True)
class Material:
    """Sentences to learn from, and what classifiers and language models are measured on.

    Args:
        learn: The training sentences; ``test`` those that classifiers judge; all have the tags environment, licensor,
            npi, scope and set.
        pairs: Minimal pairs with the tags environment and varied; ``cloze`` those that differ in one word.
    """

    name: str
    learn: Suite
    test: Suite
    pairs: Suite
    cloze: Suite

    @property
    def groups(self) -> tuple[str, ...]:
        """The environments, those of the paper first and in its order."""
        found = groups_of(self.learn, ENVIRONMENT)
        return (*(each for each in SHORT if each in found), *(each for each in found if each not in SHORT))

    def judged(self, most: int) -> Material:
        """Return the material with about so many test sentences of each environment, and the pairs made of these."""
        if not most:
            return self
        test = some_of(self.test, ENVIRONMENT, most * len(self.groups))
        texts = {each.text for each in test.sentences}
        return replace(self, test=test, pairs=_within(self.pairs, texts))


def short(environment: str) -> str:
    """Return what a figure calls an environment."""
    return SHORT.get(environment, environment)


@cache
def material(place: str = PUBLISHED) -> Material:
    """Return the published material, or that of a suite in a file."""
    everything = with_factors(load_suite(place or "npi"))
    learn, test = (_of_split(everything, names, place) for names in (_LEARN, _TEST))
    if place:
        pairs = paired(test)
        return Material(place, learn, test, pairs, _in_one_word(pairs))
    return Material("npi", learn, test, *(_with_changes(load_suite(name)) for name in ("npi/pairs", "npi/cloze")))


def paired(suite: Suite) -> Suite:
    """Return the minimal pairs of paradigms: two sentences of a set that differ in one factor and in their label."""
    found = minimal_pairs(replace(suite, contrasts=()), FACTORS).contrasts
    if not found:
        raise SuiteError(f"suite {suite.name!r} has no two sentences of a set that differ in one factor and in label")
    return Suite(f"{suite.name}, pairs", suite.sentences, found)


def with_factors(suite: Suite) -> Suite:
    """Return a suite whose sentences have the factors as tags, 0 or 1, and the paper's name of their environment."""
    return Suite(suite.name, tuple(replace(each, tags=_factors(each, suite.name)) for each in suite.sentences))


def _factors(each: Sentence, suite: str) -> Tags:
    tags = dict(each.tags)
    word = tags.get("npi", "")
    if "npi_present" in tags:
        tags |= {"npi": tags["npi_present"], "word": word}
    for name in FACTORS:
        if tags.get(name) not in ("0", "1"):
            raise SuiteError(f"suite {suite!r}, sentence {each.id!r}: {name} is {tags.get(name)!r}; expected 0 or 1")
    for name in (ENVIRONMENT, "split", "set"):
        if name not in tags:
            raise SuiteError(f"suite {suite!r}, sentence {each.id!r} has no tag {name!r}")
    return tags | {ENVIRONMENT: _named(tags[ENVIRONMENT])}


def _named(environment: str) -> str:
    return _PLURAL.get(environment, environment)


def _of_split(suite: Suite, names: Iterable[str], place: str) -> Suite:
    found = tuple(each for each in suite.sentences if each.tags["split"] in names)
    if not found:
        raise SuiteError(f"{place}: no sentence's split is {' or '.join(names)}")
    return Suite(suite.name, found)


def _with_changes(suite: Suite) -> Suite:
    """Return published pairs with the factor in which each differs."""
    return Suite(
        suite.name,
        suite.sentences,
        tuple(replace(each, tags={**each.tags, CHANGED: _changed(each.tags)}) for each in suite.contrasts),
    )


def _changed(tags: Mapping[str, str]) -> str:
    found = _VARIED.search(tags["condition"])
    if found is None:
        raise SuiteError(f"a published pair does not say in what it differs: {tags['condition']!r}")
    return found[1].removesuffix("_present")


def _in_one_word(suite: Suite) -> Suite:
    """Return the pairs whose sentences have as many words, and differ in one."""
    return _only(suite, [each for each in suite.contrasts if _differing_words(suite, each) == 1])


def _differing_words(suite: Suite, each: Contrast) -> int | None:
    better, worse = (suite.by_id[name].text.split() for name in (each.better, each.worse))
    return sum(a != b for a, b in zip(better, worse, strict=True)) if len(better) == len(worse) else None


def _within(suite: Suite, texts: set[str]) -> Suite:
    """Return the pairs both of whose sentences are among some texts."""
    kept = [
        each for each in suite.contrasts if all(suite.by_id[name].text in texts for name in (each.better, each.worse))
    ]
    return _only(suite, kept)


def _only(suite: Suite, contrasts: Sequence[Contrast]) -> Suite:
    names = {name for each in contrasts for name in (each.better, each.worse)}
    return Suite(suite.name, tuple(each for each in suite.sentences if each.id in names), tuple(contrasts))
