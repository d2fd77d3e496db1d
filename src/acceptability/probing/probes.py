"""Feature probing: what a light classifier can read off the representations of sentences.

The method of Warstadt et al. (2019, five analysis methods with NPIs), section 3, for any suite whose tags are factors;
with control tasks after Hewitt and Liang (2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.errors import MeasureError
from acceptability.probing.answers import Labels, answered, correlation, correlation_interval, most_frequent
from acceptability.probing.control import CONTROLS, control_labels
from acceptability.probing.design import Design, Field, designed
from acceptability.probing.vectors import chosen_layers, extracted, load_encoder
from acceptability.scoring import Progress, check_list
from acceptability.signature import sign
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Suite

MAJORITY = "majority"
_CONTROLS = 3


@dataclass(frozen=True)
class ProbeScore:
    """How well a factor can be read off one layer of an encoder.

    Args:
        group: The value of the tag that sentences were grouped by; "all" where they were not.
        mcc: Matthews' correlation of predicted and true values on test sentences; None where it is undefined, and
            ``reason`` says why. That of the baseline "majority" is 0 by definition.
        control: The same for the control task, the mean over three random labellings; ``selectivity`` is what the
            factor has above it.
        train: How many sentences the probe learnt from; with several folds, in the smallest training.
        test: How many sentences it was tested on; with several folds, all of them, each once.
        low, high: The interval of ``mcc``, items drawn anew.
        trained: On what: "group", or "others" for all other groups.
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
    tell: Progress | None = None,
) -> list[ProbeScore]:
    """Return how well factors can be told from what an encoder makes of sentences, layer by layer.

    Sentences are learnt from and tested on as their tag ``split`` says, else in five folds of items.

    Args:
        encoder: A model (``masked:…``, ``causal:…``, ``classifier:…``, a name), or a baseline: "majority",
            "bag-of-words", "glove:FILE".
        factors: The tags to be told. Only sentences that have all of them count.
        by: A tag: each group of sentences has probes of its own.
        held_out: A tag: each group is tested by probes that learnt from all other groups.
        layers: Which layers; all by default, and -1 is the last.
        pooling: What stands for the sentence: "first", "last", "mean" or "max"; "auto" says `open_encoder`.
        control: The control task: "words", "items", or None.
        limit: At most so many sentences of each group.
    """
    check_list("factors", factors)
    _check_options(control, limit)
    plan = designed(suite, factors, by=by, held_out=held_out, limit=limit, seed=seed)
    how = Bootstrap(resamples=resamples, by="item", seed=seed)
    fields = {"suite": suite.signature, "by": by or "", "held_out": held_out or "", "split": plan.cut}
    fields |= {"limit": str(limit or ""), "control": control or "", "seed": str(seed), "ci": how.signature}
    asked = _Asked(encoder, plan, control, seed, how, {key: value for key, value in fields.items() if value})
    if encoder == MAJORITY:
        return list(asked.guesses())
    opened = load_encoder(encoder, pooling)
    chosen = chosen_layers(opened, encoder, layers)
    texts = [each.text for each in plan.sentences]
    scores: list[ProbeScore] = []
    total = len(chosen) * len(plan.fields) * len(factors)
    with extracted(opened, encoder, texts, chosen, tell) as found:
        for number, features in found:
            for field in plan.fields:
                scores += asked.scores(number, features, field, opened.signature)
                if tell:
                    tell(f"{encoder}: probes", len(scores), total)
    return scores


def _check_options(control: str | None, limit: int | None) -> None:
    if control is not None and control not in CONTROLS:
        raise MeasureError(f"the control is {control!r}; expected {' or '.join(CONTROLS)}")
    if limit is not None and limit < 1:
        raise MeasureError(f"the limit is {limit}; expected at least one sentence")


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is asked of an encoder."""

    encoder: str
    plan: Design
    control: str | None
    seed: int
    how: Bootstrap
    signed: Mapping[str, str]

    def scores(self, layer: int, features: NDArray[np.float32], field: Field, signature: str) -> Iterator[ProbeScore]:
        """Yield the score of each factor in a layer, on a group."""
        tasks = {factor: self._tasks(factor, field) for factor in self.plan.labels if not self._reason(factor, field)}
        asked = [labels for several in tasks.values() for labels in several]
        answers = iter(_joined([answered(features, part, asked) for part in field.parts]) if asked else [])
        for factor in self.plan.labels:
            blank = self._blank(factor, layer, field, signature)
            if factor in tasks:
                yield self._scored(blank, field, [(next(answers), labels) for labels in tasks[factor]])
            else:
                yield replace(blank, accuracy=1.0, reason=self._reason(factor, field))

    def guesses(self) -> Iterator[ProbeScore]:
        """Yield what the most frequent value reaches: its correlation is 0 by definition."""
        for field in self.plan.fields:
            for factor, labels in self.plan.labels.items():
                said = np.concatenate([most_frequent(part, labels) for part in field.parts])
                accuracy = float((said == labels[_tested(field)]).mean())
                reason = self._reason(factor, field)
                yield replace(
                    self._blank(factor, 0, field, MAJORITY),
                    mcc=None if reason else 0.0,
                    accuracy=accuracy,
                    reason=reason,
                )

    def _tasks(self, factor: str, field: Field) -> list[Labels]:
        """Return the labels of a factor, and then those of its control tasks."""
        labels = self.plan.labels[factor]
        count = _CONTROLS if self.control else 0
        return [labels, *(self._control(labels, field, f"{self.seed} {factor} {each}") for each in range(count))]

    def _reason(self, factor: str, field: Field) -> str | None:
        """Return why there is nothing to tell: all sentences to learn from, or to be tested on, have one value."""
        labels = self.plan.labels[factor]
        for what, rows in (("test", _tested(field)), *(("training", part.train) for part in field.parts)):
            if len(different := np.unique(labels[rows])) == 1:
                return f"all {what} sentences have {factor}={self.plan.classes[factor][different[0]]}"
        return None

    def _control(self, labels: Labels, field: Field, seed: str) -> Labels:
        """Return the labels of the control task; what the probes of this group do not see is 0."""
        rows = np.unique(np.concatenate([np.concatenate([p.train, p.held_out, p.test]) for p in field.parts]))
        texts = [self.plan.sentences[row].text for row in rows]
        found = np.zeros_like(labels)
        found[rows] = control_labels(str(self.control), texts, self.plan.items[rows], labels[rows], seed)
        return found

    def _blank(self, factor: str, layer: int, field: Field, signature: str) -> ProbeScore:
        sizes = min(len(part.train) for part in field.parts), sum(len(part.test) for part in field.parts)
        fields = {"factor": factor, "model": signature, "layer": str(layer), "group": field.group}
        fields |= {"trained": field.trained, **self.signed, "acceptability": __version__}
        about = self.encoder, factor, field.group, layer
        score = ProbeScore(*about, None, 0.0, None, None, *sizes, trained=field.trained, notes=self.plan.notes)
        return replace(score, values=self.plan.classes[factor], signature=sign("probe", fields))

    def _scored(self, blank: ProbeScore, field: Field, answers: Sequence[tuple[Labels, Labels]]) -> ProbeScore:
        """Return the score of what was said to a factor, which comes first, and to its control tasks."""
        rows = _tested(field)
        (said, labels), *controls = [(said, labels[rows]) for said, labels in answers]
        mcc = correlation(said, labels)
        found = correlation_interval(said, labels, self.plan.items[rows], self.how)
        notes = (*blank.notes, *([found.note] if found.note else []))
        scored = replace(blank, mcc=mcc, accuracy=_share(said, labels), low=found.low, high=found.high, notes=notes)
        levels = [(correlation(*each), _share(*each)) for each in controls if each[1].min() < each[1].max()]
        if not levels:
            return scored
        level, share = np.mean(levels, axis=0).tolist()
        return replace(scored, control=level, selectivity=mcc - level, control_accuracy=share)


def _tested(field: Field) -> NDArray[np.int64]:
    return np.concatenate([part.test for part in field.parts])


def _joined(parts: Sequence[Sequence[Labels]]) -> list[Labels]:
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def _share(said: Labels, labels: Labels) -> float:
    return float((said == labels).mean())
