"""Target contrasts: the surprisal of the words in which the two sentences of a contrast differ.

The method of Park, Park and Song (2021), for masked models and for any other model that can score a part of
a text: a masked model hides the target, a causal model predicts it from the text before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from acceptability import __version__
from acceptability.api.evaluation import describe_ungrouped_rows, measure, resolve_measures
from acceptability.api.interface.arguments import as_model, as_suite
from acceptability.api.scoring import ProgressCallback, iter_model_outputs
from acceptability.api.vocabulary_coverage import collect_unknown_words
from acceptability.errors import ModelError, QueryError, SpecError, SuiteError
from acceptability.measures.target_contrast import Cutoffs, Directionality, Repulsion, classify_learning
from acceptability.protocols import Engine, Model
from acceptability.reductions import LP
from acceptability.specs import build_signature
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.sampling_units import resolve_sampling_unit
from acceptability.suites.targets import SIDES, TARGET_REGION, Exclusion, add_targets, count_exclusions
from acceptability.types import Contrast, Query, Result, Scores, Sentence, Suite, TokenScores

_MULTI_TOKEN = "several tokens"
_UNKNOWN_TARGET = "the model does not know a word of its target (unknown='omit')"
# Tokenizers are fast on large batches. An error restarts the batch after the failing query, so they are not too large.
_BATCH_SIZE = 1000


@dataclass(frozen=True, eq=False)
class TargetContrasts:
    """The log-probabilities of the targets of a suite's contrasts.

    Args:
        suite: The scored contrasts, each with two sentences of its own that have the region "target".
            Its contrasts have the tags ``edit``, ``contrast`` and ``tokens``, the length of the longer target.
        scores: The log-probability of each target, in nats.
        exclusions: The contrasts that were left out, with reasons.
    """

    suite: Suite
    scores: Scores
    exclusions: tuple[Exclusion, ...]

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield a flat row for each contrast, with surprisals in bits."""
        for contrast in self.suite.contrasts:
            row: dict[str, object] = {"contrast": contrast.tags["contrast"], "edit": contrast.tags["edit"]}
            for role, name in (("better", contrast.better), ("worse", contrast.worse)):
                row[f"{role}_target"] = _target_text(self.suite.by_id[name])
                row[f"{role}_surprisal_bits"] = nats_to_bits(-self.scores[name])
            yield row | {"tokens": int(contrast.tags["tokens"])}

    def notes(self) -> list[str]:
        """Return notes for the reader: how many contrasts were left out, have unknown words, and tie."""
        left_out = [
            f"{count} contrasts left out: {reason}" for reason, count in count_exclusions(self.exclusions).items()
        ]
        tied = sum(self._is_tied(contrast) for contrast in self.suite.contrasts)
        if not tied:
            return [*left_out, *self.scores.notes]
        return [
            *left_out,
            *self.scores.notes,
            f"{tied} contrasts tie: both sentences are the same up to the target, and the model reads no further. "
            "Use the word to the right of the edit: --side right.",
        ]

    def _is_tied(self, contrast: Contrast) -> bool:
        # Equal scores alone could be a coincidence; a causal model cannot see a difference after the target.
        better, worse = (self.suite.by_id[name] for name in (contrast.better, contrast.worse))
        prefixes = (member.text[: member.regions[TARGET_REGION][1]] for member in (better, worse))
        return self.scores[contrast.better] == self.scores[contrast.worse] and next(prefixes) == next(prefixes)


@dataclass(frozen=True, eq=False)
class ContrastGroup:
    """The directionality and repulsion of a group of contrasts.

    Args:
        name: ``tag=value``, or "all".
        better_surprisal_bits, worse_surprisal_bits: The mean surprisals of the targets.
        interaction_class: The class in Table 3 of Park et al. (2021); None if one of the two measures is undefined.
    """

    name: str
    directionality: Result
    repulsion: Result
    better_surprisal_bits: float
    worse_surprisal_bits: float
    interaction_class: str | None

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
            "class": self.interaction_class,
        }


def score_target_contrasts(
    suite: Suite | str,
    model: str | Model,
    *,
    side: str = "left",
    multi_token: bool = False,
    by: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> TargetContrasts:
    """Return the log-probabilities of the targets of a suite's contrasts.

    Args:
        suite: A suite of contrasts, or its name.
        model: A model or its spec.
        side: What an insertion or a deletion masks: the shared word to its "left" or "right", or the "bracket".
        multi_token: Keep targets of several tokens; these are masked together and their log-probabilities summed.
            Otherwise only contrasts with the tag ``nonword``, for words such as "sleeped", may have such targets.
        by: The tag to group by later; a wrong one is an error before anything is scored.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.
    """
    whole = as_suite(suite)
    targeted, excluded = add_targets(whole, side=side)
    # Only for its checks: grouping happens after the scoring, which may take hours.
    resolve_measures(targeted, [Directionality()], by=by)
    name, loaded = as_model(model)
    targeted, unknown = _drop_unsupported(targeted, loaded)
    token_scores = {
        sentence.id: _require_token_scores(output, name)
        for sentence, output in iter_model_outputs(
            targeted, model, region=TARGET_REGION, engine=engine, progress=progress
        )
    }
    # Only the model's output shows how many tokens a target has, so some contrasts are left out after the scoring.
    contrasts = [_tag_token_count(contrast, token_scores) for contrast in targeted.contrasts]
    omitted = [
        contrast
        for contrast in contrasts
        if loaded.omits_unknown and (token_scores[contrast.better].unknown or token_scores[contrast.worse].unknown)
    ]
    omitted_ids = {contrast.id for contrast in omitted}
    multi_token_contrasts = [
        contrast
        for contrast in contrasts
        if not multi_token and contrast.id not in omitted_ids and _is_split(contrast, targeted)
    ]
    left_out = (
        *excluded,
        *unknown,
        *(Exclusion(_UNKNOWN_TARGET, contrast.tags["contrast"]) for contrast in omitted),
        *(Exclusion(_MULTI_TOKEN, contrast.tags["contrast"]) for contrast in multi_token_contrasts),
    )
    dropped_ids = {contrast.id for contrast in (*omitted, *multi_token_contrasts)}
    kept = _keep_contrasts(targeted, [contrast for contrast in contrasts if contrast.id not in dropped_ids], left_out)
    return TargetContrasts(
        kept, _make_scores(kept, token_scores, name, loaded.signature), _sort_exclusions(left_out, whole)
    )


def group_contrasts(
    target_contrasts: TargetContrasts, by: str, *, cutoffs: Cutoffs | None = None, bootstrap: Bootstrap | None = None
) -> list[ContrastGroup]:
    """Return directionality and repulsion of all contrasts, and of the contrasts with each value of a tag.

    Args:
        by: The tag.
        cutoffs: The boundaries between the classes; by default those of the paper.
        bootstrap: The bootstrap of the intervals.
    """
    measures = Directionality(), Repulsion()
    results = measure(target_contrasts.suite, target_contrasts.scores, measures, by=by, bootstrap=bootstrap)
    directionalities, repulsions = (
        {result.group: result for result in results if result.measure == repr(requested)} for requested in measures
    )
    return [
        ContrastGroup(
            name or "all",
            first,
            repulsions[name],
            *_mean_surprisal_bits(target_contrasts, by, name),
            _classify_interaction(first, repulsions[name], cutoffs),
        )
        for name, first in directionalities.items()
        # The paper has no macro mean, and its class would be that of no group.
        if name in repulsions and name != f"macro({by})"
    ]


@dataclass(frozen=True, eq=False)
class ContrastEvaluation:
    """A model's results on the targets of a suite's contrasts.

    Args:
        target: The scored contrasts.
        edit_groups: All contrasts, and the contrasts with each kind of edit.
        tag_groups: The contrasts with each value of the tag that was asked for; empty without a tag.
        ungrouped_notes: Notes on contrasts without that tag.
    """

    target: TargetContrasts
    edit_groups: tuple[ContrastGroup, ...]
    tag_groups: tuple[ContrastGroup, ...]
    ungrouped_notes: tuple[str, ...]
    signature: str

    def rows(self) -> list[dict[str, object]]:
        """Return a flat row for each group."""
        return [group.row() for group in (*self.edit_groups, *self.tag_groups)]

    def to_dict(self) -> dict[str, object]:
        """Return everything in one mapping, for JSON."""
        return {
            "model": self.target.scores.model,
            "suite": self.target.suite.name,
            "groups": self.rows(),
            "contrasts": list(self.target.rows()),
            "exclusions": [
                {"contrast": exclusion.contrast, "reason": exclusion.reason} for exclusion in self.target.exclusions
            ],
            "notes": [*self.target.notes(), *self.ungrouped_notes],
            "signature": self.signature,
        }


DEFAULT_CUTOFFS = "0.8,0.35,0.7,0.4"


def evaluate_contrasts(
    suite: Suite | str,
    model: str | Model,
    *,
    by: str | None = None,
    side: str = "left",
    multi_token: bool = False,
    cutoffs: str = DEFAULT_CUTOFFS,
    bootstrap: Bootstrap | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> ContrastEvaluation:
    """Return directionality and repulsion of a suite's contrasts: of all, by kind of edit, and by a tag.

    Args:
        by: A tag; adds a group for each of its values.
        side: What an insertion or a deletion masks: the shared word to its "left" or "right", or the "bracket".
        multi_token: Keep targets of several tokens.
        cutoffs: High and low accuracy, then high and low repulsion, separated by commas.
        bootstrap: The bootstrap of the intervals.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.
    """
    cutoff_values, resampling = parse_cutoffs(cutoffs), bootstrap or Bootstrap()
    if side not in SIDES:
        raise SpecError(f"--side {side}: expected one of {', '.join(SIDES)}")
    if side == "bracket" and not multi_token:
        raise SpecError("--side bracket masks several words, and so several tokens: add --multi-token")
    target = score_target_contrasts(
        suite, model, side=side, multi_token=multi_token, by=by, engine=engine, progress=progress
    )
    edit_groups = group_contrasts(target, "edit", cutoffs=cutoff_values, bootstrap=resampling)
    # The first group is "all", which the groups of edits have too.
    tag_groups = group_contrasts(target, by, cutoffs=cutoff_values, bootstrap=resampling)[1:] if by else []
    ungrouped = sum(by not in contrast.tags for contrast in target.suite.contrasts) if by else 0
    fields = {"suite": target.suite.signature, "model": target.scores.signature, "multi_token": str(multi_token)}
    fields |= {"by": by} if by else {}
    resolved = resolve_sampling_unit(resampling, target.suite)
    signature = build_signature(
        "contrasts", fields | {"cutoffs": cutoffs, "ci": resolved.signature, "acceptability": __version__}
    )
    return ContrastEvaluation(
        target,
        tuple(edit_groups),
        tuple(tag_groups),
        tuple(describe_ungrouped_rows(ungrouped, by or "")),
        signature,
    )


def parse_cutoffs(text: str) -> Cutoffs:
    """Return cut-offs from four numbers separated by commas.

    >>> parse_cutoffs("0.8,0.35,0.7,0.4").accuracy_low
    0.35
    """
    try:
        accuracy_high, accuracy_low, repulsion_high, repulsion_low = map(float, text.split(","))
    except ValueError as error:
        raise SpecError(f"--cutoffs {text!r}: expected four numbers, as in {DEFAULT_CUTOFFS}") from error
    return Cutoffs(accuracy_high, accuracy_low, repulsion_high, repulsion_low)


def _mean_surprisal_bits(target_contrasts: TargetContrasts, by: str, group: str | None) -> tuple[float, float]:
    """Return the mean surprisal of the better and of the worse targets of a group."""
    contrasts = [
        contrast for contrast in target_contrasts.suite.contrasts if group in (None, f"{by}={contrast.tags.get(by)}")
    ]
    better, worse = (
        [-target_contrasts.scores[getattr(contrast, role)] for contrast in contrasts] for role in ("better", "worse")
    )
    return nats_to_bits(float(np.mean(better))), nats_to_bits(float(np.mean(worse)))


def _classify_interaction(directionality: Result, repulsion: Result, cutoffs: Cutoffs | None) -> str | None:
    if directionality.value is None or repulsion.value is None:
        return None
    return classify_learning(directionality.value, repulsion.value, cutoffs)


def nats_to_bits(nats: float) -> float:
    """Return a surprisal in bits.

    >>> round(nats_to_bits(2.0), 4)
    2.8854
    """
    return nats / log(2)


def _target_text(sentence: Sentence) -> str:
    return sentence.text[slice(*sentence.regions[TARGET_REGION])]


def _drop_unsupported(suite: Suite, model: Model) -> tuple[Suite, tuple[Exclusion, ...]]:
    """Return the suite without the contrasts whose target the model cannot score, and these as exclusions."""
    problems = {
        suite.sentences[sentence_index].id: problem for sentence_index, problem in _iter_unsupported(suite, model)
    }
    problem_of = {
        contrast.id: problems.get(contrast.better) or problems.get(contrast.worse) for contrast in suite.contrasts
    }
    excluded = tuple(
        Exclusion(problem_of[contrast.id] or "", contrast.tags["contrast"])
        for contrast in suite.contrasts
        if problem_of[contrast.id]
    )
    return _keep_contrasts(
        suite, [contrast for contrast in suite.contrasts if not problem_of[contrast.id]], excluded
    ), excluded


def _iter_unsupported(suite: Suite, model: Model) -> Iterator[tuple[int, str]]:
    """Yield the index of each sentence that the model can score as a whole but not on its target, and the reason."""
    # The same queries that the scoring builds later, so that an error found here would also occur there.
    queries = [
        Query(sentence.text, sentence.tags.get("context", ""), sentence.regions[TARGET_REGION])
        for sentence in suite.sentences
    ]
    # `encode` stops at the first query that it cannot take, so it is called again on the rest after each error.
    start = 0
    while start < len(queries):
        problem = _find_query_error(model, queries[start : start + _BATCH_SIZE])
        if problem is None:
            start += _BATCH_SIZE
            continue
        start += problem.index + 1
        # If the whole sentence fails too (it is too long), nothing is excluded: scoring will raise that error.
        if _find_query_error(model, [replace(queries[start - 1], target=None)]) is None:
            yield start - 1, problem.problem


def _find_query_error(model: Model, queries: Sequence[Query]) -> QueryError | None:
    try:
        model.encode(queries)
    except QueryError as error:
        return error
    return None


def _require_token_scores(output: object, model: str) -> TokenScores:
    if not isinstance(output, TokenScores):
        raise ModelError(f"{model} is a classifier and has no score of a target; use a language model")
    return output


def _tag_token_count(contrast: Contrast, token_scores: Mapping[str, TokenScores]) -> Contrast:
    most = max(len(token_scores[name].tokens) for name in (contrast.better, contrast.worse))
    return replace(contrast, tags={**contrast.tags, "tokens": str(most)})


def _is_split(contrast: Contrast, suite: Suite) -> bool:
    """Return whether a target consists of several tokens and is not a deliberate non-word."""
    members = suite.by_id[contrast.better], suite.by_id[contrast.worse]
    # A non-word such as "sleeped" is in no vocabulary, and therefore always several tokens.
    is_marked = any(tags.get("nonword") for tags in (contrast.tags, *(member.tags for member in members)))
    return contrast.tags["tokens"] != "1" and not is_marked


def _keep_contrasts(suite: Suite, contrasts: Sequence[Contrast], excluded: Sequence[Exclusion]) -> Suite:
    """Return the suite with only these contrasts and their sentences."""
    if not contrasts:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in count_exclusions(excluded).items())
        hint = " With --multi-token, targets of several tokens are scored too." if _MULTI_TOKEN in reasons else ""
        raise SuiteError(f"suite {suite.name!r}: no contrast is left to score: {reasons}.{hint}")
    names = {name for contrast in contrasts for name in (contrast.better, contrast.worse)}
    sentences = tuple(sentence for sentence in suite.sentences if sentence.id in names)
    return replace(suite, sentences=sentences, contrasts=tuple(contrasts))


def _sort_exclusions(excluded: Sequence[Exclusion], suite: Suite) -> tuple[Exclusion, ...]:
    # Contrasts are left out in three steps, but are listed in the order of the suite.
    contrast_order = {contrast.id: index for index, contrast in enumerate(suite.contrasts)}
    return tuple(sorted(excluded, key=lambda exclusion: contrast_order[exclusion.contrast]))


def _make_scores(suite: Suite, token_scores: Mapping[str, TokenScores], name: str, signature: str) -> Scores:
    reduction = LP()
    values = {sentence.id: reduction(token_scores[sentence.id]) for sentence in suite.sentences}
    # Distinguishes these scores from those of whole sentences, in tables and in signatures.
    region_suffix = f"#{TARGET_REGION}"
    scores = Scores(values, name, f"{reduction!r}{region_suffix}", f"{signature}.{reduction.signature}{region_suffix}")
    return collect_unknown_words(suite, token_scores).add_to(scores, omit=False)
