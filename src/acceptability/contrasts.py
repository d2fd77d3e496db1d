"""Contrasts on a target: how surprising the differing words of two sentences are to a model.

The method of Park, Park and Song (2021), for masked models and for any other that can score a part of a
text: a masked model hides the target, a causal one predicts it from what stands before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from acceptability.errors import ModelError, QueryError, SuiteError
from acceptability.measures.contrast import Directionality, Repulsion
from acceptability.measures.interaction import Cutoffs, interaction
from acceptability.measuring import checked_measures, measure
from acceptability.protocols import Engine, Model
from acceptability.reductions import LP
from acceptability.scoring import Progress, as_model, as_suite, tokens
from acceptability.stats.bootstrap import Bootstrap
from acceptability.suites.targets import REGION, Exclusion, counted, with_targets
from acceptability.types import Contrast, Query, Result, Scores, Sentence, Suite, TokenScores

_SEVERAL = "several tokens"
_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class TargetContrasts:
    """What a model makes of the targets of a suite's contrasts.

    Args:
        suite: The contrasts that count, each with sentences of its own that carry the region "target".
            Its contrasts have the tags ``edit``, ``contrast`` and ``tokens``, the most tokens of a target.
        scores: The log-probability of each target, in nats.
        exclusions: The contrasts that do not count, and why.
    """

    suite: Suite
    scores: Scores
    exclusions: tuple[Exclusion, ...]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield each contrast as a flat row, with surprisals in bits."""
        for each in self.suite.contrasts:
            row: dict[str, object] = {"contrast": each.tags["contrast"], "edit": each.tags["edit"]}
            for role, name in (("better", each.better), ("worse", each.worse)):
                row[f"{role}_target"] = _target_text(self.suite.by_id[name])
                row[f"{role}_surprisal_bits"] = in_bits(-self.scores[name])
            yield row | {"tokens": int(each.tags["tokens"])}

    def notes(self) -> list[str]:
        """Return what to know about the numbers: contrasts left out, and contrasts that cannot be told apart."""
        left_out = [f"{count} contrasts left out: {reason}" for reason, count in counted(self.exclusions).items()]
        tied = sum(self._is_tied(each) for each in self.suite.contrasts)
        if not tied:
            return left_out
        return [
            *left_out,
            f"{tied} contrasts tie: both sentences are the same up to the target, and the model looks no further. "
            "Take the word to the right of the edit: --side right.",
        ]

    def _is_tied(self, each: Contrast) -> bool:
        better, worse = (self.suite.by_id[name] for name in (each.better, each.worse))
        read = (member.text[: member.regions[REGION][1]] for member in (better, worse))
        return self.scores[each.better] == self.scores[each.worse] and next(read) == next(read)


@dataclass(frozen=True, eq=False)
class Group:
    """Some contrasts, and what their directionality and repulsion say together.

    Args:
        name: ``tag=value``, or "all".
        verdict: The class of Table 3 of the paper; None where one of the two is undefined.
    """

    name: str
    directionality: Result
    repulsion: Result
    better_surprisal_bits: float
    worse_surprisal_bits: float
    verdict: str | None

    def row(self) -> dict[str, object]:
        """Return the group as a flat row."""
        return {
            "group": self.name,
            "n": self.directionality.n,
            "directionality": self.directionality.value,
            "directionality_low": self.directionality.low,
            "directionality_high": self.directionality.high,
            "repulsion": self.repulsion.value,
            "repulsion_low": self.repulsion.low,
            "repulsion_high": self.repulsion.high,
            "better_surprisal_bits": self.better_surprisal_bits,
            "worse_surprisal_bits": self.worse_surprisal_bits,
            "class": self.verdict,
        }


def target_contrasts(
    suite: Suite | str,
    model: str | Model,
    *,
    side: str = "left",
    multi_token: bool = False,
    by: str | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> TargetContrasts:
    """Return the log-probabilities of the targets of a suite's contrasts.

    Args:
        side: What an insertion or a deletion masks: the shared word to its "left" or "right", or the "bracket".
        multi_token: Keep targets of several tokens, all masked together and their log-probabilities summed.
            Without it only contrasts marked by the tag ``nonword``, as of "sleeped", may have such.
        by: A tag by which they will be grouped: it is looked for before anything is scored.
    """
    whole = as_suite(suite)
    asked, excluded = with_targets(whole, side=side)
    checked_measures(asked, [Directionality()], by=by)
    name, in_use = as_model(model)
    asked, unknown = _askable(asked, in_use)
    said = {
        sentence.id: _checked(each, name)
        for sentence, each in tokens(asked, model, region=REGION, engine=engine, progress=progress)
    }
    everyone = [_with_tokens(each, said) for each in asked.contrasts]
    several = [each for each in everyone if not multi_token and _is_split(each, asked)]
    left_out = (*excluded, *unknown, *(Exclusion(_SEVERAL, each.tags["contrast"]) for each in several))
    gone = {each.id for each in several}
    kept = _only(asked, [each for each in everyone if each.id not in gone], left_out)
    return TargetContrasts(kept, _scores(kept, said, name, in_use.signature), _in_order(left_out, whole))


def groups(
    found: TargetContrasts, by: str, *, cutoffs: Cutoffs | None = None, bootstrap: Bootstrap | None = None
) -> list[Group]:
    """Return directionality and repulsion of all contrasts, and of those of each value of a tag."""
    asked = Directionality(), Repulsion()
    results = measure(found.suite, found.scores, asked, by=by, bootstrap=bootstrap)
    ours, theirs = ({each.group: each for each in results if each.measure == repr(one)} for one in asked)
    return [
        Group(name or "all", first, theirs[name], *_mean_bits(found, by, name), _verdict(first, theirs[name], cutoffs))
        for name, first in ours.items()
        if name in theirs and name != f"macro({by})"
    ]


def _mean_bits(found: TargetContrasts, by: str, group: str | None) -> tuple[float, float]:
    """Return the mean surprisal of the better and of the worse targets of a group."""
    chosen = [each for each in found.suite.contrasts if group in (None, f"{by}={each.tags.get(by)}")]
    better, worse = ([-found.scores[getattr(each, role)] for each in chosen] for role in ("better", "worse"))
    return in_bits(float(np.mean(better))), in_bits(float(np.mean(worse)))


def _verdict(directionality: Result, repulsion: Result, cutoffs: Cutoffs | None) -> str | None:
    if directionality.value is None or repulsion.value is None:
        return None
    return interaction(directionality.value, repulsion.value, cutoffs)


def in_bits(nats: float) -> float:
    """Return a surprisal in bits.

    >>> round(in_bits(2.0), 4)
    2.8854
    """
    return nats / log(2)


def _target_text(sentence: Sentence) -> str:
    return sentence.text[slice(*sentence.regions[REGION])]


def _askable(suite: Suite, model: Model) -> tuple[Suite, tuple[Exclusion, ...]]:
    """Return the suite without contrasts whose target the model cannot take, and these contrasts."""
    problems = {suite.sentences[place].id: problem for place, problem in _refused(suite, model)}
    lost = {each.id: problems.get(each.better) or problems.get(each.worse) for each in suite.contrasts}
    excluded = tuple(Exclusion(lost[each.id] or "", each.tags["contrast"]) for each in suite.contrasts if lost[each.id])
    return _only(suite, [each for each in suite.contrasts if not lost[each.id]], excluded), excluded


def _refused(suite: Suite, model: Model) -> Iterator[tuple[int, str]]:
    """Yield the places of sentences that the model takes as a whole, but not their target; and its reason."""
    queries = [Query(each.text, each.tags.get("context", ""), each.regions[REGION]) for each in suite.sentences]
    start = 0
    while start < len(queries):
        problem = _problem(model, queries[start : start + _AT_ONCE])
        if problem is None:
            start += _AT_ONCE
            continue
        start += problem.index + 1
        # A text that is too long is an error, which scoring it will say.
        if _problem(model, [replace(queries[start - 1], target=None)]) is None:
            yield start - 1, problem.problem


def _problem(model: Model, queries: Sequence[Query]) -> QueryError | None:
    try:
        model.encode(queries)
    except QueryError as error:
        return error
    return None


def _checked(said: object, model: str) -> TokenScores:
    if not isinstance(said, TokenScores):
        raise ModelError(f"{model} is a classifier and says nothing of a target; take a language model")
    return said


def _with_tokens(each: Contrast, said: Mapping[str, TokenScores]) -> Contrast:
    most = max(len(said[name].tokens) for name in (each.better, each.worse))
    return replace(each, tags={**each.tags, "tokens": str(most)})


def _is_split(each: Contrast, suite: Suite) -> bool:
    """Tell whether a target is several tokens, and no deliberate non-word."""
    members = suite.by_id[each.better], suite.by_id[each.worse]
    is_marked = any(tags.get("nonword") for tags in (each.tags, *(member.tags for member in members)))
    return each.tags["tokens"] != "1" and not is_marked


def _only(suite: Suite, contrasts: Sequence[Contrast], excluded: Sequence[Exclusion]) -> Suite:
    """Return a suite with only these contrasts, and their sentences."""
    if not contrasts:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in counted(excluded).items())
        hint = " With --multi-token targets of several tokens count too." if _SEVERAL in reasons else ""
        raise SuiteError(f"suite {suite.name!r}: no contrast is left to ask the model about: {reasons}.{hint}")
    names = {name for each in contrasts for name in (each.better, each.worse)}
    return Suite(suite.name, tuple(each for each in suite.sentences if each.id in names), tuple(contrasts))


def _in_order(excluded: Sequence[Exclusion], suite: Suite) -> tuple[Exclusion, ...]:
    places = {each.id: place for place, each in enumerate(suite.contrasts)}
    return tuple(sorted(excluded, key=lambda each: places[each.contrast]))


def _scores(suite: Suite, said: Mapping[str, TokenScores], name: str, signature: str) -> Scores:
    reduction = LP()
    values = {each.id: reduction(said[each.id]) for each in suite.sentences}
    where = f"#{REGION}"
    return Scores(values, name, f"{reduction!r}{where}", f"{signature}.{reduction.signature}{where}")
