"""Linking functions from log-probabilities to ratings, whose constants are fitted to ratings: MORCELA and SLLN-LP.

MORCELA (Tjuatja et al. 2025) is (l - beta * u + gamma) / n. The beta and gamma whose scores correlate best (Pearson)
with ratings are those of a linear regression of ratings on l / n, u / n and 1 / n. The fit is evaluated by
cross-validation, on sentences that the constants were not fitted to, beside SLOR and the plain log-probability.

Folds keep sampling units together, such as the lexicalisations of a type: else the constants would be fitted to
sentences nearly like those that they are evaluated on. The difference between MORCELA and SLOR has an interval and a
test by the same units, both given the folds and the constants that were fitted in them.

SLLN-LP (Liu et al. 2024) is l / n ^ alpha. Its alpha is the one under which scores correlate best with ratings, and is
evaluated in the same way, beside the mean log-probability (alpha = 1) and the plain one (alpha = 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

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
from acceptability.reductions import Morcela, SllnLP, compute_unit_logprobs, count_unlisted_units, load_unigrams
from acceptability.specs import build_signature, format_spec
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.intervals import bootstrap_difference
from acceptability.stats.permutation import permutation_test
from acceptability.stats.samples import check_choice
from acceptability.stats.sampling_units import (
    fit_unit_to_rows,
    note_few_units,
    parse_sampling_unit,
    sign_unit_count,
)
from acceptability.types import SINGLE_ROWS, Floats, ModelOutput, Sentence, Suite, TokenScores, Units

# The fitted function, and the two baselines that it is compared with; it is tested against the first of them.
LINKS = ("morcela", "slor", "lp")
SLLN_LINKS = ("slln_lp", "mean_lp", "lp")


@dataclass(frozen=True)
class LinkDifference:
    """How much better a fitted function predicts ratings than its baseline, on sentences that it was not fitted to.

    The baseline of MORCELA is SLOR, that of SLLN-LP the mean log-probability.

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


ReductionType = TypeVar("ReductionType", Morcela, SllnLP)


@dataclass(frozen=True, repr=False)
class _LinkFit(ShownRow, Generic[ReductionType]):
    """A linking function fitted to all rated sentences, with its cross-validated correlation with ratings.

    Args:
        reduction: The reduction with the fitted constants, to score other suites with.
        correlations: The mean over folds of Pearson's r with ratings within a fold, for each of ``links``; the first
            is fitted on the other folds.
        by_fold: The correlations within each fold.
        difference: That of the fitted function and its baseline, with interval and test.
        n: The number of rated sentences.
        notes: Remarks for the reader.
    """

    # As in LINKS and SLLN_LINKS; and the names of what was fitted.
    links: ClassVar[tuple[str, ...]]
    constants: ClassVar[tuple[str, ...]]

    reduction: ReductionType
    correlations: Mapping[str, float]
    by_fold: Mapping[str, tuple[float, ...]]
    difference: LinkDifference
    n: int
    signature: str
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the fit as one flat row, for JSON and tables."""
        fitted, baseline, _ = self.links
        return {
            **{name: getattr(self.reduction, name) for name in self.constants},
            **{link: self.correlations[link] for link in self.links},
            f"{fitted}_minus_{baseline}": self.difference.value,
            "low": self.difference.low,
            "high": self.difference.high,
            "p": self.difference.p,
            "n": self.n,
            "reduction": repr(self.reduction),
            "signature": self.signature,
        }


@dataclass(frozen=True, repr=False)
class MorcelaFit(_LinkFit[Morcela]):
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

    links = LINKS
    constants = ("beta", "gamma")


@dataclass(frozen=True, repr=False)
class SllnFit(_LinkFit[SllnLP]):
    """SLLN-LP fitted to all rated sentences, with its cross-validated correlation with ratings.

    Args:
        reduction: The reduction with the fitted alpha, to score other suites with.
        correlations: The mean over folds of Pearson's r with ratings within a fold, for "slln_lp" (fitted
            on the other folds), "mean_lp" and "lp".
        by_fold: The correlations within each fold.
        difference: That of SLLN-LP and the mean log-probability, with interval and test.
        n: The number of rated sentences.
        notes: What was left out, and whether alpha lies at an end of its range.
    """

    links = SLLN_LINKS
    constants = ("alpha",)


FitType = TypeVar("FitType", MorcelaFit, SllnFit)


class _LinkFits(ShownMapping[FitType]):
    """Fits by the name of the model."""

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each model."""
        return [{"model": name, **fit.row()} for name, fit in self.items()]

    def _shown_rows(self) -> list[dict[str, object]]:
        hidden = ShownRow.hidden_columns
        return [{name: cell for name, cell in row.items() if name not in hidden} for row in self.rows()]

    def __repr__(self) -> str:
        return format_plain(self._shown_rows()) if self else f"{type(self).__name__}({{}})"

    def _repr_html_(self) -> str:
        notes = dict.fromkeys(note for fit in self.values() for note in fit.notes)
        return format_html(self._shown_rows(), notes=tuple(notes))


class MorcelaFits(_LinkFits[MorcelaFit]):
    """MORCELA fitted for each model, by the model's name: ``fits["trigram"].reduction``."""


class SllnFits(_LinkFits[SllnFit]):
    """SLLN-LP fitted for each model, by the model's name: ``fits["trigram"].reduction``."""


@dataclass(frozen=True)
class LinkResampling:
    """The resampling behind the interval and the test of the difference from the baseline.

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


@overload
def link(
    suite: SuiteLike,
    model: ModelLike | Sequence[ModelLike],
    unigrams: str,
    *,
    fit: Literal["morcela"] = "morcela",
    by: str | None = None,
    folds: int = 10,
    resamples: int | None = None,
    draws: int | None = None,
    seed: int = 0,
    resampling: LinkResampling | None = None,
    progress: ProgressCallback | None = None,
) -> MorcelaFits: ...


@overload
def link(
    suite: SuiteLike,
    model: ModelLike | Sequence[ModelLike],
    unigrams: None = None,
    *,
    fit: Literal["slln_lp"],
    by: str | None = None,
    folds: int = 10,
    resamples: int | None = None,
    draws: int | None = None,
    seed: int = 0,
    resampling: LinkResampling | None = None,
    progress: ProgressCallback | None = None,
) -> SllnFits: ...


@accept_former_arguments(models="model", group="by")
def link(
    suite: SuiteLike,
    model: ModelLike | Sequence[ModelLike],
    unigrams: str | None = None,
    *,
    fit: str = "morcela",
    by: str | None = None,
    folds: int = 10,
    resamples: int | None = None,
    draws: int | None = None,
    seed: int = 0,
    resampling: LinkResampling | None = None,
    progress: ProgressCallback | None = None,
) -> MorcelaFits | SllnFits:
    """Return MORCELA, or SLLN-LP, fitted to the ratings of a suite for each model, by the model's name.

    Args:
        suite: A suite with ratings, its name, a file or a data frame.
        model: A language model or its spec, or a list of them.
        unigrams: For MORCELA, the unigram table: ``wordfreq:en``, or the path of a file.
        fit: What is fitted, "morcela" or "slln_lp".
        by: The tag whose sentences stay in one fold, such as ``item``; by default the suite's sampling unit, and
            "row" or empty if sentences are independent.
        folds: The number of folds.
        resamples: How often units are resampled for the interval of the difference; 1000 by default.
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
    _check_fit(fit, unigrams)
    suite = as_suite(suite)
    # Both only for their checks: a wrong tag or a missing table must be reported before the models run.
    assign_folds(suite, group=by, folds=folds, seed=seed)
    if unigrams is not None:
        load_unigrams(unigrams)
    loaded = [as_model(one) for one in as_models(model)]
    outputs = {
        name: {sentence.id: output for sentence, output in iter_model_outputs(suite, given, progress=progress)}
        for given, (name, _) in zip(as_models(model), loaded, strict=True)
    }
    options: dict[str, Any] = {"group": by, "folds": folds, "seed": seed, "resampling": resampling}
    morcela_fits, slln_fits = MorcelaFits(), SllnFits()
    for name, one in loaded:
        part, notes = _omit_unknown(suite, outputs[name], one)
        options["model"] = one.signature
        if unigrams is not None:
            morcela_fit = fit_morcela(part, outputs[name], unigrams, **options)
            morcela_fits[name] = replace(morcela_fit, notes=(*notes, *morcela_fit.notes))
        else:
            slln_fit = fit_slln_lp(part, outputs[name], **options)
            slln_fits[name] = replace(slln_fit, notes=(*notes, *slln_fit.notes))
    return slln_fits if unigrams is None else morcela_fits


def _check_fit(fit: str, unigrams: str | None) -> None:
    check_choice("fit", fit, ("morcela", "slln_lp"))
    if fit == "slln_lp" and unigrams is not None:
        raise SpecError("link: slln_lp has no unigram table; leave unigrams out")
    if fit == "morcela" and unigrams is None:
        raise SpecError(
            "link: MORCELA needs a table of unigrams: wordfreq:en, or a file. SLLN-LP needs none: fit='slln_lp' "
            "(--fit slln_lp)"
        )


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

    # MORCELA is fitted on the other folds, while SLOR and lp have nothing to fit: so all three are compared on
    # sentences that did not influence them.
    def score_fold(in_fold: NDArray[np.bool_]) -> dict[str, Floats]:
        constants = fit_beta_gamma(ratings[~in_fold], *_list_columns(sums.take(~in_fold)))
        return _compute_links(sums.take(in_fold), *constants)

    validation = _cross_validate(ratings, fold, score_fold, LINKS)
    # The folds only evaluate the method; the constants to use elsewhere are fitted to all sentences.
    beta, gamma = fit_beta_gamma(ratings, *_list_columns(sums))
    reduction = Morcela(unigrams, beta, gamma)
    rows, difference, bootstrap = _compare_with_baseline(validation, rated_sentences, tag, drawn, seed)
    settings = {"group": tag, "folds": folds, "seed": seed}
    fields = {"model": model} if model else {}
    fields |= {"reduction": reduction.signature, **_sign_fit(suite, rows, bootstrap, drawn.draws, settings)}
    return MorcelaFit(
        reduction,
        validation.means,
        validation.by_fold,
        difference,
        len(ids),
        build_signature(format_spec("fit_morcela", settings), {"suite": suite.signature, **fields}),
        (
            *notes,
            *_note_single_rows(suite, tag),
            *note_few_units(rows, bootstrap),
            *_note_unlisted_units(ids, outputs, unigrams),
            *_note_unknown_words(rated_sentences, outputs),
        ),
    )


def fit_slln_lp(
    suite: Suite,
    outputs: Mapping[str, ModelOutput],
    *,
    group: str | None = None,
    folds: int = 10,
    seed: int = 0,
    resampling: LinkResampling | None = None,
    model: str = "",
) -> SllnFit:
    """Return SLLN-LP's alpha for a suite with ratings, and its correlation with ratings out of fold.

    Args:
        suite: A suite with ratings.
        outputs: The model's output for each sentence id.
        group: The tag whose sentences stay in one fold, such as ``item``; by default the suite's sampling unit, and
            "row" or empty if sentences are independent.
        folds: The number of folds; with fewer folds, each correlation rests on more sentences.
        seed: The seed for shuffling the groups before they are assigned to folds.
        resampling: How often units are resampled for the interval of the difference from the mean log-probability, and
            swapped for its test.
        model: The signature of the model, which becomes part of the result's.
    """
    fold = assign_folds(suite, group=group, folds=folds, seed=seed)
    tag, drawn = _choose_tag(suite, group), resampling or LinkResampling()
    rated_sentences, notes = require_rated(suite, "fit_slln_lp")
    human_ratings = standardise_ratings(suite)
    ratings = np.array([human_ratings[sentence.id] for sentence in rated_sentences])
    token_scores = [_require_logprobs(outputs, sentence.id, "fit_slln_lp") for sentence in rated_sentences]
    sums = np.array([output.logprobs.sum(dtype=np.float64) for output in token_scores])
    lengths = np.array([float(len(output.logprobs)) for output in token_scores])

    def score_fold(in_fold: NDArray[np.bool_]) -> dict[str, Floats]:
        fitted = fit_alpha(ratings[~in_fold], sums[~in_fold], lengths[~in_fold])
        model_sums, counts = sums[in_fold], lengths[in_fold]
        return {"slln_lp": model_sums / counts**fitted, "mean_lp": model_sums / counts, "lp": model_sums}

    validation = _cross_validate(ratings, fold, score_fold, SLLN_LINKS)
    reduction = SllnLP(fit_alpha(ratings, sums, lengths))
    rows, difference, bootstrap = _compare_with_baseline(validation, rated_sentences, tag, drawn, seed)
    settings = {"group": tag, "folds": folds, "seed": seed}
    fields = {"model": model} if model else {}
    fields |= {"reduction": reduction.signature, **_sign_fit(suite, rows, bootstrap, drawn.draws, settings)}
    return SllnFit(
        reduction,
        validation.means,
        validation.by_fold,
        difference,
        len(ratings),
        build_signature(format_spec("fit_slln_lp", settings), {"suite": suite.signature, **fields}),
        (
            *notes,
            *_note_end_of_range(reduction.alpha),
            *_note_single_rows(suite, tag),
            *note_few_units(rows, bootstrap),
            *_note_unknown_words(rated_sentences, outputs),
        ),
    )


def _note_end_of_range(alpha: float) -> tuple[str, ...]:
    if 0 < alpha < 1:
        return ()
    same = "the mean log-probability" if alpha else "the plain log-probability"
    return (f"alpha lies at the end of its range: no exponent between fits these ratings better than {same}",)


@dataclass(frozen=True)
class _Validation:
    """What a cross-validation gave: the correlations within folds, and the scores of held-out sentences.

    Args:
        by_fold: Pearson's r within each fold, for each linking function.
        held_out: The scores, standardised within folds, of each function.
        ratings: The ratings of the sentences.
        fold: The fold of each sentence.
    """

    by_fold: dict[str, tuple[float, ...]]
    held_out: dict[str, Floats]
    ratings: Floats
    fold: NDArray[np.int64]

    @property
    def means(self) -> dict[str, float]:
        return {name: float(np.mean(values)) for name, values in self.by_fold.items()}


def _cross_validate(
    ratings: Floats,
    fold: NDArray[np.int64],
    score_fold: Callable[[NDArray[np.bool_]], Mapping[str, Floats]],
    links: Sequence[str],
) -> _Validation:
    """Return the correlations with ratings within folds.

    Args:
        score_fold: From a mask of the sentences of a fold to their scores by each linking function, whose constants are
            fitted to the others.
    """
    correlations: dict[str, list[float]] = {name: [] for name in links}
    held_out = {name: np.empty(len(ratings)) for name in links}
    for number in range(int(fold.max()) + 1):
        in_fold = fold == number
        scores = score_fold(in_fold)
        for name in links:
            correlations[name].append(pearson(scores[name], ratings[in_fold]))
            # On one scale over folds, whose constants differ; a correlation within a fold stays as it is.
            held_out[name][in_fold] = compute_z_scores(scores[name], f"scores of {name} in a fold")
    return _Validation({name: tuple(values) for name, values in correlations.items()}, held_out, ratings, fold)


def _compare_with_baseline(
    validation: _Validation, sentences: Sequence[Sentence], tag: str, drawn: LinkResampling, seed: int
) -> tuple[Units, LinkDifference, Bootstrap]:
    """Return the rows of the fitted function, its difference from the first baseline, and how that was resampled."""
    fitted, baseline = (
        Units(
            tuple(sentence.id for sentence in sentences),
            {"score": scores, "rating": validation.ratings, "fold": validation.fold.astype(np.float64)},
            tuple(sentence.tags for sentence in sentences),
        )
        for scores in list(validation.held_out.values())[:2]
    )
    bootstrap = replace(drawn.bootstrap, by=tag, within="", seed=seed)
    difference, method = _test_difference(fitted, baseline, bootstrap, drawn.draws)
    return fitted, difference, replace(bootstrap, method=method)


def _sign_fit(
    suite: Suite, rows: Units, bootstrap: Bootstrap, draws: int, settings: Mapping[str, object]
) -> dict[str, str]:
    """Return the fields of a signature that say how a function was fitted, evaluated and tested."""
    by, folds, seed = settings["group"] or SINGLE_ROWS, settings["folds"], settings["seed"]
    return {
        "ratings": "z as given" if ratings_are_z(suite) else "standardised(ddof=0)",
        "n": str(len(rows.ids)),
        **sign_unit_count(rows, bootstrap),
        "folds": f"{folds}(by={by},sorted,shuffled,seed={seed},mean r within folds)",
        # Of the difference only: a correlation is a mean over folds, each fitted on the others.
        "ci": f"paired {bootstrap.signature}" if bootstrap.resamples else "none",
        "test": _sign_test(bootstrap, draws),
        "acceptability": __version__,
    }


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


# Fine enough to find the highest of several maxima, which a search by intervals alone may miss.
_ALPHA_GRID = np.linspace(0, 1, 101)


def fit_alpha(ratings: Floats, model: Floats, lengths: Floats) -> float:
    """Return the alpha from 0 to 1 under which l / n ^ alpha correlates best with ratings.

    >>> l, n = np.array([-9.0, -8.0, -20.0, -7.0, -30.0]), np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    >>> round(fit_alpha(l / n**0.25, l, n), 6)
    0.25
    """
    if not lengths.std() > 0:
        raise Undefined("alpha is undetermined: all sentences have the same number of tokens")

    def lose(alpha: float) -> float:
        return -pearson(model / lengths**alpha, ratings)

    losses = [lose(alpha) for alpha in _ALPHA_GRID.tolist()]
    best = int(np.argmin(losses))
    low, high = _ALPHA_GRID[max(best - 1, 0)], _ALPHA_GRID[min(best + 1, len(_ALPHA_GRID) - 1)]
    refined = minimize_scalar(lose, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    # The search never tries the ends of its interval, of which 0 and 1 mean something; so rounding does not beat them.
    grid = float(_ALPHA_GRID[best])
    alpha = float(refined.x) if refined.fun < losses[best] - 1e-12 else grid
    if not lose(alpha) < 0:
        raise Undefined("ratings do not rise with the model's log-probabilities, so no SLLN-LP fits them")
    return alpha


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
        output = _require_logprobs(outputs, sentence_id, "fit_morcela")
        # Sums suffice: MORCELA is linear in the log-probabilities of a sentence.
        model, single = compute_unit_logprobs(output, table)
        rows.append((model.sum(), single.sum(), float(len(model))))
    return _LogprobSums(*np.array(rows, dtype=np.float64).T)


def _require_logprobs(outputs: Mapping[str, ModelOutput], sentence_id: str, function: str) -> TokenScores:
    output = outputs.get(sentence_id)
    if isinstance(output, TokenScores):
        return output
    problem = "nothing" if output is None else "a classifier's logits"
    raise ScoreError(f"{function} needs log-probabilities of sentence {sentence_id!r}; there is {problem}")


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
