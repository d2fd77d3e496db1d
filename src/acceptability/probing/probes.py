"""Feature probing: how well a linear classifier reads a factor off the representations of sentences.

For every layer of an encoder and every factor (a tag of the sentences, such as ``licensor``) a *probe* is trained:
logistic regression with an L2 penalty on standardised features (scikit-learn). Its score is the Matthews correlation
(MCC) of predicted and true values on test sentences, as in Warstadt et al. (2019, five analysis methods with NPIs),
section 3. Beside it stands the *selectivity* of Hewitt and Liang (2019): how much better the probe does on the factor
than on control tasks, random labellings that it can only memorise.

The file reads downwards: the public `probe`, the run that trains and scores all probes of an encoder, the classifiers,
and the MCC with its bootstrap interval. Splits are in `acceptability.probing.design`; vectors, baselines and control
labels in `acceptability.probing.representations`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.api.interface.arguments import check_list
from acceptability.api.scoring import ProgressCallback
from acceptability.errors import MeasureError, MissingExtra, Undefined
from acceptability.probing.design import ProbeGroup, ProbeSplit, ProbingDesign, find_factors, make_design
from acceptability.probing.representations import (
    BAG_OF_WORDS,
    CONTROLS,
    extract_vectors,
    load_encoder,
    make_control_labels,
    resolve_layers,
)
from acceptability.protocols import Measure
from acceptability.specs import build_signature
from acceptability.stats.bootstrap import Bootstrap, Interval
from acceptability.stats.intervals import bootstrap_interval
from acceptability.types import Floats, Suite, Units

Labels = NDArray[np.int64]

MAJORITY = "majority"

# One random labelling can be easy or hard to learn by chance; the mean of three is steadier, and a fourth costs as
# much as the factor itself.
_CONTROL_COUNT = 3


@dataclass(frozen=True)
class ProbeScore:
    """How well a factor can be read off one layer of an encoder.

    Args:
        group: The value of the tag that sentences were grouped by; "all" where they were not.
        mcc: Matthews correlation of predicted and true values on test sentences; None where it is undefined, and
            ``reason`` says why. That of the baseline "majority" is 0 by definition.
        control: The MCC on the control task, averaged over three random labellings; ``selectivity`` is ``mcc`` minus
            ``control``.
        train: The number of training sentences; with several folds, of the smallest fold.
        test: The number of test sentences; with several folds, of all folds together, each sentence once.
        low, high: The bootstrap interval of ``mcc``, resampled by item.
        trained: The training sentences: "group" for the group's own, "others" for those of all other groups.
    """

    encoder: str
    factor: str
    group: str
    layer: int
    mcc: float | None
    accuracy: float
    control: float | None
    selectivity: float | None
    train: int
    test: int
    low: float | None = None
    high: float | None = None
    control_accuracy: float | None = None
    trained: str = "group"
    values: tuple[str, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()
    signature: str = ""

    def row(self) -> dict[str, object]:
        """Return the score as one flat row, for JSON and CSV."""
        return asdict(self) | {"values": ", ".join(self.values), "notes": "; ".join(self.notes)}


def probe_encoders(
    suite: Suite,
    encoders: Sequence[str],
    *,
    baselines: bool = True,
    factors: Sequence[str] = (),
    pooling: str = "auto",
    **options: Any,
) -> list[ProbeScore]:
    """Return the probe scores of several encoders, with those of the baselines first.

    Args:
        encoders: Specs of models, or of baselines, see ``probe``.
        baselines: Add the baselines "majority" and "bag-of-words".
        factors: The tags to predict; by default all that vary within items.
        pooling: The sentence vector of the models; baselines have one of their own.
        options: The other arguments of ``probe``.
    """
    names = list(dict.fromkeys([*([MAJORITY, BAG_OF_WORDS] if baselines else []), *encoders]))
    chosen_factors = factors or list(find_factors(suite))
    return [
        probe_score
        for name in names
        for probe_score in probe(
            suite,
            name,
            factors=chosen_factors,
            # A baseline has no tokens to pool, whatever is chosen for the models beside it.
            pooling="auto" if name in (MAJORITY, BAG_OF_WORDS) else pooling,
            **options,
        )
    ]


def probe(
    suite: Suite,
    encoder: str,
    *,
    factors: Sequence[str],
    by: str | None = None,
    held_out: str | None = None,
    layers: Sequence[int] | None = None,
    pooling: str = "auto",
    control: str | None = "words",
    limit: int | None = None,
    seed: int = 0,
    resamples: int = 1000,
    progress: ProgressCallback | None = None,
) -> list[ProbeScore]:
    """Return how well factors can be read off an encoder's sentence vectors, layer by layer.

    Sentences are split into training and test as their tag ``split`` says, else in five folds of items.

    Args:
        encoder: A model (``masked:…``, ``causal:…``, ``classifier:…``, a name), or a baseline: "majority",
            "bag-of-words", "glove:FILE". All but "majority" need scikit-learn.
        factors: The tags to predict. Sentences that lack one of them are left out.
        by: A tag: probes are trained and tested within each of its groups.
        held_out: A tag: each of its groups is tested by probes that were trained on all other groups.
        layers: The layers to probe; all by default, and -1 is the last.
        pooling: The sentence vector: "first", "last", "mean" or "max" over tokens; "auto" chooses by the model.
        control: The control task: "words", "items", or None.
        limit: The largest number of sentences per group.
        seed: Seeds the folds, the control tasks and the bootstrap.
        resamples: The number of bootstrap resamples; 0 for no intervals.

    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    check_list("factors", factors)
    _check_options(control, limit)
    design = make_design(suite, factors, by=by, held_out=held_out, limit=limit, seed=seed)
    bootstrap = Bootstrap(resamples=resamples, by="item", seed=seed, method="percentile")
    signature_fields = {
        "suite": suite.signature,
        "by": by or "",
        "held_out": held_out or "",
        "split": design.split_method,
        "limit": str(limit or ""),
        "control": control or "",
        "seed": str(seed),
        "ci": bootstrap.signature,
    }
    run = _ProbingRun(
        encoder, design, control, seed, bootstrap, {key: value for key, value in signature_fields.items() if value}
    )
    if encoder == MAJORITY:
        return list(run.score_majority())
    # Before the encoder is loaded: its forward passes may take hours, which a missing library must not waste.
    _require_scikit_learn()
    loaded_encoder = load_encoder(encoder, pooling)
    selected_layers = resolve_layers(loaded_encoder, encoder, layers)
    texts = [sentence.text for sentence in design.sentences]
    scores: list[ProbeScore] = []
    total = len(selected_layers) * len(design.groups) * len(factors)
    with extract_vectors(loaded_encoder, encoder, texts, selected_layers, progress) as layer_vectors:
        for layer, features in layer_vectors:
            for group in design.groups:
                scores += run.score_group(layer, features, group, loaded_encoder.signature)
                if progress:
                    progress(f"{encoder}: probes", len(scores), total)
    return scores


def _check_options(control: str | None, limit: int | None) -> None:
    if control is not None and control not in CONTROLS:
        raise MeasureError(f"the control is {control!r}; expected {' or '.join(CONTROLS)}")
    if limit is not None and limit < 1:
        raise MeasureError(f"the limit is {limit}; expected at least one sentence")


def _require_scikit_learn() -> None:
    if find_spec("sklearn") is None:
        raise MissingExtra("probe", "scikit-learn", "'acceptability[stats]'")


@dataclass(frozen=True, eq=False)
class _ProbingRun:
    """The probes of one encoder over a design: trains them group by group and scores their predictions."""

    encoder: str
    design: ProbingDesign
    control: str | None
    seed: int
    bootstrap: Bootstrap
    signature_fields: Mapping[str, str]

    def score_group(
        self, layer: int, features: NDArray[np.float32], group: ProbeGroup, signature: str
    ) -> Iterator[ProbeScore]:
        """Yield the score of each factor on a group, for one layer.

        Args:
            features: The vector of each sentence of the design, (sentences, features).
            signature: The encoder's signature.
        """
        tasks = {
            factor: self._make_tasks(factor, group)
            for factor in self.design.labels
            if not self._find_undefined_reason(factor, group)
        }
        # All factors and control tasks go through `predict_test_labels` together, so that the principal components
        # of a split, which do not depend on the labels, are computed once.
        all_tasks = [labels for task_labels in tasks.values() for labels in task_labels]
        predictions = iter(
            _join_splits([predict_test_labels(features, split, all_tasks) for split in group.splits])
            if all_tasks
            else []
        )
        for factor in self.design.labels:
            blank = self._make_blank_score(factor, layer, group, signature)
            if factor in tasks:
                yield self._fill_score(blank, group, [(next(predictions), labels) for labels in tasks[factor]])
            else:
                yield replace(blank, accuracy=1.0, reason=self._find_undefined_reason(factor, group))

    def score_majority(self) -> Iterator[ProbeScore]:
        """Yield the score of the baseline that always predicts the most frequent value: its MCC is 0 by definition."""
        for group in self.design.groups:
            for factor, labels in self.design.labels.items():
                predicted = np.concatenate([predict_majority(split, labels) for split in group.splits])
                accuracy = _compute_accuracy(predicted, labels[_collect_test_rows(group)])
                reason = self._find_undefined_reason(factor, group)
                yield replace(
                    self._make_blank_score(factor, 0, group, MAJORITY),
                    mcc=None if reason else 0.0,
                    accuracy=accuracy,
                    reason=reason,
                )

    def _make_tasks(self, factor: str, group: ProbeGroup) -> list[Labels]:
        """Return the labels of a factor, followed by those of its control tasks."""
        labels = self.design.labels[factor]
        count = _CONTROL_COUNT if self.control else 0
        # The seed contains the factor, so that two factors of equal class frequencies get different control labels.
        return [labels, *(self._make_control(labels, group, f"{self.seed} {factor} {i}") for i in range(count))]

    def _find_undefined_reason(self, factor: str, group: ProbeGroup) -> str | None:
        """Return why the MCC is undefined: all training sentences, or all test sentences, have one value."""
        labels = self.design.labels[factor]
        for purpose, rows in (
            ("test", _collect_test_rows(group)),
            *(("training", split.train) for split in group.splits),
        ):
            if len(distinct := np.unique(labels[rows])) == 1:
                return f"all {purpose} sentences have {factor}={self.design.classes[factor][distinct[0]]}"
        return None

    def _make_control(self, labels: Labels, group: ProbeGroup, seed: str) -> Labels:
        """Return the labels of a control task; sentences that no probe of this group sees get 0."""
        rows = np.unique(
            np.concatenate([np.concatenate([split.train, split.held_out, split.test]) for split in group.splits])
        )
        texts = [self.design.sentences[row].text for row in rows]
        control = np.zeros_like(labels)
        control[rows] = make_control_labels(str(self.control), texts, self.design.items[rows], labels[rows], seed)
        return control

    def _make_blank_score(self, factor: str, layer: int, group: ProbeGroup, signature: str) -> ProbeScore:
        sizes = min(len(split.train) for split in group.splits), sum(len(split.test) for split in group.splits)
        signature_fields = {"factor": factor, "model": signature, "layer": str(layer), "group": group.name}
        signature_fields |= {"trained": group.trained_on, **self.signature_fields, "acceptability": __version__}
        identity = self.encoder, factor, group.name, layer
        score = ProbeScore(*identity, None, 0.0, None, None, *sizes, trained=group.trained_on, notes=self.design.notes)
        return replace(score, values=self.design.classes[factor], signature=build_signature("probe", signature_fields))

    def _fill_score(
        self, blank: ProbeScore, group: ProbeGroup, predictions: Sequence[tuple[Labels, Labels]]
    ) -> ProbeScore:
        """Return a score with MCC, accuracy, control and selectivity filled in.

        Args:
            predictions: Predicted test labels with the labels of all sentences, for the factor and then for each of
                its control tasks.
        """
        rows = _collect_test_rows(group)
        (predicted, labels), *controls = [(predicted, labels[rows]) for predicted, labels in predictions]
        mcc = compute_multiclass_mcc(predicted, labels)
        mcc_interval = bootstrap_mcc_interval(predicted, labels, self.design.items[rows], self.bootstrap)
        scored = replace(
            blank,
            mcc=mcc,
            accuracy=_compute_accuracy(predicted, labels),
            low=mcc_interval.low,
            high=mcc_interval.high,
            notes=(*blank.notes, *([mcc_interval.note] if mcc_interval.note else [])),
        )
        # A control task can come out with one class in the test sentences, where its MCC is undefined.
        control_scores = [
            (compute_multiclass_mcc(predicted, labels), _compute_accuracy(predicted, labels))
            for predicted, labels in controls
            if labels.min() < labels.max()
        ]
        if not control_scores:
            return scored
        control_mcc, control_accuracy = np.mean(control_scores, axis=0).tolist()
        return replace(scored, control=control_mcc, selectivity=mcc - control_mcc, control_accuracy=control_accuracy)


def _collect_test_rows(group: ProbeGroup) -> NDArray[np.int64]:
    return np.concatenate([split.test for split in group.splits])


def _join_splits(predictions_by_split: Sequence[Sequence[Labels]]) -> list[Labels]:
    return [np.concatenate(predictions) for predictions in zip(*predictions_by_split, strict=True)]


def _compute_accuracy(predicted: Labels, labels: Labels) -> float:
    return float((predicted == labels).mean())


def predict_majority(split: ProbeSplit, labels: Labels) -> Labels:
    """Return the most frequent class of the training sentences, for each test sentence."""
    return np.full(len(split.test), np.bincount(labels[split.train]).argmax())


def predict_test_labels(features: NDArray[np.float32], split: ProbeSplit, tasks: Sequence[Labels]) -> list[Labels]:
    """Train a probe per task and return its predictions for the test sentences.

    The L2 penalty of each task is the one with the least log loss on the held-out sentences; the probe is then refitted
    with it on all training sentences.

    Args:
        features: The vector of each sentence of the suite, (sentences, features).
        tasks: The class of each sentence of the suite, counted from 0. Two classes make one classifier, more make one
            per class (one against the rest), and the most confident one wins.
    """
    targets_by_task = [_make_targets(labels) for labels in tasks]
    targets = np.concatenate(targets_by_task, axis=1)
    task_of_column = np.repeat(np.arange(len(tasks)), [task_targets.shape[1] for task_targets in targets_by_task])
    fit_rows = np.setdiff1d(split.train, split.held_out)
    components = fit_principal_components(features[fit_rows])
    held_out_values = components(features[split.held_out])
    losses = compute_held_out_losses(components, targets[fit_rows], held_out_values, targets[split.held_out])
    # One penalty per task, chosen on the summed loss: the classifiers of one factor are compared with each other, and
    # would be less confident or more so if each were shrunk by a penalty of its own.
    best_by_task = np.array([losses[:, task_of_column == task].sum(1).argmin() for task in range(len(tasks))])
    best_penalty = best_by_task[task_of_column]
    # With a published split the dev sentences are not among the training sentences, and the components stay.
    if len(fit_rows) < len(split.train):
        components = fit_principal_components(features[split.train])
    test_values = components(features[split.test])
    logits = np.empty((len(split.test), len(task_of_column)))
    for index in np.unique(best_penalty):
        columns = best_penalty == index
        probes = fit_logistic(components, targets[split.train][:, columns], PENALTIES[index])
        logits[:, columns] = probes.compute_logits(test_values)
    return [_decide_labels(logits[:, task_of_column == task]) for task in range(len(tasks))]


def _make_targets(labels: Labels) -> Floats:
    """Return the classes as columns of 0 and 1: one column for two classes, one per class (one-hot) for more."""
    count = int(labels.max()) + 1
    if count <= 2:
        return np.asarray(labels == 1, np.float64)[:, None]
    return np.asarray(labels[:, None] == np.arange(count), np.float64)


def _decide_labels(logits: Floats) -> Labels:
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).astype(np.int64)
    # Classifiers of one against the rest are comparable by their logits, since they share the penalty.
    return np.asarray(logits.argmax(1), np.int64)


PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)
"""The L2 penalties that are tried, the strongest first: a fit starts from the one before (a regularisation path)."""

# Relative to the largest eigenvalue: directions with less variance are rounding errors of the float32 features.
_MIN_EIGENVALUE = 1e-10
# Spread relative to the mean under which a feature counts as constant. The first token of layer 0 is the same in all
# sentences but for the rounding of float32, which standardisation would otherwise blow up to unit variance.
_MIN_RELATIVE_SD = 1e-6
# On the gradient of the mean loss. Newton steps converge quadratically: this costs at most one step more than
# scikit-learn's default of 1e-4, which can leave logits of the weakest penalty off by more than 1.
_TOLERANCE = 1e-6
_MAX_NEWTON_STEPS = 1000
_MIN_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Standardisation and rotation fitted on training sentences, and the training sentences transformed.

    Args:
        mean, scale: Of each feature on the training sentences; the scale of a constant one is infinite, so that it
            is 0 everywhere.
        components: The principal directions, (features, directions).
        train_values: The training sentences, (sentences, directions).
    """

    mean: Floats
    scale: Floats
    components: Floats
    train_values: Floats

    def __call__(self, features: NDArray[np.float32]) -> Floats:
        """Return other sentences in the same directions."""
        return ((features - self.mean) / self.scale) @ self.components


def fit_principal_components(features: NDArray[np.float32]) -> PrincipalComponents:
    """Return the principal components of standardised features (PCA), all with any variance.

    A rotation leaves an L2-penalised fit as it is. Where there are more features than sentences, though, it drops the
    directions in which no two sentences differ, so that the Newton steps of the fit solve smaller systems.
    """
    from sklearn.decomposition import PCA

    values = features.astype(np.float64)
    mean, sd = values.mean(0), values.std(0)
    is_constant = sd <= _MIN_RELATIVE_SD * np.maximum(1.0, np.abs(mean))
    scale = np.where(is_constant, np.inf, sd)
    # In place: in float64 the features of a suite can take gigabytes, and two temporary copies as much each.
    values -= mean
    values /= scale
    n, width = values.shape
    # PCA divides by the total variance, and so cannot take features none of which varies.
    if is_constant.all():
        return PrincipalComponents(mean, scale, np.zeros((width, 0)), np.zeros((n, 0)))
    # Either solver is exact; the eigenvectors of the covariance are the faster one while that matrix is small.
    pca = PCA(svd_solver="covariance_eigh" if width <= n else "full").fit(values)
    eigenvalues = pca.singular_values_**2
    components = pca.components_[eigenvalues > _MIN_EIGENVALUE * max(float(eigenvalues.max()), 1.0)].T
    return PrincipalComponents(mean, scale, components, values @ components)


@dataclass(frozen=True, eq=False)
class LogisticProbes:
    """Several binary classifiers: their weights, (directions, classifiers), and intercepts."""

    weights: Floats
    intercepts: Floats

    def compute_logits(self, values: Floats) -> Floats:
        """Return the log-odds of class 1, (sentences, classifiers)."""
        return values @ self.weights + self.intercepts


def fit_logistic(components: PrincipalComponents, targets: Floats, penalty: float) -> LogisticProbes:
    """Return logistic regressions with an L2 penalty, one per column of targets.

    Args:
        targets: 0 or 1, (sentences, classifiers).
        penalty: The loss is the mean log loss plus ``penalty / 2`` times the squared weights; the intercept is free.
    """
    (probes,) = _fit_penalty_path(components.train_values, targets, [penalty])
    return probes


def compute_held_out_losses(
    components: PrincipalComponents,
    targets: Floats,
    held_out_values: Floats,
    held_out_targets: Floats,
    penalties: Sequence[float] = PENALTIES,
) -> Floats:
    """Return the log loss on held-out sentences for each penalty, (penalties, classifiers)."""
    return np.array(
        [
            _compute_log_loss(probes.compute_logits(held_out_values), held_out_targets)
            for probes in _fit_penalty_path(components.train_values, targets, penalties)
        ]
    )


def _compute_log_loss(logits: Floats, targets: Floats) -> Floats:
    # By logaddexp, since log(sigmoid(x)) of a confident logit is log(0), and log(1 + exp(x)) overflows.
    return np.asarray((np.logaddexp(0.0, logits) - targets * logits).mean(0))


def _fit_penalty_path(values: Floats, targets: Floats, penalties: Sequence[float]) -> list[LogisticProbes]:
    """Return the classifiers for each penalty, each fit started from the solution of the penalty before."""
    weights = np.zeros((len(penalties), values.shape[1], targets.shape[1]))
    intercepts = np.empty((len(penalties), targets.shape[1]))
    for column, target in enumerate(targets.T):
        # scikit-learn refuses a single class (one of three may be absent from a fold) and a table without columns.
        # Without a penalty on the intercept the log-odds of the class frequency are the solution of the latter; for the
        # former it is infinite, and clipped.
        if target.min() == target.max() or not values.shape[1]:
            share = float(np.clip(target.mean(), _MIN_SHARE, 1 - _MIN_SHARE))
            intercepts[:, column] = math.log(share / (1 - share))
            continue
        for index, (weight, intercept) in enumerate(_fit_column(values, target, penalties)):
            weights[index, :, column], intercepts[index, column] = weight, intercept
    return [LogisticProbes(*solution) for solution in zip(weights, intercepts, strict=True)]


def _fit_column(values: Floats, target: Floats, penalties: Sequence[float]) -> Iterator[tuple[Floats, float]]:
    from sklearn.linear_model import LogisticRegression

    # With weak penalties the problem is so ill-conditioned that L-BFGS takes hundreds of steps and stops with logits
    # that are off by 0.1 or more; Newton's method takes five steps.
    model = LogisticRegression(solver="newton-cholesky", tol=_TOLERANCE, max_iter=_MAX_NEWTON_STEPS, warm_start=True)
    for penalty in penalties:
        # scikit-learn's C weighs the summed loss against half the squared weights.
        model.set_params(C=1 / (len(target) * penalty)).fit(values, target)
        yield model.coef_[0], float(model.intercept_[0])


def compute_multiclass_mcc(predicted: Labels, labels: Labels) -> float:
    """Return the Matthews correlation of predicted and true classes, for two classes or more (Gorodkin 2004).

    It is 0 by convention where all predictions are the same, and undefined where all labels are.

    >>> compute_multiclass_mcc(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.5773502691896258
    """
    # Not scikit-learn's matthews_corrcoef, which checks its input for longer than this takes: it is called once per
    # bootstrap resample. Nor does that one tell constant labels from constant predictions.
    count = int(max(predicted.max(initial=0), labels.max(initial=0))) + 1
    predicted_counts = np.bincount(predicted, minlength=count).astype(np.float64)
    true_counts = np.bincount(labels, minlength=count).astype(np.float64)
    n, correct = float(len(labels)), float((predicted == labels).sum())
    if n * n == true_counts @ true_counts:
        raise Undefined("the sentences are all of one class")
    variance_product = (n * n - predicted_counts @ predicted_counts) * (n * n - true_counts @ true_counts)
    if not variance_product:
        return 0.0
    return float((correct * n - predicted_counts @ true_counts) / math.sqrt(variance_product))


@dataclass(frozen=True)
class _MulticlassMCC:
    """The MCC in the shape that the bootstrap resamples: a value over rows."""

    mean_of = None
    statistic = None

    def value(self, units: Units) -> float:
        return compute_multiclass_mcc(units["predicted"].astype(np.int64), units["label"].astype(np.int64))

    def weigh(self, units: Units) -> None:
        """Leave each resample to ``value``."""


def bootstrap_mcc_interval(
    predicted: Labels, labels: Labels, items: NDArray[np.int64], bootstrap: Bootstrap
) -> Interval:
    """Return the bootstrap interval of the MCC, resampled by item."""
    columns = {"predicted": predicted.astype(np.float64), "label": labels.astype(np.float64)}
    tags = tuple({bootstrap.by or "": str(item)} for item in items.tolist())
    return bootstrap_interval(
        cast(Measure, _MulticlassMCC()), Units(tuple(map(str, range(len(labels)))), columns, tags), bootstrap
    )
