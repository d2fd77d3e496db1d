"""Linking functions from log-probabilities to ratings: MORCELA's constants fitted to ratings (Tjuatja et al. 2025).

MORCELA is (l - beta * u + gamma) / n. The beta and gamma whose scores correlate best (Pearson) with ratings
are those of a linear regression of ratings on l / n, u / n and 1 / n. The fit is evaluated by cross-validation,
on sentences that the constants were not fitted to, beside SLOR and the plain log-probability.

Folds keep sampling units together, such as the lexicalisations of a type: else the constants would be fitted to
sentences nearly like those that they are evaluated on. The difference between MORCELA and SLOR has an interval and a
test by the same units, both given the folds and the constants that were fitted in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.api.interface.arguments import (
    ModelLike,
    SuiteLike,
    accept_former_arguments,
    as_model,
    as_models,
    as_suite,
)
from acceptability.api.scoring import ProgressCallback, iter_model_outputs
from acceptability.api.vocabulary_coverage import (
    collect_unknown_words,
    describe_omitted,
    describe_unknown_words,
)
from acceptability.display import ShownMapping, ShownRow, format_html, format_plain
from acceptability.errors import MeasureError, ScoreError, SpecError, Undefined
from acceptability.measures.correlation import pearson
from acceptability.measures.rows import (
    check_count,
    compute_z_scores,
    ratings_are_z,
    require_rated,
    standardise_ratings,
)
from acceptability.protocols import Model, Statistic
from acceptability.reductions import Morcela, compute_unit_logprobs, count_unlisted_units, load_unigrams
from acceptability.specs import build_signature, format_spec
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.intervals import bootstrap_difference
from acceptability.stats.permutation import permutation_test
from acceptability.stats.sampling_units import (
    fit_unit_to_rows,
    note_few_units,
    parse_sampling_unit,
    sign_unit_count,
)
from acceptability.types import SINGLE_ROWS, Floats, ModelOutput, Sentence, Suite, TokenScores, Units

# The fitted function, and the two baselines that it is compared with.
LINKS = ("morcela", "slor", "lp")


@dataclass(frozen=True)
class LinkDifference:
    """How much better MORCELA predicts ratings than SLOR, on sentences that it was not fitted to.

    Args:
        value: The difference of the two cross-validated correlations.
        low, high: Its bootstrap interval by sampling units; None if there is none.
        p: The two-sided p value of a permutation test that swaps the two predictions of whole sampling units,
            standardised within folds; None without draws, or where it is undefined.
        notes: How the interval was computed if not as usual, or why there is none.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class MorcelaFit(ShownRow):
    """MORCELA fitted to all rated sentences, with its cross-validated correlation with ratings.

    Args:
        reduction: The reduction with the fitted constants, to score other suites with.
        correlations: The mean over folds of Pearson's r with ratings within a fold, for "morcela" (fitted
            on the other folds), "slor" and "lp".
        by_fold: The correlations within each fold.
        difference: That of MORCELA and SLOR, with interval and test.
        n: The number of rated sentences.
        notes: What was left out, and how many units the unigram table lacks.
    """

    reduction: Morcela
    correlations: Mapping[str, float]
    by_fold: Mapping[str, tuple[float, ...]]
    difference: LinkDifference
    n: int
    signature: str
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the fit as one flat row, for JSON and tables."""
        return {
            "beta": self.reduction.beta,
            "gamma": self.reduction.gamma,
            **{link: self.correlations[link] for link in LINKS},
            "morcela_minus_slor": self.difference.value,
            "low": self.difference.low,
            "high": self.difference.high,
            "p": self.difference.p,
            "n": self.n,
            "reduction": repr(self.reduction),
            "signature": self.signature,
        }


class MorcelaFits(ShownMapping[MorcelaFit]):
    """MORCELA fitted for each model, by the model's name: ``fits["trigram"].reduction``."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each model."""
        return [{"model": name, **fit.row()} for name, fit in self.items()]

    def _shown_rows(self) -> list[dict[str, object]]:
        hidden = MorcelaFit.hidden_columns
        return [{name: cell for name, cell in row.items() if name not in hidden} for row in self.rows()]

    def __repr__(self) -> str:
        return format_plain(self._shown_rows()) if self else "MorcelaFits({})"

    def _repr_html_(self) -> str:
        notes = dict.fromkeys(note for fit in self.values() for note in fit.notes)
        return format_html(self._shown_rows(), notes=tuple(notes))


@dataclass(frozen=True)
class LinkResampling:
    """The resampling behind the interval and the test of MORCELA − SLOR.

    Args:
        bootstrap: The bootstrap of the interval; its unit and its seed are those of the folds.
        draws: How many random swaps the permutation test draws; 0 omits the test.
    """

    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    draws: int = 2000


@dataclass(frozen=True, eq=False)
class _LogprobSums:
    """Per sentence: the summed log-probabilities of the model and of unigrams, and the number of units."""

    model: Floats
    unigrams: Floats
    units: Floats

    def take(self, rows: NDArray[np.bool_]) -> _LogprobSums:
        return _LogprobSums(self.model[rows], self.unigrams[rows], self.units[rows])


@accept_former_arguments(models="model", group="by")
def link(
    suite: SuiteLike,
    model: ModelLike | Sequence[ModelLike],
    unigrams: str,
    *,
    by: str | None = None,
    folds: int = 10,
    resamples: int | None = None,
    draws: int | None = None,
    seed: int = 0,
    resampling: LinkResampling | None = None,
    progress: ProgressCallback | None = None,
) -> MorcelaFits:
    """Return MORCELA fitted to the ratings of a suite for each model, by the model's name.

    Args:
        suite: A suite with ratings, its name, a file or a data frame.
        model: A language model or its spec, or a list of them.
        unigrams: The unigram table: ``wordfreq:en``, or the path of a file.
        by: The tag whose sentences stay in one fold, such as ``item``; by default the suite's sampling unit, and
            "row" or empty if sentences are independent.
        folds: The number of folds.
        resamples: How often units are resampled for the interval of MORCELA − SLOR; 1000 by default.
        draws: How often the two predictions are swapped for its test; 2000 by default, and 0 omits the test.
        seed: The seed for shuffling the groups before they are assigned to folds, and of the resampling.
        resampling: The settings of the resampling in one object.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.
    """
    if resampling is None:
        resampling = LinkResampling(
            Bootstrap(resamples=1000 if resamples is None else resamples, seed=seed), 2000 if draws is None else draws
        )
    elif resamples is not None or draws is not None:
        raise SpecError("link: resampling has resamples and draws: give it or these, not both")
    suite = as_suite(suite)
    # Both only for their checks: a wrong tag or a missing table must be reported before the models run.
    assign_folds(suite, group=by, folds=folds, seed=seed)
    load_unigrams(unigrams)
    loaded = [as_model(one) for one in as_models(model)]
    outputs = {
        name: {sentence.id: output for sentence, output in iter_model_outputs(suite, given, progress=progress)}
        for given, (name, _) in zip(as_models(model), loaded, strict=True)
    }
    fits = MorcelaFits()
    for name, one in loaded:
        part, notes = _omit_unknown(suite, outputs[name], one)
        options: dict[str, Any] = {"group": by, "folds": folds, "seed": seed, "resampling": resampling}
        options["model"] = one.signature
        fit = fit_morcela(part, outputs[name], unigrams, **options)
        fits[name] = replace(fit, notes=(*notes, *fit.notes))
    return fits


def _omit_unknown(suite: Suite, outputs: Mapping[str, ModelOutput], model: Model) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite without the sentences that a model with ``unknown='omit'`` leaves out, and a note on it."""
    words = collect_unknown_words(suite, outputs).words if model.omits_unknown else {}
    if not words:
        return suite, ()
    kept = {sentence.id for sentence in suite.sentences} - set(words)
    # Without the pairs between them, of which the fit knows nothing.
    return suite.restrict(kept), (describe_omitted(replace(suite, contrasts=()), words),)


def fit_morcela(
    suite: Suite,
    outputs: Mapping[str, ModelOutput],
    unigrams: str,
    *,
    group: str | None = None,
    folds: int = 10,
    seed: int = 0,
    resampling: LinkResampling | None = None,
    model: str = "",
) -> MorcelaFit:
    """Return MORCELA's constants for a suite with ratings, and their correlation with ratings out of fold.

    Args:
        suite: A suite with ratings.
        outputs: The model's output for each sentence id.
        unigrams: The unigram table: ``wordfreq:en``, or the path of a file.
        group: The tag whose sentences stay in one fold, such as ``item``; by default the suite's sampling unit, and
            "row" or empty if sentences are independent.
        folds: The number of folds; with fewer folds, each correlation rests on more sentences.
        seed: The seed for shuffling the groups before they are assigned to folds.
        resampling: How often units are resampled for the interval of MORCELA − SLOR, and swapped for its test.
        model: The signature of the model, which becomes part of the result's.
    """
    # First, because it checks the arguments and is fast.
    fold = assign_folds(suite, group=group, folds=folds, seed=seed)
    tag, drawn = _choose_tag(suite, group), resampling or LinkResampling()
    rated_sentences, notes = require_rated(suite, "fit_morcela")
    ids = [sentence.id for sentence in rated_sentences]
    human_ratings = standardise_ratings(suite)
    ratings = np.array([human_ratings[sentence_id] for sentence_id in ids])
    sums = _sum_logprobs(ids, outputs, unigrams)
    fold_correlations: dict[str, list[float]] = {name: [] for name in LINKS}
    held_out = {name: np.empty(len(ids)) for name in LINKS}
    # MORCELA is fitted on the other folds, while SLOR and lp have nothing to fit: so all three are compared on
    # sentences that did not influence them.
    for number in range(folds):
        in_fold = fold == number
        scores = _compute_links(
            sums.take(in_fold), *fit_beta_gamma(ratings[~in_fold], *_list_columns(sums.take(~in_fold)))
        )
        for name in LINKS:
            fold_correlations[name].append(pearson(scores[name], ratings[in_fold]))
            # On one scale over folds, whose constants differ; a correlation within a fold stays as it is.
            held_out[name][in_fold] = compute_z_scores(scores[name], f"scores of {name} in a fold")
    # The folds only evaluate the method; the constants to use elsewhere are fitted to all sentences.
    beta, gamma = fit_beta_gamma(ratings, *_list_columns(sums))
    reduction = Morcela(unigrams, beta, gamma)
    rows = [
        Units(
            tuple(ids),
            {"score": held_out[name], "rating": ratings, "fold": fold.astype(np.float64)},
            tuple(sentence.tags for sentence in rated_sentences),
        )
        for name in LINKS[:2]
    ]
    bootstrap = replace(drawn.bootstrap, by=tag, within="", seed=seed)
    difference, method = _test_difference(rows[0], rows[1], bootstrap, drawn.draws)
    bootstrap = replace(bootstrap, method=method)
    return MorcelaFit(
        reduction,
        {name: float(np.mean(values)) for name, values in fold_correlations.items()},
        {name: tuple(values) for name, values in fold_correlations.items()},
        difference,
        len(ids),
        build_signature(
            format_spec("fit_morcela", {"group": tag, "folds": folds, "seed": seed}),
            {
                "suite": suite.signature,
                **({"model": model} if model else {}),
                "reduction": reduction.signature,
                "ratings": "z as given" if ratings_are_z(suite) else "standardised(ddof=0)",
                "n": str(len(ids)),
                **sign_unit_count(rows[0], bootstrap),
                "folds": f"{folds}(by={tag or SINGLE_ROWS},sorted,shuffled,seed={seed},mean r within folds)",
                # Of the difference only: a correlation is a mean over folds, each fitted on the others.
                "ci": f"paired {bootstrap.signature}" if bootstrap.resamples else "none",
                "test": _sign_test(bootstrap, drawn.draws),
                "acceptability": __version__,
            },
        ),
        (
            *notes,
            *_note_single_rows(suite, tag),
            *note_few_units(rows[0], bootstrap),
            *_note_unlisted_units(ids, outputs, unigrams),
            *_note_unknown_words(rated_sentences, outputs),
        ),
    )


def _choose_tag(suite: Suite, group: str | None) -> str:
    """Return the tag whose sentences stay in one fold; empty for single sentences."""
    by, _ = parse_sampling_unit(suite.unit if group is None else group)
    return by or ""


def _note_single_rows(suite: Suite, tag: str) -> tuple[str, ...]:
    if tag or not suite.unit:
        return ()
    return (f"folds divide single sentences, and not the suite's sampling unit, {suite.unit!r}",)


def _sign_test(bootstrap: Bootstrap, draws: int) -> str:
    if not draws:
        return "none"
    drawn = f"draws={draws},by={bootstrap.by or SINGLE_ROWS},seed={bootstrap.seed}"
    return f"permutation(swap,standardised within folds,two-sided,{drawn})"


@dataclass(frozen=True)
class _FoldCorrelation(Statistic):
    """The mean over folds of Pearson's r with ratings within a fold.

    Args:
        folds: The number of folds; a resample in which one has no variation is undefined.
    """

    folds: int

    def value(self, units: Units) -> float:
        """Return the mean over folds."""
        # All folds at once by sums, since a resample has thousands of rows: in a loop it would take ten times as long.
        fold = units["fold"].astype(np.int64)
        counts = np.bincount(fold, minlength=self.folds)
        if counts.min() < 2:
            raise Undefined("a fold has fewer than two sentences")
        x, y = (
            values - (np.bincount(fold, values, minlength=self.folds) / counts)[fold]
            for values in (units["score"], units["rating"])
        )
        squares = np.bincount(fold, x * x, minlength=self.folds) * np.bincount(fold, y * y, minlength=self.folds)
        if not (squares > 0).all():
            raise Undefined("one side has the same value in every sentence of a fold")
        return float((np.bincount(fold, x * y, minlength=self.folds) / np.sqrt(squares)).mean())


def _test_difference(morcela: Units, slor: Units, bootstrap: Bootstrap, draws: int) -> tuple[LinkDifference, str]:
    """Return the difference of two cross-validated correlations by sampling units, and the method of its interval."""
    correlation = _FoldCorrelation(int(morcela["fold"].max()) + 1)
    bootstrap = fit_unit_to_rows(bootstrap, morcela)
    interval = bootstrap_difference(correlation, morcela, slor, bootstrap)
    p, notes = None, (interval.note,) if interval.note else ()
    if draws:
        try:
            by, seed = bootstrap.by or "", bootstrap.seed
            p = permutation_test(correlation, morcela, slor, by=by, draws=draws, seed=seed).p
        except Undefined as error:
            notes = (*notes, f"no permutation test: {error}")
    value = correlation.value(morcela) - correlation.value(slor)
    return LinkDifference(value, interval.low, interval.high, p, notes), interval.method or bootstrap.method


def _note_unknown_words(sentences: Sequence[Sentence], outputs: Mapping[str, ModelOutput]) -> tuple[str, ...]:
    # Sentences without the pairs between them, of which the fit knows nothing.
    rated = Suite("rated", tuple(sentences))
    words = collect_unknown_words(rated, outputs).words
    return (describe_unknown_words(rated, words),) if words else ()


def assign_folds(suite: Suite, *, group: str | None = None, folds: int = 10, seed: int = 0) -> NDArray[np.int64]:
    """Return the fold of each rated sentence; raise an error for impossible folds, before any model runs.

    Args:
        group: The tag whose sentences stay in one fold; by default the suite's sampling unit, and "row" or empty for
            single sentences.
    """
    check_count("fit_morcela: folds", folds, 2)
    check_count("fit_morcela: seed", seed, 0)
    rated_sentences, _ = require_rated(suite, "fit_morcela")
    tag = _choose_tag(suite, group)
    return _assign_group_folds(
        [sentence.tags.get(tag, "") if tag else sentence.id for sentence in rated_sentences], tag, folds, seed
    )


def _note_unlisted_units(ids: list[str], outputs: Mapping[str, ModelOutput], unigrams: str) -> Iterator[str]:
    """Yield a note on the number of units that the unigram table does not list."""
    table = load_unigrams(unigrams)
    token_scores = [output for sentence_id in ids if isinstance(output := outputs[sentence_id], TokenScores)]
    unlisted, units = np.sum([count_unlisted_units(output, table) for output in token_scores], axis=0).tolist()
    if unlisted:
        yield f"{unlisted} of {units} {table.unit}s are not in {table.signature}"


def fit_beta_gamma(ratings: Floats, model: Floats, unigrams: Floats, units: Floats) -> tuple[float, float]:
    """Return the beta and gamma under which (l - beta * u + gamma) / n correlates best with ratings.

    >>> l, u = np.array([-9.0, -8.0, -20.0, -7.0, -30.0]), np.array([-5.0, -9.0, -16.0, -6.0, -20.0])
    >>> n = np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    >>> beta, gamma = fit_beta_gamma((l - 0.5 * u + 3) / n, l, u, n)
    >>> round(beta, 6), round(gamma, 6)
    (0.5, 3.0)
    """
    predictors = np.column_stack([model / units, unigrams / units, 1 / units])
    # Pearson's r ignores the mean, so there is no intercept to fit. Standardising the predictors, whose sizes differ by
    # orders of magnitude, makes the rank that lstsq determines meaningful.
    centred = predictors - predictors.mean(axis=0)
    spread = centred.std(axis=0)
    if not (spread > 0).all():
        raise Undefined("beta and gamma are undetermined: sentences need different lengths and different words")
    weights, _, rank, _ = np.linalg.lstsq(centred / spread, ratings - ratings.mean(), rcond=None)
    if rank < predictors.shape[1]:
        raise Undefined(f"beta and gamma are undetermined by {len(ratings)} sentences: too few, or too similar")
    by_model, by_unigrams, by_length = (weights / spread).tolist()
    # Dividing by this weight gives MORCELA's form, and a negative one would turn the order of the scores round.
    if not by_model > 0:
        raise Undefined("ratings do not rise with the model's log-probabilities, so no MORCELA fits them")
    # Multiplying l/n * a + u/n * b + 1/n * c by 1/a leaves the correlation as it is and gives MORCELA's form.
    return -by_unigrams / by_model, by_length / by_model


def _compute_links(sums: _LogprobSums, beta: float, gamma: float) -> dict[str, Floats]:
    return {
        "morcela": (sums.model - beta * sums.unigrams + gamma) / sums.units,
        "slor": (sums.model - sums.unigrams) / sums.units,
        "lp": sums.model,
    }


def _list_columns(sums: _LogprobSums) -> tuple[Floats, Floats, Floats]:
    return sums.model, sums.unigrams, sums.units


def _sum_logprobs(ids: list[str], outputs: Mapping[str, ModelOutput], unigrams: str) -> _LogprobSums:
    table = load_unigrams(unigrams)
    rows = []
    for sentence_id in ids:
        output = outputs.get(sentence_id)
        if not isinstance(output, TokenScores):
            problem = "nothing" if output is None else "a classifier's logits"
            raise ScoreError(f"fit_morcela needs log-probabilities of sentence {sentence_id!r}; there is {problem}")
        # Sums suffice: MORCELA is linear in the log-probabilities of a sentence.
        model, single = compute_unit_logprobs(output, table)
        rows.append((model.sum(), single.sum(), float(len(model))))
    return _LogprobSums(*np.array(rows, dtype=np.float64).T)


def _assign_group_folds(groups: list[str], tag: str, folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each sentence: groups are sorted, shuffled, and assigned to the folds in turn."""
    if "" in groups:
        raise MeasureError(f"cannot make folds by {tag!r}: {groups.count('')} rated sentences lack that tag")
    # Sorted first, so that the folds do not depend on the order of the sentences.
    names = np.random.default_rng(seed).permutation(sorted(set(groups)))
    if len(names) < folds:
        raise MeasureError(f"{folds} folds need as many groups; there are {len(names)}. Give fewer folds.")
    fold_of = {str(name): index % folds for index, name in enumerate(names)}
    folds_of_sentences = np.array([fold_of[group] for group in groups], dtype=np.int64)
    # Pearson's r within a fold needs two sentences.
    if np.bincount(folds_of_sentences).min() < 2:
        raise MeasureError(f"{folds} folds of {len(groups)} sentences: each needs two at least. Give fewer folds.")
    return folds_of_sentences
