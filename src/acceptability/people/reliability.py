"""Inter-rater agreement and reliability, and the noise ceiling that they set for a model.

Reliability: split-half with the Spearman-Brown correction, leave-one-out, Cronbach's alpha, intraclass correlations and
Krippendorff's alpha. Agreement: of binary answers with labels, with the majority, and among raters (accuracy and
Matthews' correlation). Tables of answers have a row per participant and a column per sentence, with nan for a missing
answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.classification import matthews
from acceptability.measures.correlation import average_ranks, pearson
from acceptability.people.kappa import Kappa, cohen_kappa, fleiss_kappa
from acceptability.people.ratings import Ratings
from acceptability.people.responses import Bools, Responses
from acceptability.stats.effects.effect_sizes import (
    FELDT,
    ICC_KINDS,
    EffectSize,
    MeanSquares,
    alpha_interval,
    icc_interval,
)
from acceptability.types import Floats, Scores, restrict_to_scored

ParticipantIndices = NDArray[np.int64]

# With more undefined splits than this, the mean of the others would be that of a selection.
_MIN_DEFINED_SHARE = 0.95
# Sums of squares this small, relative to all, are 0 but for rounding.
_ROUNDING = 1e-12
# 40 values are the fewest of which 95 % leaves out one at either end.
_MIN_SPLITS = 40


@dataclass(frozen=True)
class SplitHalf:
    """Split-half reliability: the agreement of two random halves of the participants, over many splits.

    Args:
        reliability: The mean of the corrected correlations.
        low: The lower end of their central range. The range reflects the choice of halves, and not how much another
            sample of participants would differ.
        high: The upper end of the range.
        correlation: The mean correlation of two halves, not corrected.
        splits: The number of random splits.
        undefined: The number of splits without a correlation.
    """

    reliability: float
    low: float
    high: float
    correlation: float
    splits: int
    undefined: int = 0


@dataclass(frozen=True)
class LeaveOneOut:
    """The correlation of each participant with the mean of the others; None if undefined."""

    correlations: tuple[float | None, ...]

    @property
    def mean(self) -> float:
        """The mean correlation, over those that are defined."""
        return float(np.mean([value for value in self.correlations if value is not None]))


@dataclass(frozen=True)
class NoiseCeiling:
    """A model's correlation with ratings, relative to the highest that noise in the ratings allows.

    Args:
        correlation: The correlation of the model's scores with mean ratings.
        reliability: The reliability of the mean ratings.
        ceiling: The square root of the reliability: the expected correlation of the true ratings with these means.
        share: The correlation divided by the ceiling (Spearman's correction for attenuation); it may exceed 1 by
            chance.
    """

    correlation: float
    reliability: float
    ceiling: float
    share: float


def split_half_reliability(values: Floats, *, splits: int = 1000, seed: int = 0, level: float = 0.95) -> SplitHalf:
    """Return the split-half reliability, corrected to the full number of participants by the Spearman-Brown formula.

    With an odd number of participants one half is larger by one. A sentence without answers in one of the halves is
    dropped from that split.

    Args:
        values: A row per participant, a column per sentence; nan for a missing answer.
        splits: The number of random splits.
        seed: The seed of the splits.
        level: The share of the corrected correlations between ``low`` and ``high``.
    """
    if splits < _MIN_SPLITS:
        raise MeasureError(f"splits is {splits}; expected at least {_MIN_SPLITS}")
    if len(values) < 2:
        raise Undefined(f"halves need two participants; there are {len(values)}")
    generator = np.random.default_rng(seed)
    # Zeros and a mask instead of nan: sums and counts per half are plain sums, where nanmean would warn about every
    # sentence without an answer in a half.
    given, filled = ~np.isnan(values), np.nan_to_num(values)
    orders = (generator.permutation(len(values)) for _ in range(splits))
    half = len(values) // 2
    correlations = [_correlate_means(given, filled, order[:half], order[half:]) for order in orders]
    defined = np.array([correlation for correlation in correlations if correlation is not None])
    if len(defined) < _MIN_DEFINED_SHARE * splits:
        raise Undefined(f"{splits - len(defined)} of {splits} splits have halves without a correlation")
    # Corrected split by split, and averaged afterwards: the correction is not linear.
    corrected = np.array([spearman_brown(correlation) for correlation in defined.tolist()])
    low, high = np.quantile(corrected, [(1 - level) / 2, (1 + level) / 2])
    missed = splits - len(defined)
    return SplitHalf(float(corrected.mean()), float(low), float(high), float(defined.mean()), splits, missed)


def spearman_brown(correlation: float, times: float = 2.0) -> float:
    """Return the reliability for ``times`` as many raters: the prophecy formula (Spearman 1910; Brown 1910).

    A negative correlation is corrected by its absolute value and keeps its sign, so that -1 stays -1.

    >>> spearman_brown(0.5), spearman_brown(-0.5)
    (0.6666666666666666, -0.6666666666666666)
    """
    # By the absolute value: the plain formula has a pole at -1 / (times - 1), which is -1 for two halves.
    return times * correlation / (1 + (times - 1) * abs(correlation))


def leave_one_out_correlations(values: Floats) -> LeaveOneOut:
    """Return the correlation of each participant's answers with the means of all others, over shared sentences."""
    given, filled = ~np.isnan(values), np.nan_to_num(values)
    everyone = np.arange(len(values))
    correlations = tuple(
        _correlate_means(given, filled, everyone[[index]], np.delete(everyone, index)) for index in everyone
    )
    if all(value is None for value in correlations):
        raise Undefined("no participant's answers correlate with the others'")
    return LeaveOneOut(correlations)


def cronbach_alpha(values: Floats) -> float:
    """Return Cronbach's alpha, with participants as the items of a test.

    Missing answers are left out pair by pair: the covariance of two participants is over the sentences that both have
    answered.

    >>> round(cronbach_alpha(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]])), 4)
    0.8889
    """
    _check_size(values, "Cronbach's alpha")
    raters = len(values)
    covariances = _pairwise_covariances(values)
    total = float(covariances.sum())
    # A mean of sums that is the same for all sentences is so but for rounding.
    if total <= _ROUNDING * float(np.abs(covariances).sum()):
        raise Undefined("all sentences have the same sum of answers")
    alpha = float(raters / (raters - 1) * (1 - np.trace(covariances) / total))
    # Covariances over different sentences need not be those of any table; of a complete one they are.
    if alpha > 1 + _ROUNDING:
        raise Undefined(
            f"the covariances of participants over the sentences that they share contradict each other (alpha would be "
            f"{alpha:.4f}): there are too few answers for so many missing ones"
        )
    return alpha


def _pairwise_covariances(values: Floats) -> Floats:
    """Return the covariances of participants, each over the sentences that both have answered."""
    given, filled = (~np.isnan(values)).astype(np.float64), np.nan_to_num(values)
    counts = given @ given.T
    if counts.min() < 2:
        one, other = np.unravel_index(counts.argmin(), counts.shape)
        raise Undefined(f"participants {one + 1} and {other + 1} share {counts.min():g} sentences; two are needed")
    # Sums of either over the sentences that both have answered.
    sums = filled @ given.T
    return np.asarray((filled @ filled.T - sums * sums.T / counts) / (counts - 1))


def cronbach_alpha_effect(values: Floats, *, level: float = 0.95) -> EffectSize:
    """Return Cronbach's alpha with Feldt's interval; with missing answers that is an approximation.

    Args:
        values: A row per participant, a column per sentence; nan for a missing answer.
        level: The confidence level.
    """
    alpha = cronbach_alpha(values)
    low, high = alpha_interval(alpha, len(values), values.shape[1], level=level)
    return EffectSize("Cronbach's alpha", alpha, low, high, level, FELDT)


def compute_mean_squares(values: Floats, *, is_one_way: bool = False) -> MeanSquares:
    """Return the mean squares of answers by sentences and participants, also where answers are missing.

    With missing answers these are the mean squares of a complete table of the same size that have the same components
    of variance, estimated by sums of squares of each factor adjusted for the other (Henderson's method 3); of a
    complete table they are the usual ones.

    Args:
        values: A row per participant, a column per sentence; nan for a missing answer.
        is_one_way: Whether participants are not told apart, as in ICC(1,1).
    """
    _check_size(values, "an intraclass correlation")
    values = values[:, (~np.isnan(values)).any(axis=0)]
    given, filled = (~np.isnan(values)).astype(np.float64), np.nan_to_num(values)
    by_sentence, by_rater, total = given.sum(axis=0), given.sum(axis=1), float(given.sum())
    k, n = values.shape
    # Centred, which leaves all sums of squares as they are and keeps their digits.
    filled = (filled - filled.sum() / total) * given
    within_sentences = float((filled**2).sum() - (filled.sum(axis=0) ** 2 / by_sentence).sum())
    if is_one_way:
        between = float((filled.sum(axis=0) ** 2 / by_sentence).sum()) / (n - 1)
        within = within_sentences / (total - n)
        k_mean = (total - float((by_sentence**2).sum()) / total) / (n - 1)
        return MeanSquares(between, within, within, within, k_mean, n)
    within_raters = float((filled**2).sum() - (filled.sum(axis=1) ** 2 / by_rater).sum())
    adjusted_raters = _adjusted_sum_of_squares(filled, given, by_sentence)
    df_error = total - n - k + 1
    error_ss = max(within_sentences - adjusted_raters, 0.0)
    error = error_ss / df_error
    sentence_variance = (within_raters - error_ss - (n - 1) * error) / (total - k)
    rater_variance = (adjusted_raters - (k - 1) * error) / (total - n)
    k_mean = (total - k) / (n - 1)
    within = error + rater_variance
    return MeanSquares(error + k_mean * sentence_variance, error + n * rater_variance, error, within, k_mean, n)


def _adjusted_sum_of_squares(filled: Floats, given: Floats, by_sentence: Floats) -> float:
    """Return the sum of squares of participants, adjusted for sentences."""
    crossed = np.diag(given.sum(axis=1)) - (given / by_sentence) @ given.T
    rest = filled.sum(axis=1) - (given / by_sentence) @ filled.sum(axis=0)
    # The effects of participants are determined up to a constant; of groups that share no sentence, even less.
    if np.linalg.matrix_rank(crossed) < len(crossed) - 1:
        raise Undefined("some participants share no sentences with the others, so that they cannot be compared")
    return float(rest @ np.linalg.pinv(crossed) @ rest)


def intraclass_correlations(values: Floats) -> dict[str, float]:
    """Return the six intraclass correlations of Shrout and Fleiss (1979); answers may be missing.

    In case 1 every sentence has other raters; in case 2 the raters are a random sample; in case 3 they are the whole
    population, and ``ICC(3,k)`` is Cronbach's alpha. The second figure is 1 for the reliability of a single rater, and
    k for that of the mean of k raters, or of as many as have answered a sentence on average.
    """
    return {kind: compute_icc(values, kind).value for kind in ICC_KINDS}


def compute_icc(values: Floats, kind: str, *, level: float = 0.95) -> EffectSize:
    """Return an intraclass correlation with its interval; with missing answers the interval is an approximation.

    Args:
        values: A row per participant, a column per sentence; nan for a missing answer.
        kind: "ICC(1,1)", "ICC(2,1)", "ICC(3,1)", "ICC(1,k)", "ICC(2,k)" or "ICC(3,k)".
        level: The confidence level.
    """
    squares = compute_mean_squares(values, is_one_way=kind.startswith("ICC(1"))
    # Without differences between sentences all six would be ratios of noise, or of 0.
    means = np.nanmean(values[:, (~np.isnan(values)).any(axis=0)], axis=0)
    if np.ptp(means) == 0:
        raise Undefined("all sentences have the same mean")
    return icc_interval(kind, squares, level=level)


def krippendorff_alpha(values: Floats, *, level: str = "interval") -> float:
    """Return Krippendorff's alpha: 1 for perfect agreement, 0 for agreement at chance level; answers may be missing.

    Args:
        values: A row per participant, a column per sentence; nan for a missing answer.
        level: The level of measurement: "nominal" (equal or not), "ordinal" (ranks) or "interval" (distances).
    """
    # A single answer to a sentence has nothing to agree with; by definition it does not enter the chance level either.
    pairable = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    given = pairable[~np.isnan(pairable)]
    if not len(given) or given.min() == given.max():
        raise Undefined("no two answers to one sentence" if not len(given) else "all answers are the same")
    if level == "nominal":
        tables = [np.where(np.isnan(pairable), np.nan, pairable == category) for category in np.unique(given)]
    elif level == "ordinal":
        ranked = pairable.copy()
        ranked[~np.isnan(pairable)] = average_ranks(given)
        tables = [ranked]
    elif level == "interval":
        tables = [pairable]
    else:
        raise MeasureError(f"level is {level!r}; expected 'nominal', 'ordinal' or 'interval'")
    # The mean squared distance of all pairs is twice the variance, so no pairs need to be formed. The nominal distance
    # is a sum of squared distances over 0/1 indicators, one per category. The factor 2 cancels in the ratio.
    counts = (~np.isnan(pairable)).sum(axis=0)
    observed = sum(float((counts * np.nanvar(table, axis=0, ddof=1)).sum()) / len(given) for table in tables)
    expected = sum(float(np.nanvar(table, ddof=1)) for table in tables)
    return 1 - observed / expected


def noise_ceiling(correlation: float, reliability: float) -> NoiseCeiling:
    """Return a model's correlation with mean ratings, relative to the noise ceiling of their reliability.

    >>> noise_ceiling(0.6, 0.81)
    NoiseCeiling(correlation=0.6, reliability=0.81, ceiling=0.9, share=0.6666666666666666)
    """
    if not (-1 <= correlation <= 1 and reliability <= 1):
        raise MeasureError(f"a correlation of {correlation} and a reliability of {reliability}: expected at most 1")
    if reliability <= 0:
        raise Undefined(f"the reliability is {reliability:.4g}: people do not agree, so there is no ceiling")
    # The reliability is the correlation of two equally noisy means. Only one side of a model's correlation is noisy,
    # so the bound is the square root.
    top = math.sqrt(reliability)
    return NoiseCeiling(correlation, reliability, top, correlation / top)


def _correlate_means(
    given: Bools, filled: Floats, first: ParticipantIndices, second: ParticipantIndices
) -> float | None:
    """Return the correlation between the means of two groups, over shared sentences; None if undefined."""
    counts, other_counts = given[first].sum(axis=0), given[second].sum(axis=0)
    # Means of different sentences cannot be correlated, so both groups need an answer.
    shared = (counts > 0) & (other_counts > 0)
    sums, other_sums = filled[first].sum(axis=0), filled[second].sum(axis=0)
    try:
        return pearson(sums[shared] / counts[shared], other_sums[shared] / other_counts[shared])
    except Undefined:
        return None


def _check_size(values: Floats, statistic: str) -> None:
    if len(values) < 2 or values.shape[1] < 2:
        raise Undefined(f"{statistic} needs two participants and two sentences; the table is {values.shape}")
    given = ~np.isnan(values)
    if not given.any(axis=1).all():
        raise Undefined(f"{statistic} needs an answer of every participant; one has none")
    rows, columns = len(values), int(given.any(axis=0).sum())
    if given.sum() < rows + columns:
        raise Undefined(f"{statistic} needs more answers than {given.sum()} in a table of {rows} by {columns}")


@dataclass(frozen=True)
class Agreement:
    """The agreement of two series of binary answers.

    Args:
        accuracy: The share of sentences with the same answer; None if no sentence has both answers.
        mcc: Matthews' correlation; None if the second series is of one class.
        n: The number of sentences with both answers.
    """

    accuracy: float | None
    mcc: float | None
    n: int


@dataclass(frozen=True)
class AgreementSummary:
    """Several agreements summarised: mean accuracy, and mean, standard deviation (ddof 0) and maximum of MCC."""

    accuracy: float
    mcc: float
    mcc_sd: float
    mcc_max: float
    n: int


@dataclass(frozen=True)
class RaterAgreement:
    """All agreements of a group of raters.

    Args:
        raters: Each rater against the labels, by name.
        majority: The majority vote against the labels.
        to_majority: Each rater against the majority vote, in which that rater is included.
        pairs: Every pair of raters; without MCC if either gave a constant answer to the shared sentences.
        ties: The number of sentences without a majority, which are excluded wherever the majority is involved.
    """

    raters: dict[str, Agreement]
    majority: Agreement
    to_majority: dict[str, Agreement]
    pairs: dict[tuple[str, str], Agreement]
    ties: int


def compute_rater_agreement(responses: Responses) -> RaterAgreement:
    """Return the agreement of raters with the labels, with their majority vote, and with each other."""
    if responses.kind != "yes-no":
        raise MeasureError(f"{responses.name}: answers are {responses.kind}; agreement with labels needs yes-no")
    names, values, labels = responses.participants, responses.values, responses.labels
    if np.isnan(labels).all():
        raise MeasureError(f"{responses.name}: no sentence has a label to agree with")
    majority_row = majority_answers(values)
    answered = (~np.isnan(values)).any(axis=0)
    return RaterAgreement(
        {name: compute_agreement(row, labels) for name, row in zip(names, values, strict=True)},
        compute_agreement(majority_row, labels),
        {name: compute_agreement(row, majority_row) for name, row in zip(names, values, strict=True)},
        {
            (names[i], names[j]): compute_mutual_agreement(values[i], values[j])
            for i, j in combinations(range(len(names)), 2)
        },
        int((np.isnan(majority_row) & answered).sum()),
    )


def compute_agreement(predicted: Floats, labels: Floats) -> Agreement:
    """Return the agreement of predictions with labels, over the sentences that have both.

    >>> compute_agreement(np.array([1.0, 1.0, 0.0, np.nan]), np.array([1.0, 0.0, 0.0, 1.0]))
    Agreement(accuracy=0.6666666666666666, mcc=0.5, n=3)
    """
    both = ~(np.isnan(predicted) | np.isnan(labels))
    n = int(both.sum())
    if not n:
        return Agreement(None, None, 0)
    accuracy = float((predicted[both] == labels[both]).mean())
    # Undefined if all labels that are left are of one class, which can happen for a rater with few answers.
    try:
        return Agreement(accuracy, matthews(predicted[both], labels[both]), n)
    except Undefined:
        return Agreement(accuracy, None, n)


def compute_mutual_agreement(first: Floats, second: Floats) -> Agreement:
    """Return the agreement of two raters, which is symmetric: neither is taken as the correct one.

    >>> constant, varied = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    >>> compute_mutual_agreement(constant, varied) == compute_mutual_agreement(varied, constant)
    True
    """
    # MCC of constant predictions is 0 by convention, of constant labels undefined. Between raters it is undefined in
    # both directions, as the order of two raters means nothing.
    forward, backward = compute_agreement(first, second), compute_agreement(second, first)
    return replace(forward, mcc=None) if backward.mcc is None else forward


def majority_answers(values: Floats) -> Floats:
    """Return the majority vote on each sentence: more than half of the given answers; nan for a tie, or no answer.

    >>> majority_answers(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, np.nan, np.nan]]))
    array([ 1., nan,  0.])
    """
    given = (~np.isnan(values)).sum(axis=0)
    # Twice the count against the number of answers: integers, so that a tie is exact.
    yes = np.nansum(values, axis=0)
    return np.where(2 * yes > given, 1.0, np.where(2 * yes < given, 0.0, np.nan))


def summarise_agreement(agreements: Sequence[Agreement]) -> AgreementSummary:
    """Return the means over several agreements; if one of them is undefined, so is the mean."""
    accuracies = [agreement.accuracy for agreement in agreements if agreement.accuracy is not None]
    correlations = [agreement.mcc for agreement in agreements if agreement.mcc is not None]
    if not agreements or len(accuracies) < len(agreements) or len(correlations) < len(agreements):
        raise Undefined(f"{len(agreements) - len(correlations)} of {len(agreements)} correlations are undefined")
    spread = float(np.std(correlations))
    return AgreementSummary(
        float(np.mean(accuracies)), float(np.mean(correlations)), spread, max(correlations), len(agreements)
    )


SummaryRow = dict[str, object]


def build_reliability_rows(ratings: Ratings, *, splits: int = 1000, seed: int = 0) -> list[SummaryRow]:
    """Return a row per reliability coefficient: name, value, interval and its method, and a note.

    The note says what is undefined, missing or excluded.

    Args:
        ratings: Ratings with the answers that they are means of.
        splits: The number of random splits for split-half reliability.
        seed: The seed of the splits.
    """
    values = ratings.values
    level = "nominal" if ratings.unit == "share" else "interval"
    missing = int(np.isnan(values).sum())

    def compute_split_half() -> SummaryRow:
        halves = split_half_reliability(values, splits=splits, seed=seed)
        note = f"{halves.undefined} splits without a correlation left out" if halves.undefined else None
        ends = {"low": halves.low, "high": halves.high, "interval": "95 % range over random splits"}
        return {"value": halves.reliability, **ends, "note": note}

    def compute_leave_one_out() -> SummaryRow:
        others = leave_one_out_correlations(values)
        none = sum(correlation is None for correlation in others.correlations)
        return {"value": others.mean, "note": f"{none} participants without a correlation left out" if none else None}

    def describe_effect(compute: Callable[[], EffectSize], how: str) -> Callable[[], SummaryRow]:
        def compute_row() -> SummaryRow:
            effect = compute()
            interval = f"{100 * effect.level:g} %, {effect.method}" + ", approximate" * bool(missing)
            note = f"{missing} of {values.size} answers missing: {how}" if missing else None
            return {"value": effect.value, "low": effect.low, "high": effect.high, "interval": interval, "note": note}

        return compute_row

    def compute_kappa(kappa: Kappa) -> SummaryRow:
        interval = f"{100 * kappa.level:g} %, {kappa.method}"
        note = f"against chance: z = {kappa.z:.2f}, p = {kappa.p:.3g} (se under chance); {kappa.n} sentences"
        return {"value": kappa.value, "low": kappa.low, "high": kappa.high, "interval": interval, "note": note}

    components = "components of variance by Henderson's method 3"
    coefficients: dict[str, Callable[[], SummaryRow]] = {
        f"split-half, Spearman-Brown (splits={splits}, seed={seed})": compute_split_half,
        "leave-one-out, mean r": compute_leave_one_out,
        "Cronbach's alpha": describe_effect(lambda: cronbach_alpha_effect(values), "covariances of pairs"),
        "ICC(2,1)": describe_effect(lambda: compute_icc(values, "ICC(2,1)"), components),
        "ICC(2,k)": describe_effect(lambda: compute_icc(values, "ICC(2,k)"), components),
        f"Krippendorff's alpha ({level})": lambda: {"value": krippendorff_alpha(values, level=level)},
    }
    # Kappa is of categories; on a scale, answers that nearly agree would count as disagreement.
    if ratings.unit == "share":
        coefficients["Fleiss' kappa"] = lambda: compute_kappa(fleiss_kappa(values))
        if len(values) == 2:
            coefficients["Cohen's kappa"] = lambda: compute_kappa(cohen_kappa(values[0], values[1]))
    return [{"name": name, **_compute_or_note(compute)} for name, compute in coefficients.items()]


def _compute_or_note(compute: Callable[[], SummaryRow]) -> SummaryRow:
    # One undefined coefficient, as with missing answers, must not hide the others.
    empty: SummaryRow = {"value": None, "low": None, "high": None, "interval": None, "note": None}
    try:
        return empty | compute()
    except Undefined as error:
        return empty | {"note": str(error)}


def build_agreement_rows(responses: Responses) -> list[SummaryRow]:
    """Return a row per agreement: each rater, their mean and the majority vote, with the labels and with each other."""
    agreements = compute_rater_agreement(responses)
    ties = f"{agreements.ties} sentences without a majority left out" if agreements.ties else None
    return [
        *(
            {"who": name, "against": "labels", **asdict(agreement), "note": None}
            for name, agreement in agreements.raters.items()
        ),
        _build_mean_row("mean of raters", "labels", list(agreements.raters.values())),
        {"who": "majority", "against": "labels", **asdict(agreements.majority), "note": ties},
        _build_mean_row("mean of raters", "majority", list(agreements.to_majority.values())),
        *(
            [_build_mean_row("mean of pairs", "each other", list(agreements.pairs.values()))]
            if agreements.pairs
            else []
        ),
    ]


def _build_mean_row(who: str, against: str, agreements: Sequence[Agreement]) -> SummaryRow:
    row: SummaryRow = {
        "who": who,
        "against": against,
        "accuracy": None,
        "mcc": None,
        "n": len(agreements),
        "note": None,
    }
    try:
        summary = summarise_agreement(agreements)
    except Undefined as error:
        return row | {"note": str(error)}
    note = f"MCC: sd {summary.mcc_sd:.4f} (ddof 0), largest {summary.mcc_max:.4f}"
    return row | {"accuracy": summary.accuracy, "mcc": summary.mcc, "note": note}


def build_ceiling_rows(
    ratings: Ratings, scores: Sequence[Scores], *, splits: int = 1000, seed: int = 0
) -> list[SummaryRow]:
    """Return a row per model: its correlation with the ratings, relative to the ceiling of split-half reliability."""
    return list(_iter_ceiling_rows(ratings, scores, splits, seed))


def _iter_ceiling_rows(ratings: Ratings, scores: Sequence[Scores], splits: int, seed: int) -> Iterator[SummaryRow]:
    for model_scores in scores:
        # The ceiling is that of the sentences that are compared.
        scored = ratings.restrict(restrict_to_scored(ratings.to_suite(), [model_scores]).by_id)
        rated = [row.sentence.id for row in scored.rows if row.mean is not None]
        means = scored.means[~np.isnan(scored.means)]
        row: SummaryRow = {
            "model": model_scores.model,
            "correlation": None,
            "reliability": None,
            "ceiling": None,
            "share": None,
        }
        try:
            row["correlation"] = correlation = pearson(model_scores.of(rated), means)
            # Within the loop, although it is the same for all models: an undefined reliability is then a reason in
            # every row, like an undefined correlation.
            halves = split_half_reliability(scored.values, splits=splits, seed=seed)
            yield row | asdict(noise_ceiling(correlation, halves.reliability)) | {"n": len(rated), "reason": None}
        except Undefined as error:
            yield row | {"n": len(rated), "reason": str(error)}
